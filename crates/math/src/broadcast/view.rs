//! One input seen through an output shape.

use super::{BLOCK, Incompatible};

/// How one input is read, in order, for the elements of an output that it broadcasts to.
///
/// Neighbouring dimensions of the same kind are merged first, so the shapes that matter have a form of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View(Kind);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    /// Same shape: element `i` is for output `i`.
    Full,
    /// One value for all.
    Scalar,
    /// The whole input, of this length, again and again.
    Tile(usize),
    /// Each element this many times.
    Repeat(usize),
    /// Anything else, outermost first.
    General(Box<[Dim]>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Dim {
    size: usize,
    /// Distance in the input; 0 where it is repeated.
    stride: usize,
}

impl View {
    pub(crate) const FULL: Self = Self(Kind::Full);
    pub(crate) const SCALAR: Self = Self(Kind::Scalar);

    /// For an input of shape `input` and an output of shape `out`.
    ///
    /// # Errors
    /// [`Incompatible`] if `input` does not broadcast to `out`.
    pub fn new(input: &[usize], out: &[usize]) -> Result<Self, Incompatible> {
        let lead = out.len().checked_sub(input.len()).ok_or(Incompatible)?;
        // Merged dimensions, innermost first: (size, repeated).
        let mut merged: Vec<(usize, bool)> = Vec::new();
        for (i, &size) in out.iter().enumerate().rev() {
            let own = if i < lead { 1 } else { input[i - lead] };
            if own != size && own != 1 {
                return Err(Incompatible);
            }
            if size == 1 {
                continue;
            }
            let repeated = own == 1;
            match merged.last_mut() {
                Some(last) if last.1 == repeated => last.0 *= size,
                _ => merged.push((size, repeated)),
            }
        }
        Ok(Self(match merged[..] {
            [] | [(_, false)] => Kind::Full,
            [(_, true)] => Kind::Scalar,
            [(inner, false), (_, true)] => Kind::Tile(inner),
            [(inner, true), (_, false)] => Kind::Repeat(inner),
            _ => {
                let mut stride = 1;
                let mut dims: Vec<Dim> = merged
                    .iter()
                    .map(|&(size, repeated)| {
                        let dim = Dim {
                            size,
                            stride: if repeated { 0 } else { stride },
                        };
                        if !repeated {
                            stride *= size;
                        }
                        dim
                    })
                    .collect();
                dims.reverse();
                Kind::General(dims.into())
            }
        }))
    }

    /// Whether the input has as many elements as the output, in the same order.
    pub fn is_full(&self) -> bool {
        self.0 == Kind::Full
    }

    /// Elements that the input has for an output of `out_len`.
    pub fn input_len(&self, out_len: usize) -> usize {
        match &self.0 {
            Kind::Full => out_len,
            Kind::Scalar => 1,
            _ if out_len == 0 => 0,
            Kind::Tile(n) => *n,
            Kind::Repeat(n) => out_len / n,
            Kind::General(dims) => dims
                .iter()
                .filter(|d| d.stride > 0)
                .map(|d| d.size)
                .product(),
        }
    }
}

/// Reads runs of one input; owns the buffer for runs that are not contiguous in it.
pub(crate) struct Reader<'a, T> {
    view: &'a View,
    input: &'a [T],
    buffer: Vec<T>,
}

impl<'a, T: Copy> Reader<'a, T> {
    /// For at most `len` elements of the output.
    pub(crate) fn new(view: &'a View, input: &'a [T], len: usize) -> Self {
        let block = len.min(BLOCK);
        let buffer = match &view.0 {
            Kind::Scalar => vec![input[0]; block],
            // One period more than a block, so that a block can begin at any phase.
            &Kind::Tile(n) if n < BLOCK => {
                input[..n].iter().copied().cycle().take(block + n).collect()
            }
            _ => Vec::new(),
        };
        Self {
            view,
            input,
            buffer,
        }
    }

    /// How many elements from output `at` on may be asked for at once.
    pub(crate) fn run(&self, at: usize) -> usize {
        match self.view.0 {
            Kind::Full => usize::MAX,
            Kind::Tile(n) if n >= BLOCK => n - at % n,
            _ => BLOCK,
        }
    }

    /// The values for outputs `at..at + len`, `len` at most [`Self::run`].
    pub(crate) fn get(&mut self, at: usize, len: usize) -> &[T] {
        match &self.view.0 {
            Kind::Full => &self.input[at..at + len],
            Kind::Scalar => &self.buffer[..len],
            &Kind::Tile(n) if n >= BLOCK => &self.input[at % n..][..len],
            Kind::Tile(n) => &self.buffer[at % n..][..len],
            &Kind::Repeat(n) => {
                self.buffer.clear();
                repeat(self.input, n, at, len, &mut self.buffer);
                &self.buffer
            }
            Kind::General(dims) => {
                self.buffer.clear();
                gather(self.input, dims, at, len, &mut self.buffer);
                &self.buffer
            }
        }
    }
}

fn repeat<T: Copy>(input: &[T], n: usize, at: usize, len: usize, out: &mut Vec<T>) {
    let mut left = len;
    let mut run = n - at % n;
    for &value in &input[at / n..] {
        let take = run.min(left);
        out.resize(out.len() + take, value);
        left -= take;
        if left == 0 {
            return;
        }
        run = n;
    }
}

fn gather<T: Copy>(input: &[T], dims: &[Dim], at: usize, len: usize, out: &mut Vec<T>) {
    let (inner, outer) = dims
        .split_last()
        .expect("general views have three dimensions or more");
    let mut row = at / inner.size;
    let mut skip = at % inner.size;
    while out.len() < len {
        // The position of the row, by its indices; rows are few per block unless the inner dimension is tiny.
        let (mut rest, mut base) = (row, 0);
        for dim in outer.iter().rev() {
            base += rest % dim.size * dim.stride;
            rest /= dim.size;
        }
        let take = (inner.size - skip).min(len - out.len());
        if inner.stride == 0 {
            out.resize(out.len() + take, input[base]);
        } else {
            out.extend_from_slice(&input[base + skip..][..take]);
        }
        skip = 0;
        row += 1;
    }
}
