//! `SpaceToDepth`, `DepthToSpace`: square blocks of an image moved into the channels, and back.
//!
//! TensorFlow: SpaceToDepth(input: T) -> output: T, with attrs block_size: int, data_format: string. TensorFlow's CPU
//! kernels know NHWC only, and so do these.

use tensorfleet_graph::example::{ex_attrs, ex_err, f32s, ramp, strs, x};
use tensorfleet_graph::gradient::{GradCtx, InputGrads, dense};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::movement::View;
use tensorfleet_status::{Code, Result, invalid_argument};
use tensorfleet_tensor::{Shape, Tensor};

use super::moves;
use crate::types::MOVABLE;

const BLOCKS: OpDef = OpDef {
    inputs: &["input: T"],
    outputs: &["output: T"],
    attrs: &[
        "T: type",
        "block_size: int >= 2",
        "data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'",
    ],
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

const TWO: &[(&str, &str)] = &[("block_size", "2")];

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "DepthToSpace",
        gradient: Gradient::Rule(|g| gradient(g, "SpaceToDepth")),
        kernels: &[cpu(&[("T", MOVABLE)], |node| build(node, depth_to_space))],
        examples: &[
            ex_attrs(
                "one pixel",
                TWO,
                &[ramp(&[1, 1, 1, 8], 1.0, 1.0)],
                &[ramp(&[1, 2, 2, 2], 1.0, 1.0)],
            ),
            ex_attrs(
                "two pixels",
                TWO,
                &[ramp(&[1, 1, 2, 4], 1.0, 1.0)],
                &[x(&[1, 2, 4, 1], &[1.0, 2.0, 5.0, 6.0, 3.0, 4.0, 7.0, 8.0])],
            ),
            ex_err(
                "channels first",
                &[("block_size", "2"), ("data_format", "'NCHW'")],
                &[f32s(&[1, 4, 1, 1], &[1.0])],
                Code::InvalidArgument,
                "No OpKernel was registered to support Op 'DepthToSpace'",
            ),
            ex_err(
                "depth",
                TWO,
                &[f32s(&[1, 1, 1, 6], &[1.0])],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..BLOCKS
    },
    OpDef {
        name: "SpaceToDepth",
        gradient: Gradient::Rule(|g| gradient(g, "DepthToSpace")),
        kernels: &[cpu(&[("T", MOVABLE)], |node| build(node, space_to_depth))],
        examples: &[
            ex_attrs(
                "two pixels",
                TWO,
                &[x(&[1, 2, 4, 1], &[1.0, 2.0, 5.0, 6.0, 3.0, 4.0, 7.0, 8.0])],
                &[ramp(&[1, 1, 2, 4], 1.0, 1.0)],
            ),
            ex_attrs(
                "strings",
                TWO,
                &[strs(&[1, 2, 2, 1], &["a", "b", "c", "d"])],
                &[strs(&[1, 1, 1, 4], &["a", "b", "c", "d"])],
            ),
            ex_err(
                "no multiple",
                &[("block_size", "3")],
                &[f32s(&[1, 2, 4, 1], &[1.0])],
                Code::InvalidArgument,
                "",
            ),
            ex_err(
                "rank",
                TWO,
                &[f32s(&[4], &[1.0])],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..BLOCKS
    },
];

fn gradient(g: &mut GradCtx<'_>, op: &str) -> Result<InputGrads> {
    let grad = g.grad(0)?;
    let (block_size, data_format) = (g.attr("block_size")?, g.attr("data_format")?);
    let node = g.builder().op(op).input(grad);
    let node = node
        .attr("block_size", block_size)
        .attr("data_format", data_format);
    dense(node.output()?)
}

/// The input split into six dimensions, their new order, and the shape of the result.
type Plan = ([usize; 6], [usize; 6], [usize; 4]);

fn build(node: &NodeInfo, plan: fn([usize; 4], usize) -> Result<Plan>) -> Result<AnyKernel> {
    let block = node.attrs.int("block_size")? as usize;
    let format = node.attrs.str("data_format")?;
    if format != "NHWC" {
        return Err(invalid_argument!(
            "No OpKernel was registered to support Op '{}' used by {{{{node {}}}}} with data_format {format} on the CPU",
            node.op,
            node.name
        ));
    }
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let output = moved(ctx, block, plan)?;
        ctx.set(0, output);
        Ok(())
    })
}

fn moved(
    ctx: &KernelCtx<'_>,
    block: usize,
    plan: fn([usize; 4], usize) -> Result<Plan>,
) -> Result<Tensor> {
    let input = ctx.input(0)?;
    let dims = moves::extents(input.shape());
    let &[n, h, w, c] = dims.as_slice() else {
        return Err(invalid_argument!(
            "Input rank should be 4 instead of {}",
            input.rank()
        ));
    };
    let (split, order, shape) = plan([n, h, w, c], block)?;
    let shape = shape.map(|dim| dim as i64);
    let view = View::transposed(&split, &order);
    moves::copy_view(ctx.par(), input, &view, Shape::new(&shape)?)
}

fn space_to_depth([n, h, w, c]: [usize; 4], block: usize) -> Result<Plan> {
    if !h.is_multiple_of(block) || !w.is_multiple_of(block) {
        return Err(invalid_argument!(
            "Image width {w} and height {h} should be divisible by block_size: {block}"
        ));
    }
    let shape = [n, h / block, w / block, c * block * block];
    let split = [n, h / block, block, w / block, block, c];
    Ok((split, [0, 1, 3, 2, 4, 5], shape))
}

fn depth_to_space([n, h, w, c]: [usize; 4], block: usize) -> Result<Plan> {
    let area = block.saturating_mul(block);
    if !c.is_multiple_of(area) {
        return Err(invalid_argument!(
            "Input depth dimension {c} should be divisible by: {area}"
        ));
    }
    let inner = c / area;
    let shape = [n, h.saturating_mul(block), w.saturating_mul(block), inner];
    let split = [n, h, w, block, block, inner];
    Ok((split, [0, 1, 3, 2, 4, 5], shape))
}
