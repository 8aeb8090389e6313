	ñhãˆµøä>Ôýÿÿÿÿÿÿÿfile_version Ã©â†’ðŸ˜€R

writer a