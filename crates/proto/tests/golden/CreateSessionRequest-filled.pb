
€jÿÿÿÿÔýÿÿÿÿÿÿÿ"device_filters tab	line
end"device_filters Ã©â†’ðŸ˜€"device_filters (8@HX€xˆtarget it's "quoted"