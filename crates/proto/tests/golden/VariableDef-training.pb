
w:0w/Assignw/read:02w/initial_value:08