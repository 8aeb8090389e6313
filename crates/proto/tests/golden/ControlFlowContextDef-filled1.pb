‘
context_name it's "quoted"Ôýÿÿÿÿÿÿÿ *pivot_name Ã©â†’ðŸ˜€2pivot_for_pred_name :pivot_for_body_name aBloop_exit_names two wordsBloop_exit_names it's "quoted"Bloop_exit_names back\slashJ`
values two words
values it's "quoted"
values back\slash#
key Ã©â†’ðŸ˜€value tab	line
endRloop_enter_names tab	line
endRloop_enter_names Ã©â†’ðŸ˜€Rloop_enter_names Zmaximum_iterations_name 