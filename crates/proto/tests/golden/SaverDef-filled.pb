
filename_tensor_name two wordssave_tensor_name it's "quoted"restore_op_name back\slash ÿÿ(5e ñÇ8