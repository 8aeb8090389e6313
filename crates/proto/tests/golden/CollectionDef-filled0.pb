
;
value it's "quoted"
value back\slash
value tab	line
end