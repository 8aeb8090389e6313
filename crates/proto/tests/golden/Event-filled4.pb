	ñhãˆµøä>Ôýÿÿÿÿÿÿÿ:$checkpoint_path amsg two wordsR
writer back\slash