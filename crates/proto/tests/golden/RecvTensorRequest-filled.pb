rendezvous_key back\slash""ÿÿÿÿ
ÿÿtype Ã©â†’ðŸ˜€*=ÿÿÿÿÿÿÿÿÿÿÿ,
*Ôýÿÿÿÿÿÿÿtype it's "quoted"ÿÿÿÿÿÿÿÿÿ8€