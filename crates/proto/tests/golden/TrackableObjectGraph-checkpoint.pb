

m
save_counter*

v*
MG
VARIABLE_VALUEsave_counter'save_counter/.ATTRIBUTES/VARIABLE_VALUE*
93
VARIABLE_VALUEvm/v/.ATTRIBUTES/VARIABLE_VALUE*