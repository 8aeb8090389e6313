€ÿÿ(2"‡
node_name a€debug_ops back\slashdebug_ops tab	line
enddebug_ops Ã©â†’ğŸ˜€"debug_urls "debug_urls a"debug_urls two words(PÿÿX8B
ÿÿ