	ñhãˆµøä>Ôýÿÿÿÿÿÿÿ2	message aR
writer it's "quoted"