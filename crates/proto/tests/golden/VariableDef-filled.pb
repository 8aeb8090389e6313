
variable_name two wordsinitializer_name back\slashsnapshot_name tab	line
end"C
full_name ÔýÿÿÿÿÿÿÿÿÿÿÿÔýÿÿÿÿÿÿÿÿÿÿÿ"Ôýÿÿÿÿÿÿÿÿÿÿÿ(2 initial_value_name it's "quoted"8@H