
2
name two words Ôýÿÿÿÿÿÿÿvalue it's "quoted"