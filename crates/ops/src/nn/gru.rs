//! `GRUBlockCell`, `GRUBlockCellGrad`: one step of a GRU, and its gradient.
//!
//! TensorFlow: GRUBlockCell(x, h_prev, w_ru, w_c, b_ru, b_c) -> r, u, c, h; GRUBlockCellGrad takes all of these with d_h -> d_x,
//! d_h_prev, d_c_bar, d_r_bar_u_bar.

use tensorfleet_graph::example::{Lit, ex_err, ex_ref, f32s, ramp};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::recurrent::{GruWeights, Sizes, gru, gru_grad};
use tensorfleet_status::{Code, Result, ensure};
use tensorfleet_tensor::DType;

use super::lstm::set;

const F32: &[DType] = &[DType::F32];

const X: Lit = ramp(&[2, 3], -0.5, 0.25);
const STATE: Lit = ramp(&[2, 2], 0.5, -0.25);
const W_RU: Lit = ramp(&[5, 4], -0.5, 0.0625);
const W_C: Lit = ramp(&[5, 2], 0.5, -0.0625);
const B_RU: Lit = ramp(&[4], 0.5, -0.125);
const B_C: Lit = ramp(&[2], -0.25, 0.5);

const GRU: OpDef = OpDef {
    attrs: &["T: {float}"],
    gradient: Gradient::None("TensorFlow has none"),
    exactness: Exactness::Relative(4e-6),
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "GRUBlockCell",
        inputs: &[
            "x: T",
            "h_prev: T",
            "w_ru: T",
            "w_c: T",
            "b_ru: T",
            "b_c: T",
        ],
        outputs: &["r: T", "u: T", "c: T", "h: T"],
        kernels: &[cpu(&[("T", F32)], build)],
        examples: &[
            ex_ref("one step", &[], &[X, STATE, W_RU, W_C, B_RU, B_C]),
            ex_err(
                "weights",
                &[],
                &[
                    f32s(&[2, 3], &[0.0]),
                    f32s(&[2, 2], &[0.0]),
                    f32s(&[4, 4], &[0.0]),
                    f32s(&[5, 2], &[0.0]),
                    f32s(&[4], &[0.0]),
                    f32s(&[2], &[0.0]),
                ],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..GRU
    },
    OpDef {
        name: "GRUBlockCellGrad",
        inputs: &[
            "x: T",
            "h_prev: T",
            "w_ru: T",
            "w_c: T",
            "b_ru: T",
            "b_c: T",
            "r: T",
            "u: T",
            "c: T",
            "d_h: T",
        ],
        outputs: &["d_x: T", "d_h_prev: T", "d_c_bar: T", "d_r_bar_u_bar: T"],
        kernels: &[cpu(&[("T", F32)], build_grad)],
        examples: &[ex_ref(
            "one step",
            &[],
            &[X, STATE, W_RU, W_C, B_RU, B_C, STATE, STATE, STATE, STATE],
        )],
        ..GRU
    },
];

/// The sizes of a cell, its inputs checked.
fn sizes(ctx: &KernelCtx<'_>) -> Result<Sizes> {
    let names = [
        "x", "h_prev", "w_ru", "w_c", "b_ru", "b_c", "r", "u", "c", "d_h",
    ];
    let ranks = [2, 2, 2, 2, 1, 1, 2, 2, 2, 2];
    for index in 0..ctx.num_inputs().min(names.len()) {
        let rank = ctx.input(index)?.rank();
        ensure!(
            rank == ranks[index],
            invalid_argument,
            "Rank of {} must be {}, got {rank}",
            names[index],
            ranks[index]
        );
    }
    let (x, h_prev) = (ctx.input(0)?.shape(), ctx.input(1)?.shape());
    let (batch, inputs, units) = (x.dim(0), x.dim(1), h_prev.dim(1));
    let wanted: [&[usize]; 10] = [
        &[batch, inputs],
        &[batch, units],
        &[inputs + units, 2 * units],
        &[inputs + units, units],
        &[2 * units],
        &[units],
        &[batch, units],
        &[batch, units],
        &[batch, units],
        &[batch, units],
    ];
    for index in 1..ctx.num_inputs().min(names.len()) {
        let shape = ctx.input(index)?.shape();
        for (axis, &size) in wanted[index].iter().enumerate() {
            let meaning = match (index, axis, shape.rank()) {
                (2 | 3, 0, _) => "input_size + cell_size",
                (_, 0, 2) => "batch_size",
                (2, 1, _) | (4, 0, _) => "cell_size * 2",
                _ => "cell_size",
            };
            ensure!(
                shape.dim(axis) == size,
                invalid_argument,
                "{}.dim_size({axis}) != {meaning}: {} vs. {size}",
                names[index],
                shape.dim(axis)
            );
        }
    }
    Ok(Sizes {
        batch,
        inputs,
        units,
    })
}

fn weights<'a>(ctx: &'a KernelCtx<'_>) -> Result<GruWeights<'a>> {
    Ok(GruWeights {
        w_ru: ctx.input(2)?.slice::<f32>()?,
        w_c: ctx.input(3)?.slice::<f32>()?,
        b_ru: ctx.input(4)?.slice::<f32>()?,
        b_c: ctx.input(5)?.slice::<f32>()?,
    })
}

fn build(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let sizes = sizes(ctx)?;
        let mut outputs: [Vec<f32>; 4] =
            std::array::from_fn(|_| vec![0.0; sizes.batch * sizes.units]);
        let before = (ctx.input(0)?.slice::<f32>()?, ctx.input(1)?.slice::<f32>()?);
        let out = outputs.each_mut().map(Vec::as_mut_slice);
        gru(ctx.par(), &sizes, before, &weights(ctx)?, out);
        for (index, output) in outputs.into_iter().enumerate() {
            set(ctx, index, &[sizes.batch, sizes.units], output)?;
        }
        Ok(())
    })
}

fn build_grad(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let sizes = sizes(ctx)?;
        let Sizes {
            batch,
            inputs,
            units,
        } = sizes;
        let columns = [inputs, units, units, 2 * units];
        let mut outputs = columns.map(|columns| vec![0.0; batch * columns]);
        let at = |index: usize| ctx.input(index)?.slice::<f32>();
        let state = [at(6)?, at(7)?, at(8)?, at(9)?];
        let out = outputs.each_mut().map(Vec::as_mut_slice);
        gru_grad(ctx.par(), &sizes, at(1)?, &weights(ctx)?, state, out);
        for (index, (output, columns)) in outputs.into_iter().zip(columns).enumerate() {
            set(ctx, index, &[batch, columns], output)?;
        }
        Ok(())
    })
}
