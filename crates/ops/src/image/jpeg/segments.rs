//! The marker segments of a JPEG file: sizes, tables, what the colours are.
//!
//! Verdicts are those of libjpeg, which TensorFlow uses: what it warns of is passed over, what it ends at is an error. A file that
//! ends too early may be read as if it went on with end markers ([`Source::byte`]).

use tensorfleet_status::Result;

use super::entropy::Table;
use super::invalid;

/// The place of each coefficient of a zigzag. Runs may lead past the end: libjpeg takes what is there for the last.
pub(super) const NATURAL_ORDER: [u8; 80] = [
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20,
    13, 6, 7, 14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59,
    52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63,
    63, 63, 63, 63, 63, 63,
];

/// libjpeg's longest side.
const LONGEST_SIDE: usize = 65500;
pub(super) const END: u8 = 0xd9;

/// The bytes of a file.
pub(super) struct Source<'a> {
    file: &'a [u8],
    at: usize,
    recover: bool,
    /// A marker that was met among pixels, to be looked at next; 0 for none.
    pub(super) marker: u8,
}

impl<'a> Source<'a> {
    pub(super) fn new(file: &'a [u8], recover: bool) -> Source<'a> {
        Source {
            file,
            at: 0,
            recover,
            marker: 0,
        }
    }

    /// The next byte. Past the end of a file that is to be recovered there are end markers without number.
    pub(super) fn byte(&mut self) -> Result<u8> {
        let found = self.file.get(self.at).copied();
        let past = self.at.saturating_sub(self.file.len());
        self.at += 1;
        match found {
            Some(byte) => Ok(byte),
            None if self.recover && !self.file.is_empty() => Ok([0xff, END][past % 2]),
            None => Err(invalid()),
        }
    }

    fn word(&mut self) -> Result<usize> {
        Ok(usize::from(u16::from_be_bytes([
            self.byte()?,
            self.byte()?,
        ])))
    }

    fn skip(&mut self, count: usize) -> Result<()> {
        if count > self.file.len().saturating_sub(self.at) {
            self.at = self.file.len();
            return if self.recover { Ok(()) } else { Err(invalid()) };
        }
        self.at += count;
        Ok(())
    }

    /// The next marker, whatever lies before it.
    pub(super) fn next_marker(&mut self) -> Result<u8> {
        match std::mem::take(&mut self.marker) {
            0 => {}
            marker => return Ok(marker),
        }
        loop {
            while self.byte()? != 0xff {}
            let marker = loop {
                match self.byte()? {
                    0xff => {}
                    byte => break byte,
                }
            };
            if marker != 0 {
                return Ok(marker);
            }
        }
    }

    /// The length of what is left of a segment.
    fn length(&mut self) -> Result<usize> {
        self.word()?.checked_sub(2).ok_or_else(invalid)
    }
}

/// What the components of a file say.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Colors {
    Gray,
    Rgb,
    YCbCr,
    Cmyk,
    Ycck,
    Unknown,
}

/// A component as the frame has it.
#[derive(Clone, Copy)]
pub(super) struct Channel {
    id: u8,
    /// Samples of it where the component with the most has `largest`: horizontally and vertically.
    pub(super) sampling: [usize; 2],
    table: usize,
    /// Latched by its first scan.
    pub(super) quantisation: Option<[u16; 64]>,
}

/// Size and components.
pub(super) struct Frame {
    pub(super) progressive: bool,
    pub(super) height: usize,
    pub(super) width: usize,
    pub(super) channels: Vec<Channel>,
    /// The most samples that a component has, horizontally and vertically.
    pub(super) largest: [usize; 2],
}

/// One pass over some of the components.
pub(super) struct Scan {
    /// Component, and its tables of DC and AC codes.
    pub(super) channels: Vec<(usize, [usize; 2])>,
    pub(super) first: usize,
    pub(super) last: usize,
    pub(super) high: u8,
    pub(super) low: u8,
}

/// All that segments have said so far.
pub(super) struct Header<'a> {
    pub(super) source: Source<'a>,
    frame: Option<Frame>,
    quantisation: [Option<[u16; 64]>; 4],
    /// DC and AC.
    pub(super) codes: [[Option<Table>; 4]; 2],
    /// MCUs between restart markers; 0 for none.
    pub(super) restart_interval: usize,
    has_jfif: bool,
    adobe_transform: Option<u8>,
}

impl<'a> Header<'a> {
    /// Reads up to the first scan.
    pub(super) fn open(file: &'a [u8], recover: bool) -> Result<(Header<'a>, Frame, Scan)> {
        let mut source = Source::new(file, recover);
        if [source.byte()?, source.byte()?] != [0xff, 0xd8] {
            return Err(invalid());
        }
        let mut header = Header {
            source,
            frame: None,
            quantisation: [None; 4],
            codes: Default::default(),
            restart_interval: 0,
            has_jfif: false,
            adobe_transform: None,
        };
        let scan = header.next_scan(None)?.ok_or_else(invalid)?;
        let frame = header.frame.take().ok_or_else(invalid)?;
        Ok((header, frame, scan))
    }

    /// Reads up to the next scan; none if the file is at its end. `frame` is the frame if that was met before.
    pub(super) fn next_scan(&mut self, frame: Option<&Frame>) -> Result<Option<Scan>> {
        loop {
            match self.source.next_marker()? {
                0xc0 | 0xc1 => self.start_frame(false, frame.is_some())?,
                0xc2 => self.start_frame(true, frame.is_some())?,
                0xc4 => self.codes()?,
                // Arithmetic coding's conditioning, and what has no use.
                0xcc | 0xdc | 0xe1..=0xed | 0xef | 0xfe => {
                    let length = self.source.length()?;
                    self.source.skip(length)?;
                }
                0xd0..=0xd7 | 0x01 => {}
                END => return Ok(None),
                0xda => {
                    let scan = match frame.or(self.frame.as_ref()) {
                        Some(frame) => scan(&mut self.source, frame)?,
                        None => return Err(invalid()),
                    };
                    return Ok(Some(scan));
                }
                0xdb => self.quantisation()?,
                0xdd => {
                    if self.source.length()? != 2 {
                        return Err(invalid());
                    }
                    self.restart_interval = self.source.word()?;
                }
                0xe0 => {
                    let begin = self.application(14)?;
                    self.has_jfif |= begin.len() == 14 && begin.starts_with(b"JFIF\0");
                }
                0xee => {
                    let begin = self.application(12)?;
                    if begin.len() == 12 && begin.starts_with(b"Adobe") {
                        self.adobe_transform = begin.last().copied();
                    }
                }
                _ => return Err(invalid()),
            }
        }
    }

    /// The first `most` bytes of a segment, which is passed over.
    fn application(&mut self, most: usize) -> Result<Vec<u8>> {
        let length = self.source.length()?;
        let taken = length.min(most);
        let begin = (0..taken)
            .map(|_| self.source.byte())
            .collect::<Result<_>>();
        self.source.skip(length - taken)?;
        begin
    }

    fn start_frame(&mut self, progressive: bool, is_second: bool) -> Result<()> {
        let source = &mut self.source;
        let (length, precision) = (source.length()?, source.byte()?);
        let (height, width) = (source.word()?, source.word()?);
        let count = usize::from(source.byte()?);
        let sides = 1..=LONGEST_SIDE;
        if is_second
            || self.frame.is_some()
            || precision != 8
            || !sides.contains(&height)
            || !sides.contains(&width)
            || !(1..=10).contains(&count)
            || length != 6 + 3 * count
        {
            return Err(invalid());
        }
        let mut channels = Vec::with_capacity(count);
        for _ in 0..count {
            let (id, factors) = (source.byte()?, source.byte()?);
            let sampling = [usize::from(factors >> 4), usize::from(factors & 15)];
            if sampling.iter().any(|factor| !(1..=4).contains(factor)) {
                return Err(invalid());
            }
            channels.push(Channel {
                id,
                sampling,
                table: usize::from(source.byte()?),
                quantisation: None,
            });
        }
        let most = |axis: usize| channels.iter().map(|channel| channel.sampling[axis]).max();
        let largest = [most(0).unwrap_or(1), most(1).unwrap_or(1)];
        self.frame = Some(Frame {
            progressive,
            height,
            width,
            channels,
            largest,
        });
        Ok(())
    }

    fn codes(&mut self) -> Result<()> {
        let mut length = self.source.length()?;
        while length > 16 {
            let which = usize::from(self.source.byte()?);
            let mut counts = [0; 16];
            for count in &mut counts {
                *count = self.source.byte()?;
            }
            length -= 17;
            let total = counts
                .iter()
                .map(|count| usize::from(*count))
                .sum::<usize>();
            if total > 256 || total > length {
                return Err(invalid());
            }
            let values = (0..total)
                .map(|_| self.source.byte())
                .collect::<Result<_>>()?;
            length -= total;
            let (kind, at) = (which >> 4, which & 15);
            let slot = self.codes.get_mut(kind).and_then(|kind| kind.get_mut(at));
            *slot.ok_or_else(invalid)? = Some(Table { counts, values });
        }
        if length > 0 {
            return Err(invalid());
        }
        Ok(())
    }

    fn quantisation(&mut self) -> Result<()> {
        let mut length = self.source.length()?;
        while length > 0 {
            let which = self.source.byte()?;
            let is_wide = which >> 4 > 0;
            let mut table = [0; 64];
            for at in &NATURAL_ORDER[..64] {
                table[usize::from(*at)] = if is_wide {
                    self.source.word()? as u16
                } else {
                    u16::from(self.source.byte()?)
                };
            }
            let slot = self.quantisation.get_mut(usize::from(which & 15));
            *slot.ok_or_else(invalid)? = Some(table);
            let taken = if is_wide { 129 } else { 65 };
            length = length.checked_sub(taken).ok_or_else(invalid)?;
        }
        Ok(())
    }

    /// Each component is quantised by the table that its number has when its first scan begins.
    pub(super) fn latch(&self, channel: &mut Channel) -> Result<()> {
        if channel.quantisation.is_none() {
            let table = self.quantisation.get(channel.table).copied().flatten();
            channel.quantisation = Some(table.ok_or_else(invalid)?);
        }
        Ok(())
    }

    pub(super) fn has_adobe(&self) -> bool {
        self.adobe_transform.is_some()
    }

    pub(super) fn colors(&self, frame: &Frame) -> Colors {
        let ids: Vec<u8> = frame.channels.iter().map(|channel| channel.id).collect();
        match (ids.len(), self.adobe_transform) {
            (1, _) => Colors::Gray,
            (3, _) if self.has_jfif => Colors::YCbCr,
            (3, Some(0)) => Colors::Rgb,
            (3, None) if ids == *b"RGB" => Colors::Rgb,
            (3, _) => Colors::YCbCr,
            (4, None | Some(0)) => Colors::Cmyk,
            (4, _) => Colors::Ycck,
            _ => Colors::Unknown,
        }
    }
}

fn scan(source: &mut Source<'_>, frame: &Frame) -> Result<Scan> {
    let (length, count) = (source.length()?, usize::from(source.byte()?));
    if !(1..=4).contains(&count) || length != 4 + 2 * count {
        return Err(invalid());
    }
    let mut channels: Vec<(usize, [usize; 2])> = Vec::with_capacity(count);
    for _ in 0..count {
        let (id, tables) = (source.byte()?, source.byte()?);
        let is_new = |at: &usize| channels.iter().all(|(other, _)| other != at);
        let mut found = (0..frame.channels.len()).filter(|at| frame.channels[*at].id == id);
        let at = found.find(is_new).ok_or_else(invalid)?;
        channels.push((at, [usize::from(tables >> 4), usize::from(tables & 15)]));
    }
    let (first, last, bits) = (source.byte()?, source.byte()?, source.byte()?);
    Ok(Scan {
        channels,
        first: usize::from(first),
        last: usize::from(last),
        high: bits >> 4,
        low: bits & 15,
    })
}
