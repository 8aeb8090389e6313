//! `BlockLSTM`, `BlockLSTMV2`, `BlockLSTMGrad`, `BlockLSTMGradV2`: an LSTM over whole sequences, and its gradient.
//!
//! TensorFlow: BlockLSTM(seq_len_max: int64, x, cs_prev, h_prev, w, wci, wcf, wco, b) -> i, cs, f, o, ci, co, h, with forget_bias,
//! cell_clip and use_peephole; all that has a time has it as the first dimension. The second version has its gates in the order
//! input, forget, cell, output, and no forget_bias. Steps from seq_len_max on are zero.

use tensorfleet_graph::example::{Example, Lit, ex_err, ex_ref, f32s, i64s, ramp, script};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::{Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::recurrent::{Lstm, LstmStep, PeepholeGrads};
use tensorfleet_status::{Code, Result, ensure};
use tensorfleet_tensor::{DType, Shape, Tensor};

use super::lstm::{B, HALF_OR_SINGLE, LSTM, PEEP, PEEPHOLE, W, set, singles, sizes, weights};
use crate::room::filled;

const INPUTS: &[&str] = &[
    "seq_len_max: int64",
    "x: T",
    "cs_prev: T",
    "h_prev: T",
    "w: T",
    "wci: T",
    "wcf: T",
    "wco: T",
    "b: T",
];
const OUTPUTS: &[&str] = &["i: T", "cs: T", "f: T", "o: T", "ci: T", "co: T", "h: T"];
const GRAD_INPUTS: &[&str] = &[
    "seq_len_max: int64",
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
    "h: T",
    "cs_grad: T",
    "h_grad: T",
];
const GRAD_OUTPUTS: &[&str] = &[
    "x_grad: T",
    "cs_prev_grad: T",
    "h_prev_grad: T",
    "w_grad: T",
    "wci_grad: T",
    "wcf_grad: T",
    "wco_grad: T",
    "b_grad: T",
];

const THREE: Lit = i64s(&[], &[3]);
const X: Lit = ramp(&[3, 2, 3], -0.5, 0.125);
const STATE: Lit = ramp(&[2, 2], 0.5, -0.25);
const STATES: Lit = ramp(&[3, 2, 2], 0.75, -0.125);

const EXAMPLES: &[Example] = &[
    ex_ref(
        "plain",
        &[],
        &[THREE, X, STATE, STATE, W, PEEP, PEEP, PEEP, B],
    ),
    ex_ref(
        "peepholes, clipped",
        &[PEEPHOLE, ("cell_clip", "0.25")],
        &[THREE, X, STATE, STATE, W, PEEP, PEEP, PEEP, B],
    ),
    ex_err(
        "too long",
        &[],
        &[
            i64s(&[], &[4]),
            f32s(&[3, 2, 3], &[0.0]),
            f32s(&[2, 2], &[0.0]),
            f32s(&[2, 2], &[0.0]),
            f32s(&[5, 8], &[0.0]),
            f32s(&[2], &[0.0]),
            f32s(&[2], &[0.0]),
            f32s(&[2], &[0.0]),
            f32s(&[8], &[0.0]),
        ],
        Code::InvalidArgument,
        "seq_len_max must be <= timelen (x.dim_size(0)): 4 vs. 3",
    ),
];

const GRAD_EXAMPLES: &[Example] = &[
    ex_ref(
        "peepholes",
        &[PEEPHOLE],
        &[
            THREE, X, STATE, STATE, W, PEEP, PEEP, PEEP, B, STATES, STATES, STATES, STATES, STATES,
            STATES, STATES, STATES, STATES,
        ],
    ),
    ex_ref(
        "shorter than the sequence",
        &[("use_peephole", "false")],
        &[
            i64s(&[], &[2]),
            X,
            STATE,
            STATE,
            W,
            PEEP,
            PEEP,
            PEEP,
            B,
            STATES,
            STATES,
            STATES,
            STATES,
            STATES,
            STATES,
            STATES,
            STATES,
            STATES,
        ],
    ),
];

pub(crate) static OPS: [OpDef; 4] = [
    OpDef {
        name: "BlockLSTM",
        inputs: INPUTS,
        outputs: OUTPUTS,
        attrs: &[
            "forget_bias: float = 1.0",
            "cell_clip: float = 3.0",
            "use_peephole: bool = false",
            "T: {half, float}",
        ],
        gradient: Gradient::Rule(|g| gradient(g, "BlockLSTMGrad")),
        kernels: &[cpu(&[("T", HALF_OR_SINGLE)], |node| build(node, false))],
        examples: EXAMPLES,
        ..LSTM
    },
    OpDef {
        name: "BlockLSTMGrad",
        inputs: GRAD_INPUTS,
        outputs: GRAD_OUTPUTS,
        attrs: &["use_peephole: bool", "T: {half, float}"],
        kernels: &[cpu(&[("T", HALF_OR_SINGLE)], |node| {
            build_grad(node, false)
        })],
        examples: GRAD_EXAMPLES,
        ..LSTM
    },
    OpDef {
        name: "BlockLSTMGradV2",
        inputs: GRAD_INPUTS,
        outputs: GRAD_OUTPUTS,
        attrs: &["use_peephole: bool", "T: {half, float}"],
        kernels: &[cpu(&[("T", HALF_OR_SINGLE)], |node| build_grad(node, true))],
        examples: GRAD_EXAMPLES,
        ..LSTM
    },
    OpDef {
        name: "BlockLSTMV2",
        inputs: INPUTS,
        outputs: OUTPUTS,
        attrs: &[
            "cell_clip: float = 0.0",
            "use_peephole: bool = false",
            "T: {half, float}",
        ],
        // TensorFlow's rule takes the gates for those of the first version, so gradients are not compared with its.
        gradient: Gradient::Rule(|g| gradient(g, "BlockLSTMGradV2")),
        kernels: &[cpu(&[("T", HALF_OR_SINGLE)], |node| build(node, true))],
        scripts: &[script(
            "two steps",
            "n = int64[]{2}\nx = float[2,1,1]{0.5, -1}\nc = float[1,2]{0.25, -0.5}\nw = float[3,8]{0.125, -0.25, 0.5, 0.75, -1, 0.375, 0.625, -0.5, 1, 0.25, -0.125, 0.5, 0.875, -0.75, 0.25, 0.5, -0.5, 0.5, 0.25, -0.25, 1, 0.125, -1, 0.75}\np = float[2]{0.5, -0.25}\nb = float[8]{0.5, 0.25, -0.5, 0, 1, 0.125, 0.375, -1}\nl = BlockLSTMV2(n, x, c, c, w, p, p, p, b) {use_peephole=true, cell_clip=0.375}",
            &["fetch l, l:1, l:2, l:3, l:4, l:5, l:6 => ?"],
        )],
        ..LSTM
    },
];

fn gradient(g: &mut GradCtx<'_>, op: &str) -> Result<InputGrads> {
    let mut inputs: Vec<_> = (0..9).map(|index| g.input(index)).collect();
    inputs.extend((0..7).map(|index| g.output(index)));
    inputs.extend([g.grad(1)?, g.grad(6)?]);
    let use_peephole = g.attr("use_peephole")?;
    let mut node = g.builder().op(op);
    for input in inputs {
        node = node.input(input);
    }
    let node = node.attr("use_peephole", use_peephole).build()?;
    let mut grads = vec![None];
    grads.extend((0..8).map(|index| Some(Grad::Dense(node.output(index)))));
    Ok(grads)
}

/// The length of sequences, checked, and all that a step takes: time, batch and inputs.
fn times(ctx: &KernelCtx<'_>) -> Result<(usize, [usize; 3])> {
    let (length, x) = (ctx.input(0)?, ctx.input(1)?.shape());
    ensure!(
        length.rank() == 0,
        invalid_argument,
        "seq_len_max must be rank 0: seq_len_max_tensor must be rank 0 but is rank {}",
        length.rank()
    );
    ensure!(
        x.rank() == 3,
        invalid_argument,
        "x must be 3D: x must be rank 3 but is rank {}",
        x.rank()
    );
    let (length, time) = (length.to_scalar::<i64>()?, x.dim(0));
    ensure!(
        length >= 0,
        invalid_argument,
        "seq_len_max must be >= 0: {length}"
    );
    ensure!(
        length as usize <= time,
        invalid_argument,
        "seq_len_max must be <= timelen (x.dim_size(0)): {length} vs. {time}"
    );
    Ok((length as usize, [time, x.dim(1), x.dim(2)]))
}

fn build(node: &NodeInfo, forget_second: bool) -> Result<AnyKernel> {
    let attrs = &node.attrs;
    let forget_bias = match attrs.get("forget_bias") {
        Some(_) => attrs.float("forget_bias")?,
        None => 0.0,
    };
    let (cell_clip, use_peephole) = (attrs.float("cell_clip")?, attrs.bool("use_peephole")?);
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let (length, [time, batch, inputs]) = times(ctx)?;
        let sizes = sizes(ctx, [batch, inputs], 2)?;
        let lstm = Lstm {
            sizes,
            forget_bias,
            cell_clip,
            use_peephole,
            forget_second,
        };
        // Sequences of nothing may be longer than memory.
        Tensor::new(
            DType::F32,
            Shape::new(&[time as i64, batch as i64, sizes.units as i64])?,
        )?;
        let tensors = singles(ctx, 1, 8)?;
        let weights = weights(&tensors[3..])?;
        let (step, x_step) = (batch * sizes.units, batch * inputs);
        let mut outputs: [Vec<f32>; 7] = Default::default();
        for output in &mut outputs {
            *output = filled(0.0, time * step)?;
        }
        let mut cs = tensors[1].slice::<f32>()?.to_vec();
        let mut h = tensors[2].slice::<f32>()?.to_vec();
        for t in 0..length {
            ctx.poll();
            let x = &tensors[0].slice::<f32>()?[t * x_step..(t + 1) * x_step];
            let [i, cs_out, f, o, ci, co, h_out] = outputs
                .each_mut()
                .map(|output| &mut output[t * step..(t + 1) * step]);
            let out = LstmStep {
                i,
                cs: &mut *cs_out,
                f,
                o,
                ci,
                co,
                h: &mut *h_out,
            };
            lstm.forward(ctx.par(), (x, &cs, &h), &weights, out);
            cs.copy_from_slice(cs_out);
            h.copy_from_slice(h_out);
        }
        for (index, output) in outputs.into_iter().enumerate() {
            set(ctx, index, &[time, batch, sizes.units], output)?;
        }
        Ok(())
    })
}

fn build_grad(node: &NodeInfo, forget_second: bool) -> Result<AnyKernel> {
    let use_peephole = node.attrs.bool("use_peephole")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let (length, [time, batch, inputs]) = times(ctx)?;
        let sizes = sizes(ctx, [batch, inputs], 2)?;
        let units = sizes.units;
        let names = ["i", "cs", "f", "o", "ci", "co", "h", "cs_grad", "h_grad"];
        for (index, name) in (9..).zip(names) {
            let shape = ctx.input(index)?.shape();
            ensure!(
                shape.rank() == 3,
                invalid_argument,
                "{name} must be rank 3. Received: {}",
                shape.rank()
            );
            ensure!(
                shape.dims() == [time as i64, batch as i64, units as i64],
                invalid_argument,
                "{name} must have shape [{time},{batch},{units}]. Received: {shape}"
            );
        }
        let lstm = Lstm {
            sizes,
            forget_bias: 0.0,
            cell_clip: 0.0,
            use_peephole,
            forget_second,
        };
        let tensors = singles(ctx, 1, 17)?;
        let all = |index: usize| tensors[index - 1].slice::<f32>();
        let weights = weights(&tensors[3..])?;
        let (step, x_step) = (batch * units, batch * inputs);
        let mut x_grad = vec![0.0; time * x_step];
        let (mut cs_grad, mut h_grad) = (vec![0.0; step], vec![0.0; step]);
        let mut w_grad = vec![0.0; weights.w.len()];
        let mut b_grad = vec![0.0; 4 * units];
        let mut peepholes: [Vec<f32>; 3] = std::array::from_fn(|_| vec![0.0; units]);
        let mut gates = vec![0.0; 4 * step];
        for t in (0..length).rev() {
            ctx.poll();
            let now = |index: usize| {
                Ok::<_, tensorfleet_status::Status>(&all(index)?[t * step..(t + 1) * step])
            };
            let before = |index: usize, first: usize| {
                Ok::<_, tensorfleet_status::Status>(match t.checked_sub(1) {
                    Some(t) => &all(index)?[t * step..(t + 1) * step],
                    None => all(first)?,
                })
            };
            let out = LstmStep {
                i: now(9)?,
                cs: now(10)?,
                f: now(11)?,
                o: now(12)?,
                ci: now(13)?,
                co: now(14)?,
                h: now(15)?,
            };
            for (sum, grad) in cs_grad.iter_mut().zip(now(16)?) {
                *sum += grad;
            }
            for (sum, grad) in h_grad.iter_mut().zip(now(17)?) {
                *sum += grad;
            }
            let [wci, wcf, wco] = &mut peepholes;
            let mut peep = PeepholeGrads { wci, wcf, wco };
            let mut cs_prev_grad = vec![0.0; step];
            lstm.backward(
                before(10, 2)?,
                &weights,
                &out,
                (&cs_grad, &h_grad),
                (&mut gates, &mut cs_prev_grad),
                &mut peep,
            );
            cs_grad = cs_prev_grad;
            lstm.backward_weights(
                ctx.par(),
                (&all(1)?[t * x_step..(t + 1) * x_step], before(15, 3)?),
                (&gates, weights.w),
                (&mut x_grad[t * x_step..(t + 1) * x_step], &mut h_grad),
                (&mut w_grad, &mut b_grad),
            );
        }
        set(ctx, 0, &[time, batch, inputs], x_grad)?;
        set(ctx, 1, &[batch, units], cs_grad)?;
        set(ctx, 2, &[batch, units], h_grad)?;
        set(ctx, 3, &[inputs + units, 4 * units], w_grad)?;
        for (index, grad) in (4..).zip(peepholes) {
            set(ctx, index, &[units], grad)?;
        }
        set(ctx, 7, &[4 * units], b_grad)
    })
}
