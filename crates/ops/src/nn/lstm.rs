//! `LSTMBlockCell`, `LSTMBlockCellGrad`: one step of an LSTM, and its gradient.
//!
//! TensorFlow: LSTMBlockCell(x, cs_prev, h_prev, w, wci, wcf, wco, b) -> i, cs, f, o, ci, co, h, with forget_bias, cell_clip and
//! use_peephole; LSTMBlockCellGrad takes all of these with cs_grad and h_grad -> cs_prev_grad, dicfo, wci_grad, wcf_grad,
//! wco_grad. Gates come as input, cell, forget, output. Halves are computed in single precision.

use tensorfleet_graph::example::{Lit, ex_err, ex_ref, f32s, ramp};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::recurrent::{Lstm, LstmStep, LstmWeights, PeepholeGrads, Sizes};
use tensorfleet_status::{Code, Result, ensure};
use tensorfleet_tensor::{DType, Shape, Tensor};

use crate::math::cast::converted;

pub(super) const HALF_OR_SINGLE: &[DType] = &[DType::F16, DType::F32];
pub(super) const PEEPHOLE: (&str, &str) = ("use_peephole", "true");
const NO_PEEPHOLE: (&str, &str) = ("use_peephole", "false");

const X: Lit = ramp(&[2, 3], -0.5, 0.25);
const STATE: Lit = ramp(&[2, 2], 0.5, -0.25);
pub(super) const W: Lit = ramp(&[5, 8], -1.0, 0.0625);
pub(super) const PEEP: Lit = ramp(&[2], 0.25, 0.5);
pub(super) const B: Lit = ramp(&[8], 0.5, -0.125);

pub(super) const LSTM: OpDef = OpDef {
    gradient: Gradient::None("TensorFlow has none"),
    kernels: &[],
    exactness: Exactness::Relative(4e-6),
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "LSTMBlockCell",
        inputs: &[
            "x: T",
            "cs_prev: T",
            "h_prev: T",
            "w: T",
            "wci: T",
            "wcf: T",
            "wco: T",
            "b: T",
        ],
        outputs: &["i: T", "cs: T", "f: T", "o: T", "ci: T", "co: T", "h: T"],
        attrs: &[
            "forget_bias: float = 1.0",
            "cell_clip: float = 3.0",
            "use_peephole: bool = false",
            "T: {half, float}",
        ],
        kernels: &[cpu(&[("T", HALF_OR_SINGLE)], build)],
        examples: &[
            ex_ref("plain", &[], &[X, STATE, STATE, W, PEEP, PEEP, PEEP, B]),
            ex_ref(
                "peepholes, clipped",
                &[PEEPHOLE, ("cell_clip", "0.25")],
                &[X, STATE, STATE, W, PEEP, PEEP, PEEP, B],
            ),
            ex_err(
                "weights",
                &[],
                &[
                    f32s(&[2, 3], &[0.0]),
                    f32s(&[2, 2], &[0.0]),
                    f32s(&[2, 2], &[0.0]),
                    f32s(&[4, 8], &[0.0]),
                    f32s(&[2], &[0.0]),
                    f32s(&[2], &[0.0]),
                    f32s(&[2], &[0.0]),
                    f32s(&[8], &[0.0]),
                ],
                Code::InvalidArgument,
                "w.dim_size(0) != input_size + cell_size: 4 vs. 5",
            ),
        ],
        ..LSTM
    },
    OpDef {
        name: "LSTMBlockCellGrad",
        inputs: &[
            "x: T",
            "cs_prev: T",
            "h_prev: T",
            "w: T",
            "wci: T",
            "wcf: T",
            "wco: T",
            "b: T",
            "i: T",
            "cs: T",
            "f: T",
            "o: T",
            "ci: T",
            "co: T",
            "cs_grad: T",
            "h_grad: T",
        ],
        outputs: &[
            "cs_prev_grad: T",
            "dicfo: T",
            "wci_grad: T",
            "wcf_grad: T",
            "wco_grad: T",
        ],
        attrs: &["use_peephole: bool", "T: {half, float}"],
        kernels: &[cpu(&[("T", HALF_OR_SINGLE)], build_grad)],
        examples: &[
            ex_ref(
                "peepholes",
                &[PEEPHOLE],
                &[
                    X, STATE, STATE, W, PEEP, PEEP, PEEP, B, STATE, STATE, STATE, STATE, STATE,
                    STATE, STATE, STATE,
                ],
            ),
            ex_ref(
                "plain",
                &[NO_PEEPHOLE],
                &[
                    X, STATE, STATE, W, PEEP, PEEP, PEEP, B, STATE, STATE, STATE, STATE, STATE,
                    STATE, STATE, STATE,
                ],
            ),
        ],
        ..LSTM
    },
];

/// Inputs `first..first + count` in single precision.
pub(super) fn singles(ctx: &KernelCtx<'_>, first: usize, count: usize) -> Result<Vec<Tensor>> {
    (first..first + count)
        .map(|index| converted(ctx.par(), ctx.input(index)?, DType::F32))
        .collect()
}

/// Sets output `index` to single-precision numbers, in the dtype of the node.
pub(super) fn set(
    ctx: &mut KernelCtx<'_>,
    index: usize,
    dims: &[usize],
    values: Vec<f32>,
) -> Result<()> {
    let dims: Vec<i64> = dims.iter().map(|dim| *dim as i64).collect();
    let tensor = Tensor::from_vec(Shape::new(&dims)?, values)?;
    let dtype = ctx.node().attrs.dtype("T")?;
    let tensor = converted(ctx.par(), &tensor, dtype)?;
    ctx.set(index, tensor);
    Ok(())
}

/// The sizes of a cell from the last dimensions of `x` and the shapes of its state and weights, checked. Inputs are the states,
/// `w`, `wci`, `wcf`, `wco` and `b`, beginning with `cs_prev` at `first`.
pub(super) fn sizes(
    ctx: &KernelCtx<'_>,
    [batch, inputs]: [usize; 2],
    first: usize,
) -> Result<Sizes> {
    let shape =
        |offset: usize| Ok::<_, tensorfleet_status::Status>(ctx.input(first + offset)?.shape());
    let ranks = [2, 2, 2, 1, 1, 1, 1];
    let names = ["cs_prev", "h_prev", "w", "wci", "wcf", "wco", "b"];
    for (offset, (name, rank)) in names.into_iter().zip(ranks).enumerate() {
        let found = shape(offset)?.rank();
        ensure!(
            found == rank,
            invalid_argument,
            "{name} must be {rank}D: {name} must be rank {rank} but is rank {found}"
        );
    }
    let state = shape(0)?;
    ensure!(
        state.elements() > 0,
        invalid_argument,
        "cs_prev_tensor is empty, has shape: ({},{}).",
        state.dim(0),
        state.dim(1)
    );
    let units = state.dim(1);
    for (offset, name) in [(0, "cs_prev"), (1, "h_prev")] {
        let (rows, columns) = (shape(offset)?.dim(0), shape(offset)?.dim(1));
        ensure!(
            rows == batch,
            invalid_argument,
            "{name}.dims(0) != batch_size: {rows} vs. {batch}"
        );
        ensure!(
            columns == units,
            invalid_argument,
            "{name}.dims(1) != cell_size: {columns} vs. {units}"
        );
    }
    let (rows, columns) = (shape(2)?.dim(0), shape(2)?.dim(1));
    ensure!(
        rows == inputs + units,
        invalid_argument,
        "w.dim_size(0) != input_size + cell_size: {rows} vs. {}",
        inputs + units
    );
    ensure!(
        columns == 4 * units,
        invalid_argument,
        "w.dim_size(1) != cell_size * 4: {columns} vs. {}",
        4 * units
    );
    for (offset, name) in [(3, "wci"), (4, "wcf"), (5, "wco")] {
        let length = shape(offset)?.dim(0);
        ensure!(
            length == units,
            invalid_argument,
            "{name}.dim_size(0) != cell_size: {length} vs. {units}"
        );
    }
    let length = shape(6)?.dim(0);
    ensure!(
        length == 4 * units,
        invalid_argument,
        "b.dim_size(0) != cell_size * 4: {length} vs. {}",
        4 * units
    );
    Ok(Sizes {
        batch,
        inputs,
        units,
    })
}

/// Weights and bias among tensors.
pub(super) fn weights(tensors: &[Tensor]) -> Result<LstmWeights<'_>> {
    let at = |index: usize| tensors[index].slice::<f32>();
    Ok(LstmWeights {
        w: at(0)?,
        wci: at(1)?,
        wcf: at(2)?,
        wco: at(3)?,
        b: at(4)?,
    })
}

fn last_two(ctx: &KernelCtx<'_>) -> Result<[usize; 2]> {
    let x = ctx.input(0)?.shape();
    ensure!(
        x.rank() == 2,
        invalid_argument,
        "x must be 2D: x must be rank 2 but is rank {}",
        x.rank()
    );
    Ok([x.dim(0), x.dim(1)])
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let attrs = &node.attrs;
    let (forget_bias, cell_clip) = (attrs.float("forget_bias")?, attrs.float("cell_clip")?);
    let use_peephole = attrs.bool("use_peephole")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let sizes = sizes(ctx, last_two(ctx)?, 1)?;
        let lstm = Lstm {
            sizes,
            forget_bias,
            cell_clip,
            use_peephole,
            forget_second: false,
        };
        let inputs = singles(ctx, 0, 8)?;
        let before = (
            inputs[0].slice::<f32>()?,
            inputs[1].slice::<f32>()?,
            inputs[2].slice::<f32>()?,
        );
        let mut outputs: [Vec<f32>; 7] =
            std::array::from_fn(|_| vec![0.0; sizes.batch * sizes.units]);
        let [i, cs, f, o, ci, co, h] = &mut outputs;
        let step = LstmStep {
            i: i.as_mut_slice(),
            cs,
            f,
            o,
            ci,
            co,
            h,
        };
        lstm.forward(ctx.par(), before, &weights(&inputs[3..])?, step);
        for (index, output) in outputs.into_iter().enumerate() {
            set(ctx, index, &[sizes.batch, sizes.units], output)?;
        }
        Ok(())
    })
}

fn build_grad(node: &NodeInfo) -> Result<AnyKernel> {
    let use_peephole = node.attrs.bool("use_peephole")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let sizes = sizes(ctx, last_two(ctx)?, 1)?;
        let names = ["i", "cs", "f", "o", "ci", "co", "cs_grad", "h_grad"];
        for (index, name) in (8..).zip(names) {
            let shape = ctx.input(index)?.shape();
            ensure!(
                shape.dims() == [sizes.batch as i64, sizes.units as i64],
                invalid_argument,
                "{name}.dims != [batch_size, cell_size]: {shape} vs. [{},{}]",
                sizes.batch,
                sizes.units
            );
        }
        let lstm = Lstm {
            sizes,
            forget_bias: 0.0,
            cell_clip: 0.0,
            use_peephole,
            forget_second: false,
        };
        let inputs = singles(ctx, 0, 16)?;
        let at = |index: usize| inputs[index].slice::<f32>();
        let step = LstmStep {
            i: at(8)?,
            cs: at(9)?,
            f: at(10)?,
            o: at(11)?,
            ci: at(12)?,
            co: at(13)?,
            h: &[],
        };
        let units = sizes.units;
        let mut gates = vec![0.0; sizes.batch * units * 4];
        let mut cs_prev_grad = vec![0.0; sizes.batch * units];
        let mut peepholes: [Vec<f32>; 3] = std::array::from_fn(|_| vec![0.0; units]);
        let [wci, wcf, wco] = &mut peepholes;
        let mut grads = PeepholeGrads { wci, wcf, wco };
        lstm.backward(
            at(1)?,
            &weights(&inputs[3..])?,
            &step,
            (at(14)?, at(15)?),
            (&mut gates, &mut cs_prev_grad),
            &mut grads,
        );
        set(ctx, 0, &[sizes.batch, units], cs_prev_grad)?;
        set(ctx, 1, &[sizes.batch, units * 4], gates)?;
        for (index, grad) in (2..).zip(peepholes) {
            set(ctx, index, &[units], grad)?;
        }
        Ok(())
    })
}
