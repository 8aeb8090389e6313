//! Scans: coefficients out of bits, one after the other or, in progressive files, in several passes.
//!
//! What is damaged is read as libjpeg reads it: unknown codes are zero, blocks for which there are no bits stay as they are, and
//! restart markers that are missing or too many are made up for.

use tensorfleet_status::Result;

use super::entropy::{Bits, Codes};
use super::invalid;
use super::segments::{Header, NATURAL_ORDER, Scan, Source};

pub(super) type Block = [i16; 64];

/// What a pass does to blocks.
enum Pass {
    Whole,
    First,
    FirstAc,
    Refine,
    RefineAc,
}

/// Whoever holds the blocks: [`decode`] asks for those of a scan in the order of the file.
pub(super) trait Blocks {
    /// Lets `read` change the block in this column and row of a component.
    fn with(
        &mut self,
        channel: usize,
        place: [usize; 2],
        read: impl FnOnce(&mut Block) -> Result<()>,
    ) -> Result<()>;
}

/// A component in a scan.
pub(super) struct Member {
    pub(super) channel: usize,
    pub(super) codes: [usize; 2],
    /// Blocks in a unit, horizontally and vertically.
    pub(super) unit: [usize; 2],
}

/// What is remembered from block to block.
struct State<'t> {
    pass: Pass,
    scan: &'t Scan,
    /// The last DC of each member.
    last: [i32; 4],
    /// Blocks that end before they begin.
    ended: i32,
}

/// Reads a scan of `units` units: columns and rows of them.
pub(super) fn decode(
    header: &mut Header<'_>,
    scan: &Scan,
    progressive: bool,
    members: &[Member],
    units: [usize; 2],
    blocks: &mut impl Blocks,
) -> Result<()> {
    let pass = pass(scan, progressive)?;
    let (needs_dc, needs_ac) = match pass {
        Pass::Whole => (true, true),
        Pass::First => (true, false),
        Pass::Refine => (false, false),
        Pass::FirstAc | Pass::RefineAc => (false, true),
    };
    let table = |kind: usize, at: usize| {
        let found = header.codes[kind].get(at).and_then(Option::as_ref);
        Codes::new(found.ok_or_else(invalid)?, kind == 0)
    };
    let mut codes = Vec::with_capacity(members.len());
    for member in members {
        let of = |kind: usize, needed: bool| needed.then(|| table(kind, member.codes[kind]));
        codes.push([of(0, needs_dc).transpose()?, of(1, needs_ac).transpose()?]);
    }
    let interval = header.restart_interval;
    let mut bits = Bits::new(&mut header.source);
    let mut state = State {
        pass,
        scan,
        last: [0; 4],
        ended: 0,
    };
    let (mut until_restart, mut next_restart) = (interval, 0);
    for row in 0..units[1] {
        for column in 0..units[0] {
            if interval > 0 && until_restart == 0 {
                bits.align();
                restart(bits.source, next_restart)?;
                next_restart = (next_restart + 1) & 7;
                (state.last, state.ended, until_restart) = ([0; 4], 0, interval);
                bits.is_out &= bits.source.marker != 0;
            }
            until_restart = until_restart.saturating_sub(1);
            // Once there are no more bits, blocks stay as they are; a unit that has begun ends with zeros.
            let is_out = bits.is_out;
            for (at, (member, codes)) in members.iter().zip(&codes).enumerate() {
                for block in 0..member.unit[0] * member.unit[1] {
                    let x = column * member.unit[0] + block % member.unit[0];
                    let y = row * member.unit[1] + block / member.unit[0];
                    blocks.with(member.channel, [x, y], |block| match is_out {
                        true => Ok(()),
                        false => state.read(&mut bits, codes, at, block),
                    })?;
                }
            }
        }
    }
    Ok(())
}

fn pass(scan: &Scan, progressive: bool) -> Result<Pass> {
    if !progressive {
        return Ok(Pass::Whole);
    }
    let is_valid = match scan.first {
        0 => scan.last == 0,
        first => first <= scan.last && scan.last < 64 && scan.channels.len() == 1,
    };
    let is_valid = is_valid && (scan.high == 0 || scan.low + 1 == scan.high) && scan.low <= 13;
    match (scan.first, scan.high) {
        _ if !is_valid => Err(invalid()),
        (0, 0) => Ok(Pass::First),
        (0, _) => Ok(Pass::Refine),
        (_, 0) => Ok(Pass::FirstAc),
        _ => Ok(Pass::RefineAc),
    }
}

/// Finds the restart marker of this number, or decides what to do without it.
fn restart(source: &mut Source<'_>, wanted: u8) -> Result<()> {
    let mut marker = source.next_marker()?;
    loop {
        let ahead = marker.wrapping_sub(0xd0 + wanted) & 7;
        match marker {
            0xd0..=0xd7 if ahead == 0 => return Ok(()),
            // One of the next two: the wanted one is lost.
            0xd0..=0xd7 if ahead <= 2 => break,
            // One of the last two, or none at all: further.
            0xd0..=0xd7 if ahead >= 6 => {}
            0..0xc0 => {}
            0xd0..=0xd7 => return Ok(()),
            _ => break,
        }
        marker = source.next_marker()?;
    }
    source.marker = marker;
    Ok(())
}

type Tables = [Option<Codes>; 2];

impl State<'_> {
    fn read(
        &mut self,
        bits: &mut Bits<'_, '_>,
        codes: &Tables,
        member: usize,
        block: &mut Block,
    ) -> Result<()> {
        match (&self.pass, codes) {
            (Pass::Whole, [Some(dc), Some(ac)]) => {
                block[0] = self.dc(bits, dc, member)? as i16;
                let mut k = 1;
                while k < 64 {
                    let code = bits.code(ac)?;
                    let (run, size) = (usize::from(code >> 4), u32::from(code & 15));
                    if size > 0 {
                        k += run;
                        block[usize::from(NATURAL_ORDER[k])] = bits.signed(size)? as i16;
                    } else if run == 15 {
                        k += 15;
                    } else {
                        break;
                    }
                    k += 1;
                }
                Ok(())
            }
            (Pass::First, [Some(dc), _]) => {
                block[0] = (self.dc(bits, dc, member)? << self.scan.low) as i16;
                Ok(())
            }
            (Pass::Refine, _) => {
                if bits.take(1)? > 0 {
                    block[0] |= 1 << self.scan.low;
                }
                Ok(())
            }
            (Pass::FirstAc, [_, Some(ac)]) => self.first_ac(bits, ac, block),
            (Pass::RefineAc, [_, Some(ac)]) => self.refine_ac(bits, ac, block),
            _ => Err(invalid()),
        }
    }

    fn dc(&mut self, bits: &mut Bits<'_, '_>, codes: &Codes, member: usize) -> Result<i32> {
        let size = bits.code(codes)?;
        let change = bits.signed(u32::from(size))?;
        let last = &mut self.last[member];
        *last = last.checked_add(change).ok_or_else(invalid)?;
        Ok(*last)
    }

    /// The blocks that end here and after this one, by a code without a value.
    fn ends(bits: &mut Bits<'_, '_>, run: usize) -> Result<i32> {
        Ok((1 << run) + bits.take(run as u32)?)
    }

    fn first_ac(&mut self, bits: &mut Bits<'_, '_>, ac: &Codes, block: &mut Block) -> Result<()> {
        if self.ended > 0 {
            self.ended -= 1;
            return Ok(());
        }
        let mut k = self.scan.first;
        while k <= self.scan.last {
            let code = bits.code(ac)?;
            let (run, size) = (usize::from(code >> 4), u32::from(code & 15));
            if size > 0 {
                k += run;
                let value = bits.signed(size)? << self.scan.low;
                block[usize::from(NATURAL_ORDER[k])] = value as i16;
            } else if run == 15 {
                k += 15;
            } else {
                self.ended = State::ends(bits, run)? - 1;
                break;
            }
            k += 1;
        }
        Ok(())
    }

    fn refine_ac(&mut self, bits: &mut Bits<'_, '_>, ac: &Codes, block: &mut Block) -> Result<()> {
        let one = 1i16 << self.scan.low;
        let refine = |bits: &mut Bits<'_, '_>, value: &mut i16| -> Result<()> {
            if bits.take(1)? > 0 && *value & one == 0 {
                let change = if *value >= 0 { one } else { -one };
                *value = value.wrapping_add(change);
            }
            Ok(())
        };
        let mut k = self.scan.first;
        if self.ended == 0 {
            while k <= self.scan.last {
                let code = bits.code(ac)?;
                let (mut run, size) = (usize::from(code >> 4), code & 15);
                let mut new = 0;
                if size > 0 {
                    new = if bits.take(1)? > 0 { one } else { -one };
                } else if run != 15 {
                    self.ended = State::ends(bits, run)?;
                    break;
                }
                // Over what is there already, and `run` zeros.
                while k <= self.scan.last {
                    let value = &mut block[usize::from(NATURAL_ORDER[k])];
                    if *value != 0 {
                        refine(bits, value)?;
                    } else if run == 0 {
                        break;
                    } else {
                        run -= 1;
                    }
                    k += 1;
                }
                if new != 0 {
                    block[usize::from(NATURAL_ORDER[k])] = new;
                }
                k += 1;
            }
        }
        if self.ended > 0 {
            while k <= self.scan.last {
                let value = &mut block[usize::from(NATURAL_ORDER[k])];
                if *value != 0 {
                    refine(bits, value)?;
                }
                k += 1;
            }
            self.ended -= 1;
        }
        Ok(())
    }
}
