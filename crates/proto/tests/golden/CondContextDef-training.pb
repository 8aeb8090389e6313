
cond/cond_textcond/pred_id:0cond/switch_t:0 *Q
cond/Const:0
cond/pred_id:0
cond/switch_t:0 
cond/pred_id:0cond/pred_id:0