//! `EditDistance`: how many insertions, deletions and substitutions lead from one sequence to another.
//!
//! TensorFlow: EditDistance(hypothesis_indices: int64, hypothesis_values: T, hypothesis_shape: int64, truth_indices: int64,
//! truth_values: T, truth_shape: int64) -> output: float: the last dimension holds the sequences. With normalize it is divided by
//! the length of the truth: infinite where that is empty and the hypothesis is not.

use std::collections::BTreeMap;

use tensorfleet_graph::example::{Example, ex, ex_attrs, ex_err, f32s, i64s, strs, x};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::par::poll_at;
use tensorfleet_status::{Code, Result, ensure, invalid_argument};
use tensorfleet_tensor::{DType, Shape, TString, Tensor};

use super::parts::Part;
use crate::types::VALUES;

const EXAMPLES: &[Example] = &[
    ex(
        "a group each",
        &[
            i64s(&[3, 2], &[0, 0, 0, 1, 1, 0]),
            x(&[3], &[0.0, 1.0, 1.0]),
            i64s(&[2], &[2, 2]),
            i64s(&[3, 2], &[0, 0, 1, 0, 1, 1]),
            x(&[3], &[0.0, 1.0, 0.0]),
            i64s(&[2], &[2, 2]),
        ],
        &[f32s(&[2], &[1.0, 0.5])],
    ),
    ex_attrs(
        "letters, not normalized",
        &[("normalize", "false")],
        &[
            i64s(&[6, 2], &[0, 0, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5]),
            strs(&[6], &["k", "i", "t", "t", "e", "n"]),
            i64s(&[2], &[1, 6]),
            i64s(&[7, 2], &[0, 0, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6]),
            strs(&[7], &["s", "i", "t", "t", "i", "n", "g"]),
            i64s(&[2], &[1, 7]),
        ],
        &[f32s(&[1], &[3.0])],
    ),
    ex(
        "one is missing",
        &[
            i64s(&[1, 2], &[0, 0]),
            strs(&[1], &["a"]),
            i64s(&[2], &[3, 1]),
            i64s(&[2, 2], &[1, 0, 1, 1]),
            strs(&[2], &["a", "b"]),
            i64s(&[2], &[3, 2]),
        ],
        &[f32s(&[3], &[f64::INFINITY, 1.0, 0.0])],
    ),
    ex_err(
        "ranks differ",
        &[],
        &[
            i64s(&[1, 2], &[0, 0]),
            strs(&[1], &["a"]),
            i64s(&[2], &[3, 1]),
            i64s(&[1, 3], &[0, 0, 0]),
            strs(&[1], &["a"]),
            i64s(&[3], &[3, 1, 1]),
        ],
        Code::InvalidArgument,
        "",
    ),
];

pub(crate) static OP: OpDef = OpDef {
    name: "EditDistance",
    inputs: &[
        "hypothesis_indices: int64",
        "hypothesis_values: T",
        "hypothesis_shape: int64",
        "truth_indices: int64",
        "truth_values: T",
        "truth_shape: int64",
    ],
    outputs: &["output: float"],
    attrs: &["normalize: bool = true", "T: type"],
    gradient: Gradient::Stop("a count is not differentiated"),
    kernels: &[cpu(&[("T", VALUES)], build)],
    exactness: Exactness::Rounding,
    examples: EXAMPLES,
    ..OpDef::BLANK
};

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let is_normalized = node.attrs.bool("normalize")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let (hypothesis, truth) = (Part::of(ctx, 0)?, Part::of(ctx, 3)?);
        for (name, part) in [("Hypothesis", &hypothesis), ("Truth", &truth)] {
            ensure!(
                part.rank() >= 2,
                invalid_argument,
                "Input {name} SparseTensors must have rank at least 2, but {}_shape rank is: {}",
                name.to_lowercase(),
                part.rank()
            );
        }
        ensure!(
            hypothesis.rank() == truth.rank(),
            invalid_argument,
            "Expected hypothesis and truth to have the same rank, got {} and {}",
            hypothesis.rank(),
            truth.rank()
        );
        let groups = hypothesis.rank() - 1;
        let dims: Vec<i64> = hypothesis.shape[..groups]
            .iter()
            .zip(&truth.shape)
            .map(|(a, b)| *a.max(b))
            .collect();
        let mut out = Tensor::zeros(DType::F32, Shape::new(&dims)?)?;
        measure(&hypothesis, &truth, &dims, is_normalized, &mut out)?;
        ctx.set(0, out);
        Ok(())
    })
}

/// The bytes of each value.
fn items(values: &Tensor) -> Result<Vec<&[u8]>> {
    if values.dtype() == DType::String {
        return Ok(values
            .slice::<TString>()?
            .iter()
            .map(|text| &text[..])
            .collect());
    }
    let size = values.dtype().size().unwrap_or(1);
    let bytes = values.bytes().unwrap_or_default();
    Ok(bytes.chunks_exact(size).collect())
}

/// The sequences by the position of their group.
fn sequences<'a>(
    part: &'a Part,
    dims: &[i64],
    count: usize,
) -> Result<BTreeMap<usize, Vec<&'a [u8]>>> {
    let mut out: BTreeMap<usize, Vec<&[u8]>> = BTreeMap::new();
    for (at, value) in items(&part.values)?.into_iter().enumerate() {
        let place = part
            .row(at)
            .iter()
            .zip(dims)
            .fold(0i64, |place, (at, dim)| {
                place.saturating_mul(*dim).saturating_add(*at)
            });
        let group = usize::try_from(place).ok().filter(|group| *group < count);
        let group = group.ok_or_else(|| {
            invalid_argument!(
                "Got an inner product {place} which would require writing to outside of the buffer for the output tensor (max elements {count})"
            )
        })?;
        out.entry(group).or_default().push(value);
    }
    Ok(out)
}

fn measure(
    hypothesis: &Part,
    truth: &Part,
    dims: &[i64],
    is_normalized: bool,
    out: &mut Tensor,
) -> Result<()> {
    let slots = out.slice_mut::<f32>()?;
    let given = sequences(hypothesis, dims, slots.len())?;
    let wanted = sequences(truth, dims, slots.len())?;
    for (group, slot) in slots.iter_mut().enumerate() {
        poll_at(group);
        let own = given.get(&group).map_or(&[][..], Vec::as_slice);
        let goal = wanted.get(&group).map_or(&[][..], Vec::as_slice);
        let edits = distance(own, goal) as f32;
        *slot = match (is_normalized, goal.len()) {
            (false, _) => edits,
            (true, 0) if own.is_empty() => 0.0,
            (true, 0) => f32::INFINITY,
            (true, length) => edits / length as f32,
        };
    }
    Ok(())
}

/// The Levenshtein distance, row by row.
fn distance(a: &[&[u8]], b: &[&[u8]]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        poll_at(i);
        let mut corner = i;
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let kept = corner + usize::from(x != y);
            corner = row[j + 1];
            row[j + 1] = kept.min(corner + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
