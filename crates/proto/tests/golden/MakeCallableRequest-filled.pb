
session_handle two words—
feed back\slash
feed tab	line
end
feed Ã©â†’ðŸ˜€fetch fetch afetch two wordstarget it's "quoted"target back\slashtarget tab	line
end@ÿÿÿÿÿÿÿÿÿ