//! `SpaceToBatchND`, `BatchToSpaceND`, `SpaceToBatch`, `BatchToSpace`: blocks of the spatial dimensions moved into the batch, and back.
//!
//! TensorFlow: SpaceToBatchND(input: T, block_shape: Tblock_shape, paddings: Tpaddings) -> output: T pads with zeros first;
//! BatchToSpaceND(input: T, block_shape: Tblock_shape, crops: Tcrops) -> output: T crops at last. The ops without ND
//! have two spatial dimensions and the attr block_size: int for both.

use tensorfleet_graph::example::{ex, ex_attrs, ex_err, f32s, i32s, ramp, x};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::movement::View;
use tensorfleet_status::{Code, Result, invalid_argument};
use tensorfleet_tensor::{Shape, Tensor};

use super::moves::{self, Extents};
use crate::types::{INDEX, REAL_NUMBERS};

const BATCH: OpDef = OpDef {
    outputs: &["output: T"],
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

const TWO: &[(&str, &str)] = &[("block_size", "2")];

pub(crate) static OPS: [OpDef; 4] = [
    OpDef {
        name: "BatchToSpace",
        inputs: &["input: T", "crops: Tidx"],
        attrs: &[
            "T: type",
            "block_size: int >= 2",
            "Tidx: {int32, int64} = DT_INT32",
        ],
        gradient: Gradient::Rule(|g| gradient(g, "SpaceToBatch")),
        kernels: &[cpu(&[("T", REAL_NUMBERS), ("Tidx", INDEX)], |node| {
            build(node, batch_to_space)
        })],
        examples: &[ex_attrs(
            "with crops",
            TWO,
            &[ramp(&[4, 1, 1, 1], 1.0, 1.0), i32s(&[2, 2], &[0, 0, 1, 0])],
            &[x(&[1, 2, 1, 1], &[2.0, 4.0])],
        )],
        ..BATCH
    },
    OpDef {
        name: "BatchToSpaceND",
        inputs: &["input: T", "block_shape: Tblock_shape", "crops: Tcrops"],
        attrs: &[
            "T: type",
            "Tblock_shape: {int32, int64} = DT_INT32",
            "Tcrops: {int32, int64} = DT_INT32",
        ],
        gradient: Gradient::Rule(|g| gradient(g, "SpaceToBatchND")),
        kernels: &[cpu(&[("T", REAL_NUMBERS)], |node| {
            build(node, batch_to_space)
        })],
        examples: &[
            ex(
                "two dimensions",
                &[
                    ramp(&[4, 1, 1, 1], 1.0, 1.0),
                    i32s(&[2], &[2, 2]),
                    i32s(&[2, 2], &[0, 0, 0, 0]),
                ],
                &[ramp(&[1, 2, 2, 1], 1.0, 1.0)],
            ),
            ex(
                "one, with crops",
                &[
                    ramp(&[2, 2], 1.0, 1.0),
                    i32s(&[1], &[2]),
                    i32s(&[1, 2], &[1, 1]),
                ],
                &[x(&[1, 2], &[3.0, 2.0])],
            ),
            ex_err(
                "batch",
                &[],
                &[
                    f32s(&[4, 1], &[1.0]),
                    i32s(&[1], &[3]),
                    i32s(&[1, 2], &[0, 0]),
                ],
                Code::InvalidArgument,
                "",
            ),
            ex_err(
                "too much cropped",
                &[],
                &[
                    f32s(&[2, 1], &[1.0]),
                    i32s(&[1], &[2]),
                    i32s(&[1, 2], &[3, 0]),
                ],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..BATCH
    },
    OpDef {
        name: "SpaceToBatch",
        inputs: &["input: T", "paddings: Tpaddings"],
        attrs: &[
            "T: type",
            "Tpaddings: {int32, int64} = DT_INT32",
            "block_size: int >= 2",
        ],
        gradient: Gradient::Rule(|g| gradient(g, "BatchToSpace")),
        kernels: &[cpu(&[("T", REAL_NUMBERS), ("Tpaddings", INDEX)], |node| {
            build(node, space_to_batch)
        })],
        examples: &[ex_attrs(
            "padded",
            TWO,
            &[ramp(&[1, 1, 2, 1], 1.0, 1.0), i32s(&[2, 2], &[1, 0, 0, 0])],
            &[x(&[4, 1, 1, 1], &[0.0, 0.0, 1.0, 2.0])],
        )],
        ..BATCH
    },
    OpDef {
        name: "SpaceToBatchND",
        inputs: &[
            "input: T",
            "block_shape: Tblock_shape",
            "paddings: Tpaddings",
        ],
        attrs: &[
            "T: type",
            "Tblock_shape: {int32, int64} = DT_INT32",
            "Tpaddings: {int32, int64} = DT_INT32",
        ],
        gradient: Gradient::Rule(|g| gradient(g, "BatchToSpaceND")),
        kernels: &[cpu(&[("T", REAL_NUMBERS)], |node| {
            build(node, space_to_batch)
        })],
        examples: &[
            ex(
                "two dimensions",
                &[
                    ramp(&[1, 2, 2, 1], 1.0, 1.0),
                    i32s(&[2], &[2, 2]),
                    i32s(&[2, 2], &[0, 0, 0, 0]),
                ],
                &[ramp(&[4, 1, 1, 1], 1.0, 1.0)],
            ),
            ex(
                "one, padded",
                &[
                    ramp(&[1, 3, 2], 1.0, 1.0),
                    i32s(&[1], &[2]),
                    i32s(&[1, 2], &[1, 0]),
                ],
                &[x(&[2, 2, 2], &[0.0, 0.0, 3.0, 4.0, 1.0, 2.0, 5.0, 6.0])],
            ),
            ex(
                "none",
                &[ramp(&[3], 1.0, 1.0), i32s(&[0], &[]), i32s(&[0, 2], &[])],
                &[ramp(&[3], 1.0, 1.0)],
            ),
            ex_err(
                "no multiple",
                &[],
                &[
                    f32s(&[1, 3], &[1.0]),
                    i32s(&[1], &[2]),
                    i32s(&[1, 2], &[0, 0]),
                ],
                Code::InvalidArgument,
                "",
            ),
            ex_err(
                "block of zero",
                &[],
                &[
                    f32s(&[1, 3], &[1.0]),
                    i32s(&[1], &[0]),
                    i32s(&[1, 2], &[0, 0]),
                ],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..BATCH
    },
];

fn gradient(g: &mut GradCtx<'_>, op: &str) -> Result<InputGrads> {
    let grad = g.grad(0)?;
    let others: Vec<_> = (1..g.num_inputs()).map(|index| g.input(index)).collect();
    let block_size = g.attr("block_size");
    let mut node = g.builder().op(op).input(grad);
    for input in &others {
        node = node.input(*input);
    }
    if let Ok(block_size) = block_size {
        node = node.attr("block_size", block_size);
    }
    let grad = node.output()?;
    let mut grads = vec![None; others.len() + 1];
    grads[0] = Some(Grad::Dense(grad));
    Ok(grads)
}

/// Blocks and what is added or taken away around the spatial dimensions.
struct Blocks {
    sizes: Extents,
    margins: Vec<(usize, usize)>,
}

type Move = fn(&KernelCtx<'_>, &Blocks) -> Result<Tensor>;

fn build(node: &NodeInfo, run: Move) -> Result<AnyKernel> {
    let block_size = match node.attrs.get("block_size") {
        Some(_) => Some(node.attrs.int("block_size")?),
        None => None,
    };
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let blocks = blocks(ctx, block_size)?;
        let output = run(ctx, &blocks)?;
        ctx.set(0, output);
        Ok(())
    })
}

fn blocks(ctx: &KernelCtx<'_>, block_size: Option<i64>) -> Result<Blocks> {
    let rank = ctx.input(0)?.rank();
    let (sizes, margins_at) = match block_size {
        Some(_) if rank != 4 => {
            return Err(invalid_argument!(
                "Input rank should be: 4 instead of: {rank}"
            ));
        }
        Some(size) => (smallvec::SmallVec::from_slice(&[size, size]), 1),
        None => {
            let shape = ctx.input(1)?.shape();
            if shape.rank() != 1 {
                return Err(invalid_argument!(
                    "block_shape rank should be 1 instead of {}",
                    shape.rank()
                ));
            }
            (ctx.ints(1)?, 2)
        }
    };
    if rank < 1 + sizes.len() {
        return Err(invalid_argument!(
            "input rank should be >= {} instead of {rank}",
            1 + sizes.len()
        ));
    }
    if let Some(index) = sizes.iter().position(|size| *size < 1) {
        return Err(invalid_argument!(
            "All values in block_shape must be positive, got value, {} at index {index}.",
            sizes[index]
        ));
    }
    let margins = ctx.input(margins_at)?.shape();
    if margins.dims() != [sizes.len() as i64, 2] {
        return Err(invalid_argument!(
            "paddings or crops should have shape [{}, 2] instead of {margins}",
            sizes.len()
        ));
    }
    let margins = ctx.ints(margins_at)?;
    if margins.iter().any(|margin| *margin < 0) {
        return Err(invalid_argument!("Paddings must be non-negative"));
    }
    let margins = margins
        .chunks_exact(2)
        .map(|pair| (pair[0] as usize, pair[1] as usize));
    Ok(Blocks {
        margins: margins.collect(),
        sizes: moves::extents(&sizes),
    })
}

fn space_to_batch(ctx: &KernelCtx<'_>, blocks: &Blocks) -> Result<Tensor> {
    let (input, count) = (ctx.input(0)?, blocks.sizes.len());
    let mut margins = vec![(0, 0); input.rank()];
    margins[1..=count].copy_from_slice(&blocks.margins);
    let padded_shape = super::pad::padded_shape(input.shape(), &margins)?;
    let padded = moves::extents(&padded_shape);
    // [batch, outer, block, outer, block, …, rest]
    let (mut split, mut shape) = (vec![padded[0]], vec![padded_shape[0]]);
    for (i, block) in blocks.sizes.iter().enumerate() {
        if !padded[i + 1].is_multiple_of(*block) {
            return Err(invalid_argument!(
                "padded_shape[{i}]={} is not divisible by block_shape[{i}]={block}",
                padded[i + 1]
            ));
        }
        split.extend([padded[i + 1] / block, *block]);
        shape.push((padded[i + 1] / block) as i64);
        shape[0] = shape[0].saturating_mul(*block as i64);
    }
    split.extend_from_slice(&padded[count + 1..]);
    shape.extend_from_slice(&padded_shape[count + 1..]);
    // [block, block, …, batch, outer, outer, …, rest]
    let mut order: Vec<usize> = (0..count).map(|i| 2 * i + 2).collect();
    order.push(0);
    order.extend((0..count).map(|i| 2 * i + 1));
    order.extend(2 * count + 1..split.len());
    let view = View::transposed(&split, &order);
    let shape = Shape::new(&shape)?;
    if margins.iter().all(|margin| *margin == (0, 0)) {
        return moves::copy_view(ctx.par(), input, &view, shape);
    }
    let zero = Tensor::zeros(input.dtype(), Shape::scalar())?;
    let padded = moves::pad(ctx.par(), input, &margins, &zero, padded_shape)?;
    moves::copy_view(ctx.par(), &padded, &view, shape)
}

fn batch_to_space(ctx: &KernelCtx<'_>, blocks: &Blocks) -> Result<Tensor> {
    let (input, count) = (ctx.input(0)?, blocks.sizes.len());
    let dims = moves::extents(input.shape());
    let area = blocks
        .sizes
        .iter()
        .try_fold(1usize, |area, block| area.checked_mul(*block));
    let Some(area) = area.filter(|area| dims[0].is_multiple_of(*area)) else {
        return Err(invalid_argument!(
            "Input batch dimension ({}) is not divisible by product of block sizes ({})",
            dims[0],
            area.unwrap_or(usize::MAX)
        ));
    };
    // [block, block, …, batch, outer, outer, …, rest]
    let mut split = blocks.sizes.to_vec();
    split.push(dims[0] / area);
    split.extend_from_slice(&dims[1..]);
    // [batch, outer, block, outer, block, …, rest]
    let mut order = vec![count];
    order.extend((0..count).flat_map(|i| [count + 1 + i, i]));
    order.extend(2 * count + 1..split.len());
    let (mut whole, mut begin) = (vec![(dims[0] / area) as i64], vec![0; dims.len()]);
    let mut cropped = whole.clone();
    for (i, block) in blocks.sizes.iter().enumerate() {
        let extent = (dims[i + 1] as i64).saturating_mul(*block as i64);
        let (before, behind) = blocks.margins[i];
        let rest = extent - before as i64 - behind as i64;
        if rest < 0 {
            return Err(invalid_argument!(
                "cropped_shape[{i}]={rest} must be non-negative"
            ));
        }
        begin[i + 1] = before;
        whole.push(extent);
        cropped.push(rest);
    }
    whole.extend_from_slice(&input.shape()[count + 1..]);
    cropped.extend_from_slice(&input.shape()[count + 1..]);
    let (whole, shape) = (Shape::new(&whole)?, Shape::new(&cropped)?);
    if shape.elements() == 0 {
        return Tensor::new(input.dtype(), shape);
    }
    let view = View::transposed(&split, &order);
    let moved = moves::copy_view(ctx.par(), input, &view, whole.clone())?;
    if whole == shape {
        return Ok(moved);
    }
    let (dims, sizes) = (moves::extents(&whole), moves::extents(&shape));
    let view = View::sliced(&dims, &begin, &vec![1; dims.len()], &sizes);
    moves::copy_view(ctx.par(), &moved, &view, shape)
}
