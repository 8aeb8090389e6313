
ckpt-1ckpt-1