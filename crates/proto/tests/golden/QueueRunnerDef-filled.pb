
queue_name two wordsenqueue_op_name it's "quoted"enqueue_op_name back\slashenqueue_op_name tab	line
endclose_op_name é→😀"cancel_op_name *	