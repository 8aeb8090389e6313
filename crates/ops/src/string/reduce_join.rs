//! `ReduceJoin`: strings joined along dimensions, in the order the dimensions are given.
//!
//! TensorFlow: ReduceJoin(inputs: string, reduction_indices: int32) -> output: string, with keep_dims, separator.

use smallvec::SmallVec;
use tensorfleet_graph::example::{ex, ex_attrs, ex_err, i32s, strs};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::par::Par;
use tensorfleet_status::{Code, Result, invalid_argument, out_of_range};
use tensorfleet_tensor::{Shape, TString, Tensor};

use super::texts;

pub(crate) static OP: OpDef = OpDef {
    name: "ReduceJoin",
    inputs: &["inputs: string", "reduction_indices: int32"],
    outputs: &["output: string"],
    attrs: &["keep_dims: bool = false", "separator: string = ''"],
    gradient: Gradient::Stop("text is not differentiated"),
    kernels: &[cpu(&[], build)],
    exactness: Exactness::Bits,
    examples: &[
        ex(
            "rows",
            &[strs(&[2, 2], &["a", "b", "c", "d"]), i32s(&[1], &[1])],
            &[strs(&[2], &["ab", "cd"])],
        ),
        ex(
            "columns",
            &[strs(&[2, 2], &["a", "b", "c", "d"]), i32s(&[1], &[-2])],
            &[strs(&[2], &["ac", "bd"])],
        ),
        ex(
            "both, order given",
            &[strs(&[2, 2], &["a", "b", "c", "d"]), i32s(&[2], &[1, 0])],
            &[strs(&[], &["abcd"])],
        ),
        ex_attrs(
            "kept with separator",
            &[("keep_dims", "true"), ("separator", "'.'")],
            &[strs(&[2, 2], &["a", "b", "c", "d"]), i32s(&[1], &[0])],
            &[strs(&[1, 2], &["a.c", "b.d"])],
        ),
        ex(
            "no axes",
            &[strs(&[2], &["a", "b"]), i32s(&[0], &[])],
            &[strs(&[2], &["a", "b"])],
        ),
        ex_err(
            "axis out of range",
            &[],
            &[strs(&[2], &["a", "b"]), i32s(&[1], &[1])],
            Code::OutOfRange,
            "1",
        ),
    ],
    ..OpDef::BLANK
};

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let keep_dims = node.attrs.bool("keep_dims")?;
    let separator = node.attrs.bytes("separator")?.clone();
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let input = ctx.input(0)?;
        let mut axes: SmallVec<[usize; 4]> = SmallVec::new();
        for axis in ctx.ints(1)? {
            let axis = input.shape().axis(axis).map_err(|_| {
                out_of_range!(
                    "Invalid reduction dimension {axis} for input with {} dimension(s)",
                    input.rank()
                )
            })?;
            if axes.contains(&axis) {
                return Err(invalid_argument!("Duplicate reduction dimension {axis}"));
            }
            axes.push(axis);
        }
        let out = join(ctx.par(), input, &axes, keep_dims, &separator)?;
        ctx.set(0, out);
        Ok(())
    })
}

fn join(
    par: &dyn Par,
    input: &Tensor,
    axes: &[usize],
    keep_dims: bool,
    separator: &[u8],
) -> Result<Tensor> {
    let shape = input.shape();
    let strides = shape.strides();
    let kept: Vec<usize> = (0..shape.rank())
        .filter(|axis| !axes.contains(axis))
        .collect();
    let out_dims: Vec<i64> = (0..shape.rank())
        .filter_map(|axis| match (axes.contains(&axis), keep_dims) {
            (false, _) => Some(shape[axis]),
            (true, true) => Some(1),
            (true, false) => None,
        })
        .collect();
    let offset = |axes: &[usize], mut index: usize| {
        let mut offset = 0;
        for axis in axes.iter().rev() {
            offset += index % shape.dim(*axis) * strides[*axis];
            index /= shape.dim(*axis);
        }
        offset
    };
    let inner: usize = axes.iter().map(|axis| shape.dim(*axis)).product();
    // The axis named first moves fastest.
    let joined_axes: SmallVec<[usize; 4]> = axes.iter().rev().copied().collect();
    let values = input.slice::<TString>()?;
    texts(par, Shape::new(&out_dims)?, &|element, text| {
        let base = offset(&kept, element);
        for position in 0..inner {
            if position > 0 {
                text.extend_from_slice(separator);
            }
            text.extend_from_slice(&values[base + offset(&joined_axes, position)]);
        }
        Ok(())
    })
}
