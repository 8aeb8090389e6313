//! `ScatterNd`, `ScatterNdNonAliasingAdd`, `TensorScatterUpdate`, `…Add`, `…Sub`, `…Min`, `…Max`: updates of rows by coordinates.
//!
//! TensorFlow: ScatterNd(indices: Tindices, updates: T, shape: Tindices) -> output: T adds to zeros; the others
//! (tensor: T, indices: Tindices, updates: T) -> output: T start from a tensor. A row named twice is updated
//! twice, in order. What is added to a bool is or-ed, what is added to a string is appended.

use tensorfleet_graph::example::{
    Lit, bools, ex, ex_attrs, ex_err, f32s, i32s, i64s, script, strs, x,
};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Code, Result, ensure, invalid_argument};
use tensorfleet_tensor::{Shape, Tensor};

use super::nd::{self, BadIndices};
use super::row_update::{self, Update};
use super::scatter_grad;
use crate::types::{INDEX, NUMBERS, PLAIN, REAL_NUMBERS, VALUES};

const SCATTER: OpDef = OpDef {
    inputs: &["tensor: T", "indices: Tindices", "updates: T"],
    outputs: &["output: T"],
    attrs: &[
        "T: type",
        "Tindices: {int32, int64}",
        "bad_indices_policy: string = ''",
    ],
    infer: infer::same_as_first,
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

const THREE: Lit = x(&[3], &[5.0, 6.0, 7.0]);
const TWICE: Lit = i32s(&[3, 1], &[2, 0, 2]);
const UPDATES: Lit = x(&[3], &[1.0, 2.0, 3.0]);

pub(crate) static OPS: [OpDef; 7] = [
    OpDef {
        name: "ScatterNd",
        inputs: &["indices: Tindices", "updates: T", "shape: Tindices"],
        attrs: &[
            "T: type",
            "Tindices: {int16, int32, int64}",
            "bad_indices_policy: string = ''",
        ],
        infer: infer::shape_in::<2>,
        gradient: Gradient::Rule(scatter_grad::scatter_nd),
        kernels: &[cpu(&[("T", VALUES), ("Tindices", INDEX)], build_scatter_nd)],
        examples: &[
            ex(
                "elements",
                &[TWICE, UPDATES, i32s(&[1], &[4])],
                &[x(&[4], &[2.0, 0.0, 4.0, 0.0])],
            ),
            ex(
                "rows",
                &[
                    i64s(&[1, 1], &[1]),
                    f32s(&[1, 2], &[3.0, 4.0]),
                    i64s(&[2], &[2, 2]),
                ],
                &[f32s(&[2, 2], &[0.0, 0.0, 3.0, 4.0])],
            ),
            ex(
                "strings",
                &[
                    i32s(&[2, 1], &[0, 0]),
                    strs(&[2], &["a", "b"]),
                    i32s(&[1], &[2]),
                ],
                &[strs(&[2], &["ab", ""])],
            ),
            ex(
                "bools",
                &[
                    i32s(&[2, 1], &[0, 0]),
                    bools(&[2], &[true, false]),
                    i32s(&[1], &[2]),
                ],
                &[bools(&[2], &[true, false])],
            ),
            ex(
                "nothing",
                &[i32s(&[0, 1], &[]), f32s(&[0, 2], &[]), i32s(&[2], &[1, 2])],
                &[f32s(&[1, 2], &[0.0, 0.0])],
            ),
            ex_attrs(
                "bad ones ignored",
                &[("bad_indices_policy", "IGNORE")],
                &[
                    i32s(&[3, 1], &[3, 0, -1]),
                    f32s(&[3], &[1.0, 2.0, 3.0]),
                    i32s(&[1], &[2]),
                ],
                &[f32s(&[2], &[2.0, 0.0])],
            ),
            ex_err(
                "outside",
                &[],
                &[i32s(&[2, 1], &[0, 2]), f32s(&[2], &[1.0]), i32s(&[1], &[2])],
                Code::InvalidArgument,
                "indices[1] = [2] does not index into shape [2]",
            ),
            ex_err(
                "a vector of indices",
                &[],
                &[i32s(&[1], &[0]), f32s(&[1], &[1.0]), i32s(&[1], &[2])],
                Code::InvalidArgument,
                "Dimensions [0,1) of indices[shape=[1]]",
            ),
            ex_err(
                "nothing for indices",
                &[],
                &[
                    i32s(&[2, 1], &[0, 1]),
                    f32s(&[2, 0], &[]),
                    i32s(&[2], &[2, 0]),
                ],
                Code::InvalidArgument,
                "Indices and updates specified for empty output shape",
            ),
            ex_err(
                "number of updates",
                &[],
                &[i32s(&[2, 1], &[0, 1]), f32s(&[3], &[1.0]), i32s(&[1], &[2])],
                Code::InvalidArgument,
                "",
            ),
            ex_err(
                "empty output",
                &[],
                &[i32s(&[1, 1], &[0]), f32s(&[1], &[1.0]), i32s(&[1], &[0])],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..SCATTER
    },
    OpDef {
        name: "ScatterNdNonAliasingAdd",
        inputs: &["input: T", "indices: Tindices", "updates: T"],
        attrs: &[
            "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64, bool}",
            "Tindices: {int32, int64}",
            "bad_indices_policy: string = ''",
        ],
        gradient: Gradient::Rule(scatter_grad::add),
        kernels: &[cpu(&[("T", PLAIN), ("Tindices", INDEX)], build_add)],
        examples: &[
            ex(
                "twice",
                &[THREE, TWICE, UPDATES],
                &[x(&[3], &[7.0, 6.0, 11.0])],
            ),
            ex(
                "bools",
                &[
                    bools(&[2], &[true, false]),
                    i32s(&[3, 1], &[0, 1, 1]),
                    bools(&[3], &[false, true, false]),
                ],
                &[bools(&[2], &[true, true])],
            ),
        ],
        ..SCATTER
    },
    OpDef {
        name: "TensorScatterAdd",
        gradient: Gradient::Rule(scatter_grad::add),
        kernels: &[cpu(&[("T", NUMBERS), ("Tindices", INDEX)], build_add)],
        examples: &[
            ex(
                "twice",
                &[THREE, TWICE, UPDATES],
                &[x(&[3], &[7.0, 6.0, 11.0])],
            ),
            ex(
                "matrix elements",
                &[
                    x(&[2, 2], &[1.0, 2.0, 3.0, 4.0]),
                    i64s(&[1, 2], &[1, 0]),
                    x(&[1], &[5.0]),
                ],
                &[x(&[2, 2], &[1.0, 2.0, 8.0, 4.0])],
            ),
        ],
        ..SCATTER
    },
    OpDef {
        name: "TensorScatterMax",
        gradient: Gradient::Rule(scatter_grad::extremum),
        kernels: &[cpu(&[("T", REAL_NUMBERS), ("Tindices", INDEX)], build_max)],
        examples: &[ex(
            "both ways",
            &[THREE, TWICE, x(&[3], &[8.0, 2.0, 3.0])],
            &[x(&[3], &[5.0, 6.0, 8.0])],
        )],
        ..SCATTER
    },
    OpDef {
        name: "TensorScatterMin",
        gradient: Gradient::Rule(scatter_grad::extremum),
        kernels: &[cpu(&[("T", REAL_NUMBERS), ("Tindices", INDEX)], build_min)],
        examples: &[ex(
            "both ways",
            &[THREE, TWICE, x(&[3], &[8.0, 2.0, 3.0])],
            &[x(&[3], &[2.0, 6.0, 3.0])],
        )],
        ..SCATTER
    },
    OpDef {
        name: "TensorScatterSub",
        gradient: Gradient::Rule(scatter_grad::sub),
        kernels: &[cpu(&[("T", NUMBERS), ("Tindices", INDEX)], build_sub)],
        examples: &[ex(
            "twice",
            &[THREE, TWICE, UPDATES],
            &[x(&[3], &[3.0, 6.0, 3.0])],
        )],
        ..SCATTER
    },
    OpDef {
        name: "TensorScatterUpdate",
        attrs: &[
            "T: type",
            "Tindices: {int16, int32, int64, uint16}",
            "bad_indices_policy: string = ''",
        ],
        gradient: Gradient::Rule(scatter_grad::update),
        kernels: &[cpu(&[("T", VALUES), ("Tindices", INDEX)], build_update)],
        examples: &[
            ex(
                "elements",
                &[THREE, i32s(&[2, 1], &[2, 0]), x(&[2], &[1.0, 2.0])],
                &[x(&[3], &[2.0, 6.0, 1.0])],
            ),
            // In int32: of what was overwritten twice TensorFlow's gradient rule knows nothing.
            ex(
                "last one wins",
                &[i32s(&[3], &[5, 6, 7]), TWICE, i32s(&[3], &[1, 2, 3])],
                &[i32s(&[3], &[2, 6, 3])],
            ),
            ex(
                "string rows",
                &[
                    strs(&[2, 1], &["a", "b"]),
                    i32s(&[1, 1], &[1]),
                    strs(&[1, 1], &["c"]),
                ],
                &[strs(&[2, 1], &["a", "c"])],
            ),
            ex_err(
                "outside",
                &[],
                &[
                    f32s(&[2], &[1.0]),
                    i32s(&[2, 1], &[0, 3]),
                    f32s(&[2], &[1.0]),
                ],
                Code::InvalidArgument,
                "indices[1] = [3] does not index into shape [2]",
            ),
        ],
        scripts: &[script(
            "the input keeps its value",
            "a = float[2]{1, 2}
             i = int32[1,1]{0}
             u = float[1]{9}
             y = TensorScatterUpdate(a, i, u)",
            &["fetch y, a => float[2]{9, 2}; float[2]{1, 2}"],
        )],
        ..SCATTER
    },
];

fn build_scatter_nd(node: &NodeInfo) -> Result<AnyKernel> {
    let policy = BadIndices::of(&node.attrs)?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        if ctx.input(2)?.rank() != 1 {
            return Err(invalid_argument!("Shape must be a vector"));
        }
        let shape = Shape::new(&ctx.ints(2)?)?;
        let (indices, updates) = (ctx.input(0)?, ctx.input(1)?);
        check_rank(indices)?;
        let mut output = Tensor::zeros(updates.dtype(), shape)?;
        scatter(ctx, &mut output, indices, updates, Update::Add, policy)?;
        ctx.set(0, output);
        Ok(())
    })
}

fn build_update(node: &NodeInfo) -> Result<AnyKernel> {
    build(node, Update::Assign)
}

fn build_add(node: &NodeInfo) -> Result<AnyKernel> {
    build(node, Update::Add)
}

fn build_sub(node: &NodeInfo) -> Result<AnyKernel> {
    build(node, Update::Sub)
}

fn build_min(node: &NodeInfo) -> Result<AnyKernel> {
    build(node, Update::Min)
}

fn build_max(node: &NodeInfo) -> Result<AnyKernel> {
    build(node, Update::Max)
}

fn build(node: &NodeInfo, update: Update) -> Result<AnyKernel> {
    let policy = BadIndices::of(&node.attrs)?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let mut output = ctx.take(0)?;
        let (indices, updates) = (ctx.input(1)?, ctx.input(2)?);
        check_rank(indices)?;
        scatter(ctx, &mut output, indices, updates, update, policy)?;
        ctx.set(0, output);
        Ok(())
    })
}

/// TensorFlow's kernels check a vector of indices twice, once as one index and once as several: none passes.
fn check_rank(indices: &Tensor) -> Result<()> {
    ensure!(
        indices.rank() != 1 || indices.is_empty(),
        invalid_argument,
        "Dimensions [0,1) of indices[shape={}] must match dimensions [0,1) of updates",
        indices.shape()
    );
    Ok(())
}

/// Applies `updates` to the rows of `output` that `indices` name, after a check of all shapes; for
/// variables too.
pub(crate) fn scatter(
    ctx: &KernelCtx<'_>,
    output: &mut Tensor,
    indices: &Tensor,
    updates: &Tensor,
    update: Update,
    policy: BadIndices,
) -> Result<()> {
    let depth = check(output.shape(), indices.shape(), updates.shape())?;
    if updates.is_empty() {
        return Ok(());
    }
    let shape = output.shape().clone();
    let what = || format!("shape {shape}");
    let found = nd::rows(ctx.par(), indices, &shape[..depth], policy, &what)?;
    let row_len = shape.elements_in(depth..shape.rank());
    match found.kept {
        None => row_update::apply(ctx.par(), update, output, row_len, &found.rows, updates)?,
        Some(kept) => {
            let flat = Shape::new(&[(updates.elements() / row_len) as i64, row_len as i64])?;
            let kept = Tensor::vector(&kept);
            let flat = updates.clone().reshaped(flat)?;
            let good = super::gather::gather_rows(ctx, &flat, &kept, 0, 0)?;
            row_update::apply(ctx.par(), update, output, row_len, &found.rows, &good)?;
        }
    }
    Ok(())
}

/// How many leading dimensions of `output` the indices go through, if all shapes agree.
fn check(output: &Shape, indices: &Shape, updates: &Shape) -> Result<usize> {
    if output.rank() == 0 {
        return Err(invalid_argument!(
            "Output must be at least 1-D, got shape: {output}"
        ));
    }
    let Some((depth, outer)) = indices.split_last() else {
        return Err(invalid_argument!(
            "Indices shape must have rank at least one. Found:{indices}"
        ));
    };
    if updates.rank() == 0 {
        return Err(invalid_argument!(
            "Updates shape must have rank at least one. Found:{updates}"
        ));
    }
    // Without values or without coordinates there is nothing to say what goes where.
    let has_any = indices.elements() > 0 || updates.elements() > 0;
    let has_all = output.elements() > 0 && indices.elements() > 0 && updates.elements() > 0;
    if has_any && !has_all {
        return Err(invalid_argument!(
            "Indices and updates specified for empty output shape"
        ));
    }
    // A vector is several indices of one coordinate.
    let (depth, outer) = match outer {
        [] if *depth > 0 => (1, &indices[..]),
        _ => (*depth as usize, outer),
    };
    if updates.get(..outer.len()) != Some(outer) {
        let outer = outer.len();
        return Err(invalid_argument!(
            "Dimensions [0,{outer}) of indices[shape={indices}] must match dimensions [0,{outer}) of updates[shape={updates}]"
        ));
    }
    if output.get(depth..).is_none() || output.get(depth..) != updates.get(outer.len()..) {
        return Err(invalid_argument!(
            "Dimensions [{depth},{}) of input[shape={output}] must match dimensions [{},{}) of updates[shape={updates}]",
            output.rank(),
            outer.len(),
            updates.rank()
        ));
    }
    Ok(depth)
}
