//! `NearestNeighbors`, `KmeansPlusPlusInitialization`, `KMC2ChainInitialization`: what k-means is made of.
//!
//! TensorFlow: NearestNeighbors(points: float, centers: float, k: int64) -> nearest_center_indices: int64,
//! nearest_center_distances: float (squared); KmeansPlusPlusInitialization(points: float, num_to_sample: int64, seed: int64,
//! num_retries_per_sample: int64) -> samples: float; KMC2ChainInitialization(distances: float, seed: int64) -> index: int64.

use std::collections::HashSet;

use tensorfleet_graph::example::{Lit, ex, ex_err, ex_ref, f32s, i64s};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx};
use tensorfleet_math::gemm::{Dims, Epilogue, Operand, gemm};
use tensorfleet_math::random::Philox;
use tensorfleet_status::{Code, Result, ensure};
use tensorfleet_tensor::{Shape, Tensor};

use crate::random::Words;
use crate::room::{filled, room};

/// Points whose products with all centers are looked at together.
const BLOCK: usize = 256;

/// Draws after which a point that was not sampled yet is taken instead.
const PATIENCE: usize = 10_000;

const POINTS: Lit = f32s(
    &[5, 2],
    &[1.0, 1.0, 1.5, 1.0, 9.0, 9.0, 8.0, 9.5, -4.0, 2.0],
);
const CENTERS: Lit = f32s(&[3, 2], &[0.0, 0.0, 8.0, 8.0, -4.0, 4.0]);

const CLUSTER: OpDef = OpDef {
    gradient: Gradient::None("TensorFlow has none"),
    exactness: Exactness::Relative(1e-6),
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 3] = [
    OpDef {
        name: "KMC2ChainInitialization",
        inputs: &["distances: float", "seed: int64"],
        outputs: &["index: int64"],
        infer: infer::scalar,
        kernels: &[cpu(&[], |_| AnyKernel::sync(chain))],
        examples: &[
            ex_ref(
                "a chain",
                &[],
                &[f32s(&[6], &[1.0, 2.0, 0.5, 4.0, 1.0, 3.0]), i64s(&[], &[7])],
            ),
            ex_err(
                "no distances",
                &[],
                &[f32s(&[0], &[]), i64s(&[], &[7])],
                Code::InvalidArgument,
                "Expected distances_tensor.size() > 0.",
            ),
        ],
        ..CLUSTER
    },
    OpDef {
        name: "KmeansPlusPlusInitialization",
        inputs: &[
            "points: float",
            "num_to_sample: int64",
            "seed: int64",
            "num_retries_per_sample: int64",
        ],
        outputs: &["samples: float"],
        kernels: &[cpu(&[], |_| AnyKernel::sync(plus_plus))],
        examples: &[
            ex_ref(
                "without retries",
                &[],
                &[POINTS, i64s(&[], &[3]), i64s(&[], &[42]), i64s(&[], &[0])],
            ),
            ex_ref(
                "with retries",
                &[],
                &[POINTS, i64s(&[], &[2]), i64s(&[], &[5]), i64s(&[], &[-1])],
            ),
            ex_err(
                "too many",
                &[],
                &[POINTS, i64s(&[], &[6]), i64s(&[], &[42]), i64s(&[], &[0])],
                Code::InvalidArgument,
                "Expected num_to_sample <= points.rows(). 6 vs 5.",
            ),
        ],
        ..CLUSTER
    },
    OpDef {
        name: "NearestNeighbors",
        inputs: &["points: float", "centers: float", "k: int64"],
        outputs: &[
            "nearest_center_indices: int64",
            "nearest_center_distances: float",
        ],
        kernels: &[cpu(&[], |_| AnyKernel::sync(nearest))],
        examples: &[
            ex(
                "two of three",
                &[f32s(&[1, 2], &[1.0, 0.0]), CENTERS, i64s(&[], &[2])],
                &[i64s(&[1, 2], &[0, 2]), f32s(&[1, 2], &[1.0, 41.0])],
            ),
            ex_ref(
                "more than there are",
                &[],
                &[POINTS, CENTERS, i64s(&[], &[9])],
            ),
            ex_ref("the nearest", &[], &[POINTS, CENTERS, i64s(&[], &[1])]),
            ex_err(
                "dimensions",
                &[],
                &[POINTS, f32s(&[3, 1], &[0.0]), i64s(&[], &[1])],
                Code::InvalidArgument,
                "Expected point_dimensions == center_dimensions: 2 vs 1.",
            ),
        ],
        ..CLUSTER
    },
];

/// The stream of a seed.
fn words(seed: i64) -> Words {
    Words::new(Philox::from_key_counter(seed as u64, [0, 0]))
}

fn scalar(ctx: &KernelCtx<'_>, index: usize, name: &str) -> Result<i64> {
    let tensor = ctx.input(index)?;
    ensure!(
        tensor.rank() == 0,
        invalid_argument,
        "Input {name} should be a scalar."
    );
    tensor.to_scalar::<i64>()
}

/// The rows of a matrix: how many, and their length.
fn matrix(ctx: &KernelCtx<'_>, index: usize, name: &str) -> Result<[usize; 2]> {
    let shape = ctx.input(index)?.shape();
    ensure!(
        shape.rank() == 2,
        invalid_argument,
        "Input {name} should be a matrix."
    );
    Ok([shape.dim(0), shape.dim(1)])
}

fn half_squares(rows: &[f32], length: usize) -> Vec<f32> {
    let rows = rows.chunks_exact(length.max(1));
    rows.map(|row| 0.5 * row.iter().map(|x| x * x).sum::<f32>())
        .collect()
}

fn chain(ctx: &mut KernelCtx<'_>) -> Result<()> {
    let distances = ctx.input(0)?;
    ensure!(
        distances.rank() == 1,
        invalid_argument,
        "Input distances should be a vector."
    );
    let mut words = words(scalar(ctx, 1, "seed")?);
    let distances = distances.slice::<f32>()?;
    ensure!(
        !distances.is_empty(),
        invalid_argument,
        "Expected distances_tensor.size() > 0."
    );
    let mut selected = 0;
    for (at, &distance) in distances.iter().enumerate().skip(1) {
        if distance > words.float() * distances[selected] {
            selected = at;
        }
    }
    ctx.set(0, Tensor::scalar(selected as i64));
    Ok(())
}

/// Points that are sampled one after the other, those far from the others first.
struct Sampling<'a> {
    points: &'a [f32],
    length: usize,
    half_squares: Vec<f32>,
    /// Half the squared distance of each point to the nearest sample.
    distances: Vec<f32>,
    sampled: HashSet<usize>,
    words: Words,
}

impl Sampling<'_> {
    /// A point that was not sampled yet, likelier the farther it is.
    fn draw(&mut self) -> usize {
        let count = self.half_squares.len();
        if self.sampled.is_empty() {
            return (self.words.below_long(count as u64) as usize).min(count - 1);
        }
        let mut sum = 0.0;
        let sums: Vec<f32> = self
            .distances
            .iter()
            .map(|distance| {
                sum += distance;
                sum
            })
            .collect();
        for _ in 0..PATIENCE {
            let place = self.words.float() * sum;
            let found = sums.partition_point(|sum| *sum <= place);
            if !self.sampled.contains(&found) {
                return found.min(count - 1);
            }
        }
        let mut left = (0..count).filter(|at| !self.sampled.contains(at));
        left.next().unwrap_or(0)
    }

    /// What the distances are with one more sample.
    fn with(&self, at: usize) -> Vec<f32> {
        let sample = &self.points[at * self.length..(at + 1) * self.length];
        let rows = self.points.chunks_exact(self.length.max(1));
        let known = self.half_squares.iter().zip(&self.distances);
        rows.zip(known)
            .map(|(row, (half, known))| {
                let product: f32 = row.iter().zip(sample).map(|(a, b)| a * b).sum();
                (half - product + self.half_squares[at]).min(*known)
            })
            .collect()
    }

    /// Samples the best of some points.
    fn sample(&mut self, ctx: &KernelCtx<'_>, retries: usize) -> Result<usize> {
        let mut best: Option<(f32, usize, Vec<f32>)> = None;
        for _ in 0..=retries {
            ensure!(
                !ctx.is_cancelled(),
                cancelled,
                "the step was cancelled while points were sampled"
            );
            let at = self.draw();
            let distances = self.with(at);
            let sum: f32 = distances.iter().sum();
            if best.as_ref().is_none_or(|(least, ..)| sum < *least) {
                best = Some((sum, at, distances));
            }
        }
        let Some((_, at, distances)) = best else {
            return Ok(0);
        };
        self.distances = distances;
        self.sampled.insert(at);
        Ok(at)
    }
}

fn plus_plus(ctx: &mut KernelCtx<'_>) -> Result<()> {
    let [count, length] = matrix(ctx, 0, "points")?;
    let wanted = scalar(ctx, 1, "num_to_sample")?;
    let seed = scalar(ctx, 2, "seed")?;
    let retries = scalar(ctx, 3, "num_retries_per_sample")?;
    ensure!(count > 0, invalid_argument, "Expected points.rows() > 0.");
    ensure!(wanted > 0, invalid_argument, "Expected num_to_sample > 0.");
    ensure!(
        wanted as u64 <= count as u64,
        invalid_argument,
        "Expected num_to_sample <= points.rows(). {wanted} vs {count}."
    );
    let retries = match usize::try_from(retries) {
        Ok(retries) => retries,
        Err(_) => 2 + (wanted as f64).ln() as usize,
    };
    let points = ctx.input(0)?.slice::<f32>()?;
    let half_squares = match length {
        0 => filled(0.0, count)?,
        _ => half_squares(points, length),
    };
    let mut sampling = Sampling {
        points,
        length,
        half_squares,
        distances: filled(f32::INFINITY, count)?,
        sampled: HashSet::new(),
        words: words(seed),
    };
    let mut samples = Vec::with_capacity(wanted as usize * length);
    for _ in 0..wanted {
        if length > 0 {
            let at = sampling.sample(ctx, retries)?;
            samples.extend_from_slice(&points[at * length..(at + 1) * length]);
        }
    }
    ctx.set(
        0,
        Tensor::from_vec(Shape::new(&[wanted, length as i64])?, samples)?,
    );
    Ok(())
}

fn nearest(ctx: &mut KernelCtx<'_>) -> Result<()> {
    let [count, length] = matrix(ctx, 0, "points")?;
    let [centers, center_length] = matrix(ctx, 1, "centers")?;
    let wanted = scalar(ctx, 2, "k")?;
    ensure!(count > 0, invalid_argument, "Expected points.rows() > 0.");
    ensure!(
        length == center_length,
        invalid_argument,
        "Expected point_dimensions == center_dimensions: {length} vs {center_length}."
    );
    let shape = Shape::new(&[count as i64, wanted.min(centers as i64)])?;
    let k = shape.dim(1);
    let (points, rows) = (ctx.input(0)?.slice::<f32>()?, ctx.input(1)?.slice::<f32>()?);
    let (mut indices, mut distances) = (Vec::new(), Vec::new());
    let blocks = if k == 0 || length == 0 { 0 } else { count };
    let halves = half_squares(rows, length);
    for first in (0..blocks).step_by(BLOCK) {
        let points = &points[first * length..count.min(first + BLOCK) * length];
        let dims = Dims {
            m: points.len() / length,
            n: centers,
            k: length,
        };
        let mut products = vec![0.0; dims.m * centers];
        let (a, b) = (
            Operand::new(points, length),
            Operand::transposed(rows, length),
        );
        gemm(
            ctx.par(),
            dims,
            1.0,
            a,
            b,
            0.0,
            &mut products,
            centers,
            Epilogue::None,
        );
        for (half, row) in half_squares(points, length)
            .iter()
            .zip(products.chunks_exact(centers))
        {
            let parts: Vec<f32> = halves
                .iter()
                .zip(row)
                .map(|(half, product)| half - product)
                .collect();
            let mut order: Vec<usize> = (0..centers).collect();
            let by_distance = |a: &usize, b: &usize| parts[*a].total_cmp(&parts[*b]).then(a.cmp(b));
            if k < centers {
                order.select_nth_unstable_by(k, by_distance);
                order.truncate(k);
            }
            order.sort_unstable_by(by_distance);
            indices.extend(order.iter().map(|at| *at as i64));
            distances.extend(
                order
                    .iter()
                    .map(|at| (2.0 * f64::from(half + parts[*at])) as f32),
            );
        }
    }
    if length == 0 {
        // All distances are zero, so the first centers are as near as any.
        indices = room(count.saturating_mul(k))?;
        for _ in 0..count {
            ctx.poll();
            indices.extend(0..k as i64);
        }
        distances = filled(0.0, count * k)?;
    }
    ctx.set(0, Tensor::from_vec(shape.clone(), indices)?);
    ctx.set(1, Tensor::from_vec(shape, distances)?);
    Ok(())
}
