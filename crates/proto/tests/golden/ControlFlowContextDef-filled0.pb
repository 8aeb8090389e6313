
³
context_name it's "quoted"pred_name back\slashpivot_name tab	line
end ÿÿÿÿ*`
values two words
values it's "quoted"
values back\slash#
key Ã©â†’ðŸ˜€value tab	line
end