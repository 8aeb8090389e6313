//! `CTCLoss`: connectionist temporal classification, the loss of a sequence of labels that is shorter than its inputs.
//!
//! TensorFlow: CTCLoss(inputs: T[time, batch, classes], labels_indices: int64, labels_values: int32, sequence_length: int32) ->
//! loss: T, gradient: T, with preprocess_collapse_repeated, ctc_merge_repeated, ignore_longer_outputs_than_inputs. The last class is
//! the blank. Everything is computed in double precision.

use tensorfleet_graph::example::{Data, Lit, ex_attrs, ex_err, ex_ref, f32s, i32s, i64s};
use tensorfleet_graph::gradient::{GradCtx, InputGrads};
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Code, Result, ensure, invalid_argument};
use tensorfleet_tensor::{DType, Shape, Tensor};

use crate::math::calculus::first_of;
use crate::math::cast::{converted, doubles};
use crate::types::SINGLE_AND_DOUBLE;

/// In single precision: TensorFlow's doubles have no more digits.
const INPUTS: Lit = Lit {
    dtype: Some(DType::F32),
    dims: &[4, 2, 3],
    data: Data::Ramp(-1.0, 0.125),
};
const INDICES: Lit = i64s(&[3, 2], &[0, 0, 0, 1, 1, 0]);
const VALUES: Lit = i32s(&[3], &[0, 1, 1]);
const LENGTHS: Lit = i32s(&[2], &[4, 3]);
/// Pairs of a label and a step that may be looked at for one sequence.
const MOST_STATES: usize = 1 << 28;

const SINGLES: Lit = f32s(&[4, 2, 3], &[0.5]);

pub(crate) static OP: OpDef = OpDef {
    name: "CTCLoss",
    inputs: &[
        "inputs: T",
        "labels_indices: int64",
        "labels_values: int32",
        "sequence_length: int32",
    ],
    outputs: &["loss: T", "gradient: T"],
    attrs: &[
        "preprocess_collapse_repeated: bool = false",
        "ctc_merge_repeated: bool = true",
        "ignore_longer_outputs_than_inputs: bool = false",
        "T: {float, double} = DT_FLOAT",
    ],
    infer: shapes,
    gradient: Gradient::Rule(gradient),
    kernels: &[cpu(&[("T", SINGLE_AND_DOUBLE)], build)],
    exactness: Exactness::Relative(4e-6),
    examples: &[
        ex_ref("two sequences", &[], &[INPUTS, INDICES, VALUES, LENGTHS]),
        ex_ref(
            "repeated labels",
            &[],
            &[INPUTS, INDICES, i32s(&[3], &[1, 1, 0]), LENGTHS],
        ),
        ex_ref(
            "collapsed, not merged",
            &[
                ("preprocess_collapse_repeated", "true"),
                ("ctc_merge_repeated", "false"),
            ],
            &[INPUTS, INDICES, i32s(&[3], &[1, 1, 0]), LENGTHS],
        ),
        ex_attrs(
            "longer than its inputs, ignored",
            &[("ignore_longer_outputs_than_inputs", "true")],
            &[
                f32s(&[1, 1, 2], &[0.0]),
                i64s(&[2, 2], &[0, 0, 0, 1]),
                i32s(&[2], &[0, 0]),
                i32s(&[1], &[1]),
            ],
            &[f32s(&[1], &[0.0]), f32s(&[1, 1, 2], &[0.0])],
        ),
        ex_err(
            "not enough time",
            &[],
            &[SINGLES, INDICES, VALUES, i32s(&[2], &[1, 3])],
            Code::InvalidArgument,
            "Not enough time for target transition sequence (required: 2, available: 1)",
        ),
        ex_err(
            "no labels",
            &[],
            &[SINGLES, i64s(&[1, 2], &[0, 0]), i32s(&[1], &[0]), LENGTHS],
            Code::InvalidArgument,
            "Labels length is zero in batch 1",
        ),
        ex_err(
            "lengths",
            &[],
            &[SINGLES, INDICES, VALUES, i32s(&[2], &[5, 3])],
            Code::InvalidArgument,
            "sequence_length(0) <= 4",
        ),
    ],
    ..OpDef::BLANK
};

fn shapes(ctx: &mut InferCtx<'_>) -> Result<()> {
    ctx.set(0, ctx.input(3).clone());
    ctx.set(1, ctx.input(0).clone());
    Ok(())
}

/// The gradient is an output already; it is scaled by what is asked for each loss.
fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (grad, output) = (g.grad(0)?, g.output(1));
    let axis = g.builder().constant(Tensor::scalar(-1i32))?;
    let grad = g.apply("ExpandDims", &[grad, axis])?;
    let scaled = g.apply("Mul", &[grad, output])?;
    first_of(4, scaled)
}

/// A node's attributes.
#[derive(Clone, Copy)]
struct Rules {
    collapse: bool,
    merge: bool,
    ignore_longer: bool,
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let attrs = &node.attrs;
    let rules = Rules {
        collapse: attrs.bool("preprocess_collapse_repeated")?,
        merge: attrs.bool("ctc_merge_repeated")?,
        ignore_longer: attrs.bool("ignore_longer_outputs_than_inputs")?,
    };
    let dtype = attrs.dtype("T")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let shape = ctx.input(0)?.shape().clone();
        ensure!(
            shape.rank() == 3,
            invalid_argument,
            "inputs is not a 3-Tensor"
        );
        let (time, batch, classes) = (shape.dim(0), shape.dim(1), shape.dim(2));
        ensure!(
            time != 0,
            invalid_argument,
            "Max time or first dimension of input cannot be 0."
        );
        let lengths = lengths(ctx, time, batch)?;
        let labels = labels(ctx, batch)?;
        ensure!(batch != 0, invalid_argument, "batch_size must not be 0");
        let inputs = doubles(ctx.input(0)?)?;
        let mut losses = vec![0.0; batch];
        let mut grads = vec![0.0; inputs.len()];
        for at in 0..batch {
            let spaced = spaced(&labels[at], at, classes, lengths[at], rules)?;
            let too_long = rules.ignore_longer && labels[at].len() > lengths[at];
            if lengths[at] == 0 || too_long {
                continue;
            }
            ensure!(
                spaced.len().saturating_mul(lengths[at]) <= MOST_STATES,
                resource_exhausted,
                "{} labels over {} steps are too many",
                spaced.len(),
                lengths[at]
            );
            let row = |t: usize| (t * batch + at) * classes;
            let y: Vec<Vec<f64>> = (0..lengths[at])
                .map(|t| softmax(&inputs[row(t)..row(t) + classes]))
                .collect();
            let (loss, dy) = one(&spaced, &y, rules.merge);
            losses[at] = loss;
            for (t, dy) in dy.iter().enumerate() {
                grads[row(t)..row(t) + classes].copy_from_slice(dy);
            }
        }
        let losses = Tensor::from_vec(Shape::vector(batch), losses)?;
        let grads = Tensor::from_vec(shape, grads)?;
        ctx.set(0, converted(ctx.par(), &losses, dtype)?);
        ctx.set(1, converted(ctx.par(), &grads, dtype)?);
        Ok(())
    })
}

fn lengths(ctx: &KernelCtx<'_>, time: usize, batch: usize) -> Result<Vec<usize>> {
    let lengths = ctx.input(3)?;
    ensure!(
        lengths.rank() == 1,
        invalid_argument,
        "sequence_length is not a vector"
    );
    let lengths = lengths.slice::<i32>()?;
    ensure!(
        lengths.len() == batch,
        invalid_argument,
        "len(sequence_length) != batch_size.  len(sequence_length):  {} batch_size: {batch}",
        lengths.len()
    );
    let checked = lengths.iter().enumerate().map(|(at, &length)| {
        let found = usize::try_from(length).map_err(|_| invalid_argument!("seq_len({at}) < 0"))?;
        ensure!(
            found <= time,
            invalid_argument,
            "sequence_length({at}) <= {time}"
        );
        Ok(found)
    });
    checked.collect()
}

/// The labels of each sequence.
fn labels(ctx: &KernelCtx<'_>, batch: usize) -> Result<Vec<Vec<i32>>> {
    let (indices, values) = (ctx.input(1)?, ctx.input(2)?);
    ensure!(
        indices.rank() == 2,
        invalid_argument,
        "labels_indices is not a matrix"
    );
    let columns = indices.shape().dim(1);
    ensure!(
        columns > 1,
        invalid_argument,
        "labels_indices second dimension must be >= 1. Received {columns}"
    );
    ensure!(
        values.rank() == 1,
        invalid_argument,
        "labels_values is not a vector"
    );
    ensure!(
        indices.shape().dim(0) == values.elements(),
        invalid_argument,
        "labels_indices and labels_values must contain the same number of rows, but saw shapes: {} vs. {}",
        indices.shape(),
        values.shape()
    );
    let rows: Vec<&[i64]> = indices.slice::<i64>()?.chunks_exact(columns).collect();
    let mut labels = vec![Vec::new(); batch];
    for (at, (row, &value)) in rows.iter().zip(values.slice::<i32>()?).enumerate() {
        let sequence = usize::try_from(row[0]).ok().filter(|_| row[1] >= 0);
        let Some(sequence) = sequence.and_then(|sequence| labels.get_mut(sequence)) else {
            return Err(invalid_argument!(
                "label SparseTensor is not valid: indices[{at}] = {row:?} is out of bounds: need 0 <= index < [{batch}]"
            ));
        };
        ensure!(
            at == 0 || rows[at - 1] < *row,
            invalid_argument,
            "label SparseTensor is not valid: indices[{at}] = {row:?} is out of order"
        );
        sequence.push(value);
    }
    Ok(labels)
}

/// Labels with blanks before, between and behind them.
fn spaced(
    label: &[i32],
    at: usize,
    classes: usize,
    length: usize,
    rules: Rules,
) -> Result<Vec<usize>> {
    ensure!(
        !label.is_empty(),
        invalid_argument,
        "Labels length is zero in batch {at}"
    );
    let blank = classes.saturating_sub(1);
    let (mut spaced, mut finished) = (vec![blank], false);
    for (i, &value) in label.iter().enumerate() {
        if rules.collapse && i > 0 && value == label[i - 1] {
            continue;
        }
        if i64::from(value) >= blank as i64 {
            finished = true;
            continue;
        }
        ensure!(
            !finished,
            invalid_argument,
            "Saw a non-null label (index >= num_classes - 1) following a null label, batch: {at} num_classes: {classes} labels: {label:?}"
        );
        let value = usize::try_from(value).map_err(|_| {
            invalid_argument!(
                "All labels must be nonnegative integers, batch: {at} labels: {label:?}"
            )
        })?;
        spaced.extend([value, blank]);
    }
    ensure!(
        rules.ignore_longer || label.len() <= length,
        invalid_argument,
        "Not enough time for target transition sequence (required: {}, available: {length}){at}You can turn this error into a warning by using the flag ignore_longer_outputs_than_inputs",
        label.len()
    );
    Ok(spaced)
}

fn softmax(row: &[f64]) -> Vec<f64> {
    let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let powers: Vec<f64> = row.iter().map(|x| (x - largest).exp()).collect();
    let sum: f64 = powers.iter().sum();
    powers.iter().map(|power| power / sum).collect()
}

/// The logarithm of the sum of two numbers whose logarithms are given.
pub(super) fn log_sum(a: f64, b: f64) -> f64 {
    let (high, low) = if a > b { (a, b) } else { (b, a) };
    if high == f64::NEG_INFINITY {
        return high;
    }
    high + (low - high).exp().ln_1p()
}

/// The loss of one sequence with these probabilities, and its gradient.
fn one(labels: &[usize], y: &[Vec<f64>], merge: bool) -> (f64, Vec<Vec<f64>>) {
    let (count, time) = (labels.len(), y.len());
    let blank = labels[0];
    let skips = |u: usize| labels[u] != blank && !(merge && labels[u] == labels[u - 2]);
    let stays = |u: usize| merge || labels[u] == blank;
    // Where a path can be that still comes to the end.
    let reach = |t: usize| count.saturating_sub(2 * (time - t))..count.min(2 * (t + 1));
    let none = vec![vec![f64::NEG_INFINITY; count]; time];
    let (mut alpha, mut beta) = (none.clone(), none);
    for u in 0..count.min(2) {
        alpha[0][u] = y[0][labels[u]].ln();
    }
    for t in 1..time {
        for u in reach(t) {
            let before = &alpha[t - 1];
            let mut sum = if stays(u) {
                before[u]
            } else {
                f64::NEG_INFINITY
            };
            if u > 0 {
                sum = log_sum(sum, before[u - 1]);
            }
            if u > 1 && skips(u) {
                sum = log_sum(sum, before[u - 2]);
            }
            alpha[t][u] = y[t][labels[u]].ln() + sum;
        }
    }
    beta[time - 1][count.saturating_sub(2)..].fill(0.0);
    for t in (0..time - 1).rev() {
        for u in reach(t) {
            let next = |v: usize| beta[t + 1][v] + y[t + 1][labels[v]].ln();
            let mut sum = if stays(u) { next(u) } else { f64::NEG_INFINITY };
            if u + 1 < count {
                sum = log_sum(sum, next(u + 1));
            }
            if u + 2 < count && skips(u + 2) {
                sum = log_sum(sum, next(u + 2));
            }
            beta[t][u] = sum;
        }
    }
    let at_start = alpha[0].iter().zip(&beta[0]).map(|(a, b)| a + b);
    let total = at_start.fold(f64::NEG_INFINITY, log_sum);
    if total == f64::NEG_INFINITY {
        return (f64::INFINITY, y.to_vec());
    }
    let mut grads = y.to_vec();
    for (t, grad) in grads.iter_mut().enumerate() {
        let mut sums = vec![f64::NEG_INFINITY; grad.len()];
        for (u, &label) in labels.iter().enumerate() {
            sums[label] = log_sum(sums[label], alpha[t][u] + beta[t][u]);
        }
        for (grad, sum) in grad.iter_mut().zip(sums) {
            *grad -= (sum - total).exp();
        }
    }
    (-total, grads)
}
