//! Broadcasting: how inputs of smaller shape are read for each element of the output.
//!
//! [`Broadcast`] is made once from two shapes and handed to [`crate::binary`]; [`View`] is the same for one input of
//! any number. Inner loops never see strides: a view hands out contiguous runs, either of the input itself or of a small
//! buffer that it filled, so that each op has one loop and not one per layout.
//!
//! ```
//! use tensorfleet_math::broadcast::{Broadcast, out_shape};
//! let b = Broadcast::new(&[2, 1], &[3]).unwrap();
//! assert_eq!(b.len(), 6);
//! assert_eq!(out_shape(&[&[2, 1], &[3]]).unwrap(), [2, 3]);
//! ```

mod run;
#[cfg(test)]
mod tests;
mod view;

pub(crate) use run::{run2, run2_lhs, run2_rhs, with_block};
pub(crate) use view::Reader;
pub use view::View;

/// Elements per buffered block: small enough that three of them stay in the first-level cache.
pub(crate) const BLOCK: usize = 512;

/// Shapes that cannot be broadcast together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incompatible;

impl std::fmt::Display for Incompatible {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("incompatible shapes")
    }
}

impl std::error::Error for Incompatible {}

/// The shape that all of `shapes` broadcast to.
///
/// # Errors
/// [`Incompatible`] if two of them have different sizes, neither of them 1, in one dimension.
pub fn out_shape(shapes: &[&[usize]]) -> Result<Vec<usize>, Incompatible> {
    let rank = shapes.iter().map(|s| s.len()).max().unwrap_or(0);
    let mut out = vec![1; rank];
    for shape in shapes {
        let offset = rank - shape.len();
        for (out, &size) in out[offset..].iter_mut().zip(*shape) {
            if *out == 1 {
                *out = size;
            } else if size != 1 && size != *out {
                return Err(Incompatible);
            }
        }
    }
    Ok(out)
}

/// How two inputs are read for an output of their common shape.
#[derive(Clone, Debug)]
pub struct Broadcast {
    len: usize,
    pub(crate) lhs: View,
    pub(crate) rhs: View,
}

impl Broadcast {
    /// For inputs of these shapes.
    ///
    /// # Errors
    /// [`Incompatible`] if they do not broadcast.
    pub fn new(lhs: &[usize], rhs: &[usize]) -> Result<Self, Incompatible> {
        if lhs == rhs {
            return Ok(Self::same(lhs.iter().product()));
        }
        let out = out_shape(&[lhs, rhs])?;
        Ok(Self {
            len: out.iter().product(),
            lhs: View::new(lhs, &out)?,
            rhs: View::new(rhs, &out)?,
        })
    }

    /// For two inputs of `len` elements and the same shape.
    pub fn same(len: usize) -> Self {
        Self {
            len,
            lhs: View::FULL,
            rhs: View::FULL,
        }
    }

    /// For an input of `len` elements and a single value.
    pub fn scalar_rhs(len: usize) -> Self {
        Self {
            len,
            lhs: View::FULL,
            rhs: View::SCALAR,
        }
    }

    /// For a single value and an input of `len` elements.
    pub fn scalar_lhs(len: usize) -> Self {
        Self {
            len,
            lhs: View::SCALAR,
            rhs: View::FULL,
        }
    }

    /// Elements of the output.
    #[expect(clippy::len_without_is_empty, reason = "a plan, not a collection")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the left input has the output's shape, so that the output may take its memory.
    pub fn lhs_is_full(&self) -> bool {
        self.lhs.is_full()
    }

    /// Whether the right input has the output's shape, so that the output may take its memory.
    pub fn rhs_is_full(&self) -> bool {
        self.rhs.is_full()
    }
}
