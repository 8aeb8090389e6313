//! The bits between a file's markers, and the codes made of them.

use tensorfleet_status::Result;

use super::invalid;
use super::segments::Source;

/// Bits that one look decides most codes by.
const LOOK: u32 = 9;

/// Codes as a file has them: how many there are of each length, and what they stand for.
pub(super) struct Table {
    pub(super) counts: [u8; 16],
    pub(super) values: Vec<u8>,
}

/// Codes made ready.
pub(super) struct Codes {
    /// Length and value by the next bits; length 0 for longer codes.
    look: Vec<(u8, u8)>,
    /// One more than the last code of each length, -1 if there is none.
    ends: [i32; 17],
    /// What leads from a code of each length to its value.
    offsets: [i32; 17],
    values: [u8; 256],
}

impl Codes {
    /// Codes must fit in their lengths; those of DC differences stand for at most 15 bits.
    pub(super) fn new(table: &Table, is_dc: bool) -> Result<Codes> {
        let mut codes = Codes {
            look: vec![(0, 0); 1 << LOOK],
            ends: [-1; 17],
            offsets: [0; 17],
            values: [0; 256],
        };
        if is_dc && table.values.iter().any(|value| *value > 15) {
            return Err(invalid());
        }
        codes.values[..table.values.len()].copy_from_slice(&table.values);
        let (mut code, mut at) = (0usize, 0usize);
        for (length, count) in (1..).zip(table.counts) {
            let is_used = at < table.values.len();
            codes.offsets[length as usize] = at as i32 - code as i32;
            for _ in 0..count {
                if length <= LOOK {
                    let begin = code << (LOOK - length);
                    let span = codes.look.get_mut(begin..begin + (1 << (LOOK - length)));
                    span.ok_or_else(invalid)?
                        .fill((length as u8, codes.values[at]));
                }
                (code, at) = (code + 1, at + 1);
            }
            if count > 0 {
                codes.ends[length as usize] = code as i32;
            }
            // No code is all ones.
            if is_used && code >= 1 << length {
                return Err(invalid());
            }
            code <<= 1;
        }
        Ok(codes)
    }
}

/// Reads bits up to the next marker; after it there are zeros, and somebody should look at [`Bits::is_out`].
pub(super) struct Bits<'s, 'a> {
    pub(super) source: &'s mut Source<'a>,
    bits: u64,
    count: u32,
    /// Whether more bits were asked for than there are.
    pub(super) is_out: bool,
}

impl<'s, 'a> Bits<'s, 'a> {
    pub(super) fn new(source: &'s mut Source<'a>) -> Bits<'s, 'a> {
        Bits {
            source,
            bits: 0,
            count: 0,
            is_out: false,
        }
    }

    /// Forgets the rest of the current byte, and what was read ahead.
    pub(super) fn align(&mut self) {
        (self.bits, self.count) = (0, 0);
    }

    #[cold]
    fn fill(&mut self, wanted: u32) -> Result<()> {
        while self.count <= 48 && self.source.marker == 0 {
            let mut byte = self.source.byte()?;
            if byte == 0xff {
                while byte == 0xff {
                    byte = self.source.byte()?;
                }
                if byte != 0 {
                    self.source.marker = byte;
                    break;
                }
                byte = 0xff;
            }
            self.bits |= u64::from(byte) << (56 - self.count);
            self.count += 8;
        }
        if self.count < wanted {
            self.is_out = true;
            self.count = 48;
        }
        Ok(())
    }

    /// Makes sure of this many bits.
    #[inline]
    fn need(&mut self, count: u32) -> Result<()> {
        if self.count < count {
            self.fill(count)?;
        }
        Ok(())
    }

    #[inline]
    fn drop(&mut self, count: u32) {
        self.bits <<= count;
        self.count -= count;
    }

    /// Up to 16 bits.
    #[inline]
    pub(super) fn take(&mut self, count: u32) -> Result<i32> {
        if count == 0 {
            return Ok(0);
        }
        self.need(count)?;
        let value = self.bits >> (64 - count);
        self.drop(count);
        Ok(value as i32)
    }

    /// A number of so many bits, negative ones from below.
    #[inline]
    pub(super) fn signed(&mut self, count: u32) -> Result<i32> {
        let value = self.take(count)?;
        let is_negative = count > 0 && value < 1 << (count - 1);
        Ok(if is_negative {
            value + 1 - (1 << count)
        } else {
            value
        })
    }

    /// What the next code stands for; 0 for a code that is none.
    #[inline]
    pub(super) fn code(&mut self, codes: &Codes) -> Result<u8> {
        if self.count < LOOK {
            // Not as many as one looks at may be left: only a code that needs more is one too far.
            self.fill(0)?;
        }
        let (length, value) = codes.look[(self.bits >> (64 - LOOK)) as usize];
        if length > 0 && u32::from(length) <= self.count {
            self.drop(u32::from(length));
            return Ok(value);
        }
        self.long_code(codes)
    }

    #[cold]
    fn long_code(&mut self, codes: &Codes) -> Result<u8> {
        let mut code = 0;
        for length in 1..=16 {
            code = code << 1 | self.take(1)?;
            if code < codes.ends[length] {
                let at = (code + codes.offsets[length]) & 0xff;
                return Ok(codes.values[at as usize]);
            }
        }
        self.take(1)?;
        Ok(0)
    }
}
