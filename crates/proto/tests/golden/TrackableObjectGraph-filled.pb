
•
local_name back\slash:
name tab	line
endfull_name Ã©â†’ðŸ˜€checkpoint_key slot_name it's "quoted"ÿÿ"
name object_name a*