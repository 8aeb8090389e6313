//! [`Plan`]: how a transform of one length is made.

use super::chirp::Chirp;
use super::passes::{Pass, RADICES};
use super::{Real, root};

/// What transforms of one length need: passes for small factors, a chirp for lengths with others.
pub struct Plan<T> {
    len: usize,
    way: Way<T>,
}

enum Way<T> {
    Passes(Vec<Pass<T>>),
    Chirp(Box<Chirp<T>>),
}

impl<T: Real> Plan<T> {
    /// A plan for lines of this length.
    pub fn new(len: usize) -> Plan<T> {
        let way = match passes(len) {
            Some(passes) => Way::Passes(passes),
            None => Way::Chirp(Box::new(Chirp::new(len))),
        };
        Plan { len, way }
    }

    /// The length of a line.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether lines have no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Transforms `width` lines in `data`, which lie side by side: element `j` of all lines, then element `j + 1`.
    pub(super) fn run(&self, data: &mut Bundle<T>, spare: &mut Bundle<T>, width: usize) {
        match &self.way {
            Way::Passes(passes) => {
                let mut stride = width;
                for pass in passes {
                    spare.resize(self.len * width);
                    pass.run(stride, data.parts(), spare.parts_mut());
                    std::mem::swap(data, spare);
                    stride *= pass.radix;
                }
            }
            Way::Chirp(chirp) => chirp.run(data, spare, width),
        }
    }
}

/// The passes of a length; none if it has a factor without a butterfly.
fn passes<T: Real>(len: usize) -> Option<Vec<Pass<T>>> {
    let (mut left, mut passes) = (len, Vec::new());
    while left > 1 {
        let radix = RADICES.into_iter().find(|radix| left % radix == 0)?;
        passes.push(Pass::new(radix, left, len / left));
        left /= radix;
    }
    Some(passes)
}

/// exp(-2πi·k/n) for all `k` below `count`.
pub(super) fn roots<T: Real>(count: usize, n: usize) -> Vec<[T; 2]> {
    (0..count as u64).map(|k| root(k, n as u64)).collect()
}

/// Lines side by side, real and imaginary parts apart.
#[derive(Default)]
pub(super) struct Bundle<T> {
    pub(super) re: Vec<T>,
    pub(super) im: Vec<T>,
}

impl<T: Real> Bundle<T> {
    pub(super) fn new() -> Bundle<T> {
        Bundle {
            re: Vec::new(),
            im: Vec::new(),
        }
    }

    /// Room for so many numbers; new ones are zero.
    pub(super) fn resize(&mut self, len: usize) {
        self.re.resize(len, T::of(0.0));
        self.im.resize(len, T::of(0.0));
    }

    pub(super) fn parts(&self) -> [&[T]; 2] {
        [&self.re, &self.im]
    }

    pub(super) fn parts_mut(&mut self) -> [&mut [T]; 2] {
        [&mut self.re, &mut self.im]
    }

    /// Real and imaginary parts exchanged: a forward transform between two of these is an inverse one.
    pub(super) fn swap(&mut self) {
        std::mem::swap(&mut self.re, &mut self.im);
    }
}
