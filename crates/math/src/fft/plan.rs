//! [`Plan`]: how a transform of one length is made.

use super::chirp::Chirp;
use super::lanes::{Cell, Lanes};
use super::passes::{Pass, RADICES};
use super::{Direction, Real, root};

/// What transforms of one length need: passes for small factors, a chirp for lengths with others.
pub struct Plan<T> {
    len: usize,
    way: Way<T>,
    /// The passes for lines side by side; none for a chirp, which has them for its convolution.
    lanes: Option<Lanes<T>>,
}

/// Longer lines would not fit into a cache side by side.
const LARGEST: usize = 8192;
/// Shorter lines are taken side by side however few there are.
const LONG: usize = 512;
/// So many long lines are done faster side by side than one by one.
const FEW: usize = 4;

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
        let lanes = (len <= LARGEST).then(|| Lanes::new(len)).flatten();
        Plan { len, way, lanes }
    }

    /// How to transform so many lines side by side; `None` if they are better taken one by one.
    pub(super) fn side_by_side(&self, lines: usize) -> Option<SideBySide<'_, T>> {
        if self.len >= LONG && lines < FEW {
            return None;
        }
        let (lanes, chirp) = match &self.way {
            Way::Passes(_) => (&self.lanes, None),
            Way::Chirp(chirp) => (&chirp.plan.lanes, Some(&**chirp)),
        };
        let lanes = lanes.as_ref()?;
        Some(SideBySide { lanes, chirp })
    }

    /// The length of a line.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether lines have no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Transforms a line.
    pub(super) fn run(&self, data: &mut Bundle<T>, spare: &mut Bundle<T>) {
        match &self.way {
            Way::Passes(passes) => {
                let mut stride = 1;
                for pass in passes {
                    spare.resize(self.len);
                    pass.run(stride, data.parts(), spare.parts_mut());
                    std::mem::swap(data, spare);
                    stride *= pass.radix;
                }
            }
            Way::Chirp(chirp) => chirp.run(data, spare),
        }
    }
}

/// A way to transform lines that lie side by side.
#[derive(Clone, Copy)]
pub(super) struct SideBySide<'a, T> {
    lanes: &'a Lanes<T>,
    chirp: Option<&'a Chirp<T>>,
}

impl<'a, T: Real> SideBySide<'a, T> {
    /// How many cells the transform takes, of which the lines fill the first.
    pub(super) fn room(self) -> usize {
        self.lanes.forward.len()
    }

    /// Transforms the lines; both have as many cells as there must be room for, or more.
    pub(super) fn run(self, cells: &mut [Cell<T>], spare: &mut [Cell<T>]) {
        match self.chirp {
            Some(chirp) => chirp.run_lanes(self.lanes, cells, spare),
            None => self.lanes.run(cells),
        }
    }

    /// In which cell each frequency is found then.
    pub(super) fn places(self, direction: Direction) -> &'a [u32] {
        match (self.chirp, direction) {
            (None, Direction::Forward) => &self.lanes.forward,
            (None, Direction::Inverse) => &self.lanes.inverse,
            (Some(chirp), direction) => chirp.places(direction),
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

/// A line, real and imaginary parts apart.
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
