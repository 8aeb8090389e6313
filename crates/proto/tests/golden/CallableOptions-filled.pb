
feed two words
feed it's "quoted"
feed back\slashfetch tab	line
endfetch Ã©â†’ðŸ˜€fetch target atarget two wordstarget it's "quoted""ÿÿÿÿÿÿÿÿÿ€(8*1
from_tensor it's "quoted"to_tensor back\slash2#
key Ã©â†’ðŸ˜€value tab	line
end:
key avalue @