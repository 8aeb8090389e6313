//! Reductions over axes, positions of extremes, and scans.

pub(crate) mod arg;
mod gradient;
pub(crate) mod logical;
pub(crate) mod numeric;
pub(crate) mod scan;

use smallvec::SmallVec;
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_kernel::KernelCtx;
use tensorfleet_math::reduce::Layout;
use tensorfleet_status::{Result, invalid_argument};
use tensorfleet_tensor::{Dims, PartialShape, Shape};

use super::elementwise::lengths;

/// Which axes are reduced, and the shape of the result.
struct Plan {
    layout: Layout,
    shape: Shape,
}

impl Plan {
    fn new(ctx: &KernelCtx<'_>, keep_dims: bool) -> Result<Plan> {
        let input = ctx.input(0)?.shape();
        let is_reduced = reduced(input.rank(), &ctx.ints(1)?)?;
        let axes: SmallVec<[usize; 6]> =
            (0..input.rank()).filter(|axis| is_reduced[*axis]).collect();
        Ok(Plan {
            layout: Layout::new(&lengths(input), &axes),
            shape: Shape::new(&result_dims(input, &is_reduced, keep_dims))?,
        })
    }

    /// Whether each element of the result is one of the input.
    fn is_trivial(&self) -> bool {
        self.layout.reduced_len() == 1
    }
}

/// For each axis whether it is reduced.
fn reduced(rank: usize, axes: &[i64]) -> Result<SmallVec<[bool; 8]>> {
    let mut is_reduced = SmallVec::from_elem(false, rank);
    for &axis in axes {
        let found = if axis < 0 { axis + rank as i64 } else { axis };
        let Some(slot) = usize::try_from(found)
            .ok()
            .and_then(|axis| is_reduced.get_mut(axis))
        else {
            return Err(invalid_argument!(
                "Invalid reduction dimension ({axis} for input with {rank} dimension(s)"
            ));
        };
        if std::mem::replace(slot, true) {
            return Err(invalid_argument!(
                "Invalid reduction arguments: Axes contains duplicate dimension: {found}"
            ));
        }
    }
    Ok(is_reduced)
}

fn result_dims(dims: &[i64], is_reduced: &[bool], keep_dims: bool) -> Dims {
    let kept = dims.iter().zip(is_reduced);
    kept.filter(|(_, is_reduced)| keep_dims || !**is_reduced)
        .map(|(dim, is_reduced)| if *is_reduced { 1 } else { *dim })
        .collect()
}

fn infer(ctx: &mut InferCtx<'_>) -> Result<()> {
    let keep_dims = ctx.attrs().bool("keep_dims")?;
    let Some(dims) = ctx.input(0).dims() else {
        return Ok(());
    };
    match ctx.constant_ints(1) {
        Some(axes) => {
            let is_reduced = reduced(dims.len(), &axes)?;
            let out = result_dims(dims, &is_reduced, keep_dims);
            ctx.set(0, PartialShape::new(&out));
        }
        None if keep_dims => ctx.set(0, PartialShape::of_rank(dims.len())),
        None => {}
    }
    Ok(())
}
