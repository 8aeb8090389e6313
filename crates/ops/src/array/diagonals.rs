//! Diagonals of matrices: which ones, how long, and where they lie, for the `MatrixDiag…` ops.
//!
//! Diagonal `d` of a matrix begins at column `d`, or at row `-d` for negative ones. Several diagonals are kept as
//! the rows of a matrix, the upper one first, each as long as the longest and aligned left or right.

use tensorfleet_kernel::{Attrs, KernelCtx};
use tensorfleet_math::movement::View;
use tensorfleet_status::{Result, invalid_argument};
use tensorfleet_tensor::{Shape, Tensor};

use super::moves;

/// How diagonals that are shorter than the longest are aligned.
#[derive(Clone, Copy)]
pub(super) struct Align {
    upper_left: bool,
    lower_left: bool,
}

impl Align {
    /// The `align` attribute; left for ops without it.
    pub(super) fn of(attrs: &Attrs) -> Result<Align> {
        let text = match attrs.get("align") {
            Some(_) => attrs.str("align")?,
            None => "LEFT_LEFT",
        };
        Ok(Align {
            upper_left: text.starts_with("LEFT"),
            lower_left: text.ends_with("LEFT"),
        })
    }
}

/// The diagonals `lower ..= upper`.
#[derive(Clone, Copy)]
pub(super) struct Band {
    pub(super) lower: i64,
    pub(super) upper: i64,
}

impl Band {
    /// The main diagonal.
    pub(super) const MAIN: Band = Band { lower: 0, upper: 0 };

    /// Input `index`: one diagonal, or the lowest and the uppermost.
    pub(super) fn of_input(ctx: &KernelCtx<'_>, index: usize) -> Result<Band> {
        let k = ctx.input(index)?;
        if k.rank() > 1 {
            return Err(invalid_argument!(
                "diag_index must be a scalar or vector, received shape: {}",
                k.shape()
            ));
        }
        let (lower, upper) = match ctx.ints(index)?.as_slice() {
            [only] => (*only, *only),
            [lower, upper] => (*lower, *upper),
            other => {
                return Err(invalid_argument!(
                    "diag_index must have only one or two elements, received {} elements.",
                    other.len()
                ));
            }
        };
        if lower > upper {
            return Err(invalid_argument!(
                "lower_diag_index must not be larger than upper_diag_index: {lower} > {upper}"
            ));
        }
        Ok(Band { lower, upper })
    }

    /// The number of diagonals.
    pub(super) fn count(&self) -> i64 {
        self.upper - self.lower + 1
    }

    /// Whether there is only one, which is then kept without a dimension of its own.
    pub(super) fn is_single(&self) -> bool {
        self.lower == self.upper
    }

    /// Checks that the diagonals exist in a matrix of this size.
    pub(super) fn check(&self, rows: i64, columns: i64) -> Result<()> {
        let exists = |d: i64| (-rows < d && d < columns) || d == 0;
        for (name, d) in [
            ("lower_diag_index", self.lower),
            ("upper_diag_index", self.upper),
        ] {
            if !exists(d) {
                return Err(invalid_argument!(
                    "{name} is out of bound: {d}. It must be between {} and {}",
                    -rows,
                    columns
                ));
            }
        }
        Ok(())
    }

    /// The length of the longest diagonal.
    pub(super) fn longest(&self, rows: i64, columns: i64) -> i64 {
        (rows + self.upper.min(0))
            .min(columns - self.lower.max(0))
            .max(0)
    }

    /// The shape of the diagonals of matrices `outer + [rows, columns]`.
    pub(super) fn shape(&self, outer: &[i64], rows: i64, columns: i64) -> Result<Shape> {
        let mut dims = outer.to_vec();
        if !self.is_single() {
            dims.push(self.count());
        }
        dims.push(self.longest(rows, columns));
        Shape::new(&dims)
    }

    /// Every diagonal that `batch` matrices have: its positions in the matrices and among the kept diagonals.
    pub(super) fn places(
        &self,
        batch: usize,
        (rows, columns): (i64, i64),
        align: Align,
    ) -> Vec<Place> {
        let mut places = Vec::new();
        if batch == 0 {
            return places;
        }
        let longest = self.longest(rows, columns);
        let kept = self.count() * longest;
        for d in self.lower.max(1 - rows)..=self.upper.min(columns - 1) {
            let len = (rows + d.min(0)).min(columns - d.max(0));
            let left = (d >= 0 && align.upper_left) || (d <= 0 && align.lower_left);
            let skipped = if left { 0 } else { longest - len };
            let dims = vec![batch, len as usize];
            places.push(Place {
                matrix: View {
                    dims: dims.clone(),
                    strides: vec![(rows * columns) as isize, columns as isize + 1],
                    offset: (if d < 0 { -d * columns } else { d }) as usize,
                },
                kept: View {
                    dims,
                    strides: vec![kept as isize, 1],
                    offset: ((self.upper - d) * longest + skipped) as usize,
                },
            });
        }
        places
    }
}

/// Where the elements of one diagonal lie.
pub(super) struct Place {
    /// In the matrices.
    pub(super) matrix: View,
    /// Among the kept diagonals.
    pub(super) kept: View,
}

/// Copies elements from positions to positions.
pub(super) fn transfer(
    ctx: &KernelCtx<'_>,
    (src, from): (&Tensor, &View),
    (dst, to): (&mut Tensor, &View),
) -> Result<()> {
    let moved = moves::copy_view(ctx.par(), src, from, Shape::vector(from.len()))?;
    moves::paste_view(&moved, to, dst)
}

/// The outer dimensions, rows and columns of a shape of at least two dimensions.
pub(super) fn matrix_dims(shape: &Shape) -> Result<(&[i64], i64, i64)> {
    match shape.dims() {
        [outer @ .., rows, columns] => Ok((outer, *rows, *columns)),
        _ => Err(invalid_argument!(
            "input must be at least 2-dim, received shape: {shape}"
        )),
    }
}
