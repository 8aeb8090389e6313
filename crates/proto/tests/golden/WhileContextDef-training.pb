
while/while_context
*while/LoopCond:02while/Merge:0:while/Identity:0Bwhile/Exit:0JÐ
while/Enter:0
while/Exit:0
while/Identity:0
while/Less/y:0
while/Less:0
while/LoopCond:0
while/Merge:0
while/Merge:1
while/NextIteration:0
while/Switch:0
while/Switch:1
while/add/y:0
while/add:0Rwhile/Enter:0