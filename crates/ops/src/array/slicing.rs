//! What `begin`, `end`, `strides` and the masks of strided slices mean for a tensor of known shape.
//!
//! Every entry of the three vectors is, by the masks, an ellipsis (as many whole dimensions as are
//! left), a new axis of extent one, an index that removes its dimension, or a range.

use smallvec::SmallVec;
use tensorfleet_kernel::{Attrs, KernelCtx};
use tensorfleet_math::movement::View;
use tensorfleet_status::{Result, invalid_argument};
use tensorfleet_tensor::{Dims, Shape, Tensor};

use super::moves::{self, Extents};

/// Masks are 32 bits wide.
const MAX_ENTRIES: usize = 31;

/// The attributes that strided slices share, in the attr language.
macro_rules! strided_slice_attrs {
    ($($first:literal),*) => {
        &[
            $($first,)*
            "begin_mask: int = 0",
            "end_mask: int = 0",
            "ellipsis_mask: int = 0",
            "new_axis_mask: int = 0",
            "shrink_axis_mask: int = 0",
        ]
    };
}
pub(super) use strided_slice_attrs;

/// The names of the masks.
pub(super) const MASKS: [&str; 5] = [
    "begin_mask",
    "end_mask",
    "ellipsis_mask",
    "new_axis_mask",
    "shrink_axis_mask",
];

/// The masks of a node.
#[derive(Clone, Copy)]
pub(crate) struct Masks {
    begin: i64,
    end: i64,
    ellipsis: i64,
    new_axis: i64,
    shrink_axis: i64,
}

impl Masks {
    /// Reads the attributes.
    pub(crate) fn of(attrs: &Attrs) -> Result<Masks> {
        Ok(Masks {
            begin: attrs.int("begin_mask")?,
            end: attrs.int("end_mask")?,
            ellipsis: attrs.int("ellipsis_mask")?,
            new_axis: attrs.int("new_axis_mask")?,
            shrink_axis: attrs.int("shrink_axis_mask")?,
        })
    }
}

/// The vectors of a slice.
pub(crate) struct Vectors<'a> {
    pub(crate) begin: &'a [i64],
    pub(crate) end: &'a [i64],
    pub(crate) strides: &'a [i64],
}

/// A slice of a tensor of known shape.
#[derive(Debug)]
pub(crate) struct Slicing {
    dims: Extents,
    begin: Extents,
    steps: SmallVec<[isize; 8]>,
    sizes: Extents,
    /// The shape of the result.
    pub(crate) shape: Shape,
}

/// One dimension of the input.
#[derive(Clone, Copy)]
enum Part {
    Whole,
    Index(i64, i64),
    Range {
        begin: Option<i64>,
        end: Option<i64>,
        stride: i64,
    },
}

/// One dimension of the result.
enum Extent {
    New,
    Of(usize),
}

impl Slicing {
    /// The slice that inputs `first .. first + 3` (begin, end, strides) describe.
    pub(crate) fn of_inputs(
        ctx: &KernelCtx<'_>,
        first: usize,
        masks: Masks,
        dims: &[i64],
    ) -> Result<Slicing> {
        let shapes = [
            ctx.input(first)?.shape(),
            ctx.input(first + 1)?.shape(),
            ctx.input(first + 2)?.shape(),
        ];
        if shapes
            .iter()
            .any(|shape| shape.rank() != 1 || *shape != shapes[0])
            || shapes[0].dim(0) > MAX_ENTRIES
        {
            return Err(invalid_argument!(
                "Expected begin, end, and strides to be 1D equal size tensors, but got shapes {}, {}, and {} instead.",
                shapes[0],
                shapes[1],
                shapes[2]
            ));
        }
        let vectors = Vectors {
            begin: &ctx.ints(first)?,
            end: &ctx.ints(first + 1)?,
            strides: &ctx.ints(first + 2)?,
        };
        Slicing::new(&vectors, masks, dims)
    }

    /// The slice that three vectors of one length describe.
    pub(crate) fn new(vectors: &Vectors<'_>, masks: Masks, dims: &[i64]) -> Result<Slicing> {
        let (parts, extents) = dense(vectors, masks, dims.len())?;
        let mut slicing = Slicing {
            dims: moves::extents(dims),
            begin: Extents::new(),
            steps: SmallVec::new(),
            sizes: Extents::new(),
            shape: Shape::scalar(),
        };
        for (i, (part, extent)) in parts.iter().zip(dims).enumerate() {
            let (begin, step, size) = resolve(*part, *extent, i)?;
            slicing.begin.push(begin);
            slicing.steps.push(step);
            slicing.sizes.push(size);
        }
        let extents = extents.iter().map(|extent| match extent {
            Extent::New => 1,
            Extent::Of(dim) => slicing.sizes[*dim] as i64,
        });
        slicing.shape = Shape::new(&extents.collect::<Dims>())?;
        Ok(slicing)
    }

    /// Whether nothing is selected.
    pub(crate) fn is_empty(&self) -> bool {
        self.sizes.contains(&0)
    }

    /// The selected positions; there must be some.
    pub(crate) fn view(&self) -> View {
        View::sliced(&self.dims, &self.begin, &self.steps, &self.sizes)
    }

    /// The rows `(begin, count)` if whole neighbouring rows are selected.
    fn rows(&self) -> Option<(usize, usize)> {
        let whole = self.dims.get(1..)? == self.sizes.get(1..)?
            && self.begin[1..].iter().all(|begin| *begin == 0)
            && (self.steps[0] == 1 || self.sizes[0] == 1);
        whole.then(|| (self.begin[0], self.sizes[0]))
    }

    /// The selected part of `input`, which has the shape the slice was made for.
    pub(crate) fn take(&self, ctx: &KernelCtx<'_>, input: Tensor) -> Result<Tensor> {
        let shape = self.shape.clone();
        if self.is_empty() {
            return Tensor::new(input.dtype(), shape);
        }
        if self.dims.is_empty() {
            return input.reshaped(shape);
        }
        match self.rows() {
            Some((0, count)) if count == self.dims[0] => input.reshaped(shape),
            Some((begin, count)) => input.rows(begin, count)?.reshaped(shape),
            None => moves::copy_view(ctx.par(), &input, &self.view(), shape),
        }
    }

    /// Writes `value`, broadcast to the result's shape, to the selected part of `output`.
    pub(crate) fn put(
        &self,
        ctx: &KernelCtx<'_>,
        value: &Tensor,
        output: &mut Tensor,
    ) -> Result<()> {
        // As in TensorFlow the value does not matter where none of it is written.
        if self.is_empty() {
            return Ok(());
        }
        let from = moves::extents(value.shape());
        let to = moves::extents(&self.shape);
        let fits = from.len() <= to.len()
            && from
                .iter()
                .rev()
                .zip(to.iter().rev())
                .all(|(from, to)| from == to || *from == 1);
        if !fits {
            return Err(invalid_argument!(
                "value of shape {} cannot be broadcast to the slice of shape {}",
                value.shape(),
                self.shape
            ));
        }
        if from.iter().product::<usize>() == self.shape.elements() {
            return moves::paste_view(value, &self.view(), output);
        }
        let view = View::broadcast(&from, &to);
        let value = moves::copy_view(ctx.par(), value, &view, self.shape.clone())?;
        moves::paste_view(&value, &self.view(), output)
    }
}

/// What happens to each dimension of the input, and what each of the result is.
type Dense = (SmallVec<[Part; 8]>, SmallVec<[Extent; 8]>);

/// The entries spread over the dimensions of the input and of the result.
fn dense(vectors: &Vectors<'_>, masks: Masks, rank: usize) -> Result<Dense> {
    let entries = vectors.begin.len();
    let bit = |mask: i64, entry: usize| mask >> entry & 1 == 1;
    // As in TensorFlow, also those that stand behind the last entry count.
    if (masks.ellipsis as u32).count_ones() > 1 {
        return Err(invalid_argument!(
            "Multiple ellipses in slice spec not allowed"
        ));
    }
    let is_plain = |entry: &usize| !bit(masks.ellipsis, *entry) && !bit(masks.new_axis, *entry);
    let named = (0..entries).filter(is_plain).count();
    let mut parts = SmallVec::new();
    let mut extents = SmallVec::new();
    for entry in 0..entries {
        if bit(masks.ellipsis, entry) {
            for _ in 0..rank.saturating_sub(named) {
                extents.push(Extent::Of(parts.len()));
                parts.push(Part::Whole);
            }
        } else if bit(masks.new_axis, entry) {
            extents.push(Extent::New);
        } else if parts.len() == rank {
            return Err(match rank {
                0 => invalid_argument!("Attempting to slice scalar input."),
                _ => invalid_argument!(
                    "Index out of range using input dim {rank}; input has only {rank} dims"
                ),
            });
        } else if bit(masks.shrink_axis, entry) {
            parts.push(Part::Index(vectors.begin[entry], vectors.strides[entry]));
        } else {
            extents.push(Extent::Of(parts.len()));
            parts.push(Part::Range {
                begin: Some(vectors.begin[entry]).filter(|_| !bit(masks.begin, entry)),
                end: Some(vectors.end[entry]).filter(|_| !bit(masks.end, entry)),
                stride: vectors.strides[entry],
            });
        }
    }
    while parts.len() < rank {
        extents.push(Extent::Of(parts.len()));
        parts.push(Part::Whole);
    }
    Ok((parts, extents))
}

/// (begin, step, size) of dimension `i` of this extent.
fn resolve(part: Part, extent: i64, i: usize) -> Result<(usize, isize, usize)> {
    let from_end = |index: i64| if index < 0 { index + extent } else { index };
    match part {
        Part::Whole => Ok((0, 1, extent as usize)),
        Part::Index(_, 0) | Part::Range { stride: 0, .. } => {
            Err(invalid_argument!("strides[{i}] must be non-zero"))
        }
        Part::Index(_, ..0) => Err(invalid_argument!(
            "only stride 1 allowed on non-range indexing."
        )),
        Part::Index(index, _) => {
            let at = from_end(index);
            if at < 0 || at >= extent {
                return Err(invalid_argument!(
                    "slice index {index} of dimension {i} out of bounds."
                ));
            }
            Ok((at as usize, 1, 1))
        }
        Part::Range { begin, end, stride } => {
            // Where a range may begin and end: backwards it may end before the first element.
            let (low, high) = if stride > 0 {
                (0, extent)
            } else {
                (-1, extent - 1)
            };
            let (first, last) = if stride > 0 { (low, high) } else { (high, low) };
            let begin = begin.map_or(first, |begin| from_end(begin).clamp(low, high));
            let end = end.map_or(last, |end| from_end(end).clamp(low, high));
            let span = if stride > 0 { end - begin } else { begin - end };
            let size = if span <= 0 {
                0
            } else {
                (span as u64).div_ceil(stride.unsigned_abs())
            };
            // A step beyond the extent is never taken; a smaller one stands for it.
            let step = stride.clamp(-extent.max(1), extent.max(1));
            Ok((begin.max(0) as usize, step as isize, size as usize))
        }
    }
}
