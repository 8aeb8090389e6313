//! `CTCGreedyDecoder`, `CTCBeamSearchDecoder`: the labels of sequences of class scores.
//!
//! TensorFlow: CTCGreedyDecoder(inputs: T[time, batch, classes], sequence_length: int32) -> decoded_indices: int64,
//! decoded_values: int64, decoded_shape: int64, log_probability: T, with merge_repeated and blank_index;
//! CTCBeamSearchDecoder alike, with beam_width, and lists of the top_paths best sequences. The last class is the blank. Scores are
//! added up in double precision.

use std::collections::HashMap;

use tensorfleet_graph::example::{Example, Lit, ex, ex_err, ex_ref, f32s, i32s, i64s, ramp};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::par::{poll, poll_at};
use tensorfleet_status::{Code, Result, ensure, failed_precondition, invalid_argument};
use tensorfleet_tensor::{DType, Shape, Tensor};

use super::ctc_loss::log_sum;
use crate::math::cast::{converted, doubles};
use crate::types::SINGLE_AND_DOUBLE;

const SCORES: Lit = f32s(
    &[4, 1, 3],
    &[
        0.5, 0.25, 0.125, 0.75, 0.5, 0.0, 0.0, 0.25, 1.0, 0.125, 0.75, 0.25,
    ],
);
const FOUR: Lit = i32s(&[1], &[4]);
const WIDTH: (&str, &str) = ("beam_width", "4");
const PATHS: (&str, &str) = ("top_paths", "2");

const BEAM: &[Example] = &[
    ex_ref("two paths", &[WIDTH, PATHS], &[SCORES, FOUR]),
    ex_ref(
        "not merged",
        &[WIDTH, PATHS, ("merge_repeated", "false")],
        &[ramp(&[5, 2, 4], 1.0, -0.0625), i32s(&[2], &[5, 3])],
    ),
    ex_err(
        "more paths than beams",
        &[("beam_width", "1"), PATHS],
        &[SCORES, FOUR],
        Code::InvalidArgument,
        "requested more paths than the beam width.",
    ),
];

const DECODER: OpDef = OpDef {
    inputs: &["inputs: T", "sequence_length: int32"],
    gradient: Gradient::Stop("labels are not differentiated"),
    exactness: Exactness::Relative(2e-6),
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "CTCBeamSearchDecoder",
        outputs: &[
            "decoded_indices: top_paths * int64",
            "decoded_values: top_paths * int64",
            "decoded_shape: top_paths * int64",
            "log_probability: T",
        ],
        attrs: &[
            "beam_width: int >= 1",
            "top_paths: int >= 1",
            "merge_repeated: bool = true",
            "T: {float, double} = DT_FLOAT",
        ],
        kernels: &[cpu(&[("T", SINGLE_AND_DOUBLE)], build_beam)],
        examples: BEAM,
        ..DECODER
    },
    OpDef {
        name: "CTCGreedyDecoder",
        outputs: &[
            "decoded_indices: int64",
            "decoded_values: int64",
            "decoded_shape: int64",
            "log_probability: T",
        ],
        attrs: &[
            "merge_repeated: bool = false",
            "blank_index: int = -1",
            "T: {float, double} = DT_FLOAT",
        ],
        kernels: &[cpu(&[("T", SINGLE_AND_DOUBLE)], build_greedy)],
        examples: &[
            ex(
                "a blank between",
                &[SCORES, FOUR],
                &[
                    i64s(&[3, 2], &[0, 0, 0, 1, 0, 2]),
                    i64s(&[3], &[0, 0, 1]),
                    i64s(&[2], &[1, 3]),
                    f32s(&[1, 1], &[-3.0]),
                ],
            ),
            ex_ref("merged", &[("merge_repeated", "true")], &[SCORES, FOUR]),
            ex_ref("another blank", &[("blank_index", "0")], &[SCORES, FOUR]),
            ex_err(
                "blank",
                &[("blank_index", "3")],
                &[SCORES, FOUR],
                Code::InvalidArgument,
                "blank_index expected to be between -3 and 2 but was 3",
            ),
            ex_err(
                "too long",
                &[],
                &[SCORES, i32s(&[1], &[5])],
                Code::FailedPrecondition,
                "sequence_length(0) <= 4",
            ),
            ex_err(
                "empty",
                &[],
                &[f32s(&[0, 1, 3], &[]), i32s(&[1], &[0])],
                Code::InvalidArgument,
                "inputs must not be empty",
            ),
        ],
        ..DECODER
    },
];

/// Checked inputs: scores, the lengths of sequences, and the numbers of sequences and classes.
struct Sequences<'a> {
    scores: Vec<f64>,
    lengths: &'a [i32],
    batch: usize,
    classes: usize,
}

impl<'a> Sequences<'a> {
    fn new(ctx: &'a KernelCtx<'_>) -> Result<Sequences<'a>> {
        let (inputs, lengths) = (ctx.input(0)?, ctx.input(1)?);
        let shape = inputs.shape();
        ensure!(
            shape.rank() == 3,
            invalid_argument,
            "inputs is not a 3-Tensor"
        );
        ensure!(
            !inputs.is_empty(),
            invalid_argument,
            "inputs must not be empty"
        );
        ensure!(
            lengths.rank() == 1,
            invalid_argument,
            "sequence_length is not a vector"
        );
        let (time, batch, lengths) = (shape.dim(0), shape.dim(1), lengths.slice::<i32>()?);
        if lengths.len() != batch {
            return Err(failed_precondition!(
                "len(sequence_length) != batch_size.  len(sequence_length):  {} batch_size: {batch}",
                lengths.len()
            ));
        }
        if let Some(at) = lengths
            .iter()
            .position(|length| i64::from(*length) > time as i64)
        {
            return Err(failed_precondition!("sequence_length({at}) <= {time}"));
        }
        Ok(Sequences {
            scores: doubles(inputs)?,
            lengths,
            batch,
            classes: shape.dim(2),
        })
    }

    /// The scores of one sequence, step by step.
    fn steps(&self, at: usize) -> impl Iterator<Item = &[f64]> {
        let length = self.lengths[at].max(0) as usize;
        let rows = self.scores.chunks_exact(self.classes);
        rows.skip(at).step_by(self.batch).take(length)
    }
}

/// Indices, values and shape of sequences as a sparse tensor.
fn sparse(sequences: &[&Vec<i64>]) -> Result<[Tensor; 3]> {
    let (mut indices, mut values) = (Vec::new(), Vec::new());
    for (at, sequence) in sequences.iter().enumerate() {
        for (place, value) in sequence.iter().enumerate() {
            indices.extend([at as i64, place as i64]);
            values.push(*value);
        }
    }
    let longest = sequences.iter().map(|sequence| sequence.len()).max();
    let shape = [sequences.len() as i64, longest.unwrap_or(0) as i64];
    Ok([
        Tensor::from_vec(Shape::matrix(values.len(), 2)?, indices)?,
        Tensor::vector(&values),
        Tensor::vector(&shape),
    ])
}

fn build_greedy(node: &NodeInfo) -> Result<AnyKernel> {
    let attrs = &node.attrs;
    let (merge, blank) = (attrs.bool("merge_repeated")?, attrs.int("blank_index")?);
    let dtype = attrs.dtype("T")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let sequences = Sequences::new(ctx)?;
        let classes = sequences.classes as i64;
        let index = if blank < 0 { classes + blank } else { blank };
        ensure!(
            (0..classes).contains(&index),
            invalid_argument,
            "blank_index expected to be between {} and {} but was {blank}",
            -classes,
            classes - 1
        );
        let (mut found, mut scores) = (Vec::new(), Vec::new());
        for at in 0..sequences.batch {
            let (mut labels, mut score, mut before) = (Vec::new(), 0.0, -1);
            for row in sequences.steps(at) {
                let best =
                    row.iter().enumerate().fold(
                        0,
                        |best, (class, x)| {
                            if *x > row[best] { class } else { best }
                        },
                    );
                score -= row[best];
                let label = best as i64;
                if label != index && !(merge && label == before) {
                    labels.push(label);
                }
                before = label;
            }
            found.push(labels);
            scores.push(score);
        }
        let shape = Shape::matrix(sequences.batch, 1)?;
        let outputs = sparse(&found.iter().collect::<Vec<_>>())?;
        for (index, output) in outputs.into_iter().enumerate() {
            ctx.set(index, output);
        }
        set_scores(ctx, 3, dtype, shape, scores)
    })
}

fn set_scores(
    ctx: &mut KernelCtx<'_>,
    index: usize,
    dtype: DType,
    shape: Shape,
    scores: Vec<f64>,
) -> Result<()> {
    let scores = converted(ctx.par(), &Tensor::from_vec(shape, scores)?, dtype)?;
    ctx.set(index, scores);
    Ok(())
}

/// Logarithms of probabilities: of all paths to a sequence, of those that end in a blank, and of those that end in a label.
#[derive(Clone, Copy)]
struct Chance {
    total: f64,
    blank: f64,
    label: f64,
}

const NEVER: Chance = Chance {
    total: f64::NEG_INFINITY,
    blank: f64::NEG_INFINITY,
    label: f64::NEG_INFINITY,
};

/// A sequence of labels: another one and a last label.
struct Beam {
    parent: Option<usize>,
    label: Option<usize>,
    old: Chance,
    new: Chance,
}

/// A search for the most likely sequences, of which it keeps so many.
struct Search {
    width: usize,
    beams: Vec<Beam>,
    children: HashMap<(usize, usize), usize>,
    /// The beams that are kept, best first.
    leaves: Vec<usize>,
}

impl Search {
    fn new(width: usize) -> Search {
        let start = Chance {
            total: 0.0,
            blank: 0.0,
            label: f64::NEG_INFINITY,
        };
        Search {
            width,
            beams: vec![Beam {
                parent: None,
                label: None,
                old: NEVER,
                new: start,
            }],
            children: HashMap::new(),
            leaves: vec![0],
        }
    }

    /// Keeps a beam; if there are too many, the worst is forgotten.
    fn push(&mut self, beam: usize) {
        let total = self.beams[beam].new.total;
        let beams = &self.beams;
        let at = self
            .leaves
            .partition_point(|leaf| beams[*leaf].new.total >= total);
        self.leaves.insert(at, beam);
        self.leaves.truncate(self.width);
    }

    fn is_candidate(&self, total: f64) -> bool {
        let worst = self.leaves.last().map(|leaf| self.beams[*leaf].new.total);
        let has_room = self.leaves.len() < self.width;
        total > f64::NEG_INFINITY && (has_room || worst.is_none_or(|worst| total > worst))
    }

    fn step(&mut self, row: &[f64]) {
        poll();
        let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = row.iter().map(|x| (x - largest).exp()).sum();
        let norm = largest + sum.ln();
        let blank = row.len() - 1;
        let branches = std::mem::take(&mut self.leaves);
        for &at in &branches {
            self.beams[at].old = self.beams[at].new;
        }
        for (turn, &at) in branches.iter().enumerate() {
            poll_at(turn);
            let Beam {
                parent,
                label,
                old,
                new,
            } = self.beams[at];
            let mut chance = new;
            if let (Some(parent), Some(label)) = (parent, label) {
                let above = &self.beams[parent];
                if above.new.total != f64::NEG_INFINITY {
                    let same = above.label == Some(label);
                    let before = if same {
                        above.old.blank
                    } else {
                        above.old.total
                    };
                    chance.label = log_sum(chance.label, before);
                }
                chance.label += row[label] - norm;
            }
            chance.blank = old.total + row[blank] - norm;
            chance.total = log_sum(chance.blank, chance.label);
            self.beams[at].new = chance;
            self.push(at);
        }
        for (turn, &at) in branches.iter().enumerate() {
            poll_at(turn);
            let (old, own) = (self.beams[at].old, self.beams[at].label);
            if !self.is_candidate(old.total) {
                continue;
            }
            for (label, &logit) in row[..blank].iter().enumerate() {
                let child = self.children.get(&(at, label)).copied();
                if child.is_some_and(|child| self.beams[child].new.total != f64::NEG_INFINITY) {
                    continue;
                }
                let before = if own == Some(label) {
                    old.blank
                } else {
                    old.total
                };
                let score = logit - norm + before;
                if !self.is_candidate(score) {
                    continue;
                }
                if self.leaves.len() == self.width
                    && let Some(&worst) = self.leaves.last()
                {
                    self.beams[worst].new = NEVER;
                }
                let new = Chance {
                    total: score,
                    blank: f64::NEG_INFINITY,
                    label: score,
                };
                let child = child.unwrap_or_else(|| {
                    self.beams.push(Beam {
                        parent: Some(at),
                        label: Some(label),
                        old: NEVER,
                        new: NEVER,
                    });
                    self.children.insert((at, label), self.beams.len() - 1);
                    self.beams.len() - 1
                });
                self.beams[child].new = new;
                self.push(child);
            }
        }
    }

    /// The labels of a beam.
    fn labels(&self, mut at: usize, merge: bool) -> Vec<i64> {
        let (mut labels, mut before) = (Vec::new(), None);
        while let (Some(parent), Some(label)) = (self.beams[at].parent, self.beams[at].label) {
            if !merge || before != Some(label) {
                labels.push(label as i64);
            }
            (before, at) = (Some(label), parent);
        }
        labels.reverse();
        labels
    }
}

fn build_beam(node: &NodeInfo) -> Result<AnyKernel> {
    let attrs = &node.attrs;
    let (merge, dtype) = (attrs.bool("merge_repeated")?, attrs.dtype("T")?);
    let size = |name: &str| -> Result<usize> {
        let value = attrs.int(name)?;
        usize::try_from(value).map_err(|_| invalid_argument!("{name} must be positive: {value}"))
    };
    let (width, paths) = (size("beam_width")?, size("top_paths")?);
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let sequences = Sequences::new(ctx)?;
        let (mut found, mut scores) = (Vec::new(), Vec::new());
        for at in 0..sequences.batch {
            let mut search = Search::new(width);
            sequences.steps(at).for_each(|row| search.step(row));
            ensure!(
                paths <= width,
                invalid_argument,
                "requested more paths than the beam width."
            );
            ensure!(
                paths <= search.leaves.len(),
                invalid_argument,
                "Less leaves in the beam search than requested."
            );
            let best = &search.leaves[..paths];
            scores.extend(best.iter().map(|leaf| search.beams[*leaf].new.total));
            let labels = best.iter().map(|leaf| search.labels(*leaf, merge));
            found.push(labels.collect::<Vec<_>>());
        }
        let shape = Shape::matrix(sequences.batch, paths)?;
        for path in 0..paths {
            let labels: Vec<&Vec<i64>> = found.iter().map(|paths| &paths[path]).collect();
            for (kind, output) in sparse(&labels)?.into_iter().enumerate() {
                ctx.set(kind * paths + path, output);
            }
        }
        set_scores(ctx, 3 * paths, dtype, shape, scores)
    })
}
