//! Candidate samplers: classes to compare the true ones with, and how often each is expected among them.
//!
//! TensorFlow: Op(true_classes: int64[batch, num_true]) -> (sampled_candidates: int64[num_sampled], true_expected_count:
//! float[batch, num_true], sampled_expected_count: float[num_sampled]); ComputeAccidentalHits(true_classes: int64,
//! sampled_candidates: int64) -> (indices: int32, ids: int64, weights: float).

mod hits;
mod sampler;

pub(crate) use hits::OP as HITS;

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use tensorfleet_graph::example::script;
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, Attrs, KernelCtx, NodeInfo};
use tensorfleet_math::random::Words;
use tensorfleet_status::{Result, cancelled, ensure, invalid_argument, resource_exhausted};
use tensorfleet_tensor::{DType, PartialShape, Shape, Tensor, UNKNOWN_DIM};

use self::sampler::{Fixed, Sampler, Seen};
use super::Stream;
use crate::io::lines::Lines;

/// Words of the stream that TensorFlow sets aside for each candidate.
const RESERVED_WORDS: u64 = 2048;
/// More classes with weights of their own than these are no vocabulary.
const MOST_WEIGHTS: i64 = 1 << 28;

const SAMPLER: OpDef = OpDef {
    inputs: &["true_classes: int64"],
    outputs: &[
        "sampled_candidates: int64",
        "true_expected_count: float",
        "sampled_expected_count: float",
    ],
    attrs: &[
        "num_true: int >= 1",
        "num_sampled: int >= 1",
        "unique: bool",
        "range_max: int >= 1",
        "seed: int = 0",
        "seed2: int = 0",
    ],
    stateful: true,
    infer: shapes,
    gradient: Gradient::Stop("candidates are integers, their counts depend on nothing"),
    exactness: Exactness::Rounding,
    ..OpDef::BLANK
};

macro_rules! two_runs {
    ($op:literal, $more:literal) => {
        script(
            "alike and unlike, two runs",
            concat!(
                "t = int64[2,1]{3, 5}
                 a = ",
                $op,
                "(t) {num_true=1, num_sampled=5, unique=false, ",
                $more,
                "seed=3, seed2=7}
                 u = ",
                $op,
                "(t) {num_true=1, num_sampled=5, unique=true, ",
                $more,
                "seed=3, seed2=7}"
            ),
            &[
                "fetch a, a:1, a:2, u, u:1, u:2 => ?",
                "fetch a, a:1, a:2, u, u:1, u:2 => ?",
                "fetch a, a:1, a:2, u, u:1, u:2 => ?",
            ],
        )
    };
}

pub(crate) static OPS: [OpDef; 6] = [
    OpDef {
        name: "UniformCandidateSampler",
        kernels: &[cpu(&[], |node| by_range(node, |_| Ok(Sampler::Uniform)))],
        scripts: &[
            two_runs!("UniformCandidateSampler", "range_max=11, "),
            script(
                "what is refused",
                "t = int64[2,1]{3, 5}
                 v = int64[2]{3, 5}
                 rank = UniformCandidateSampler(v) {num_true=1, num_sampled=2, unique=false, range_max=9}
                 columns = UniformCandidateSampler(t) {num_true=2, num_sampled=2, unique=false, range_max=9}
                 few = UniformCandidateSampler(t) {num_true=1, num_sampled=9, unique=true, range_max=8}
                 far = UniformCandidateSampler(t) {num_true=1, num_sampled=2, unique=false, range_max=5}",
                &[
                    "fetch rank fails INVALID_ARGUMENT ",
                    "fetch columns fails INVALID_ARGUMENT true_classes must have num_true columns, expected: 1 was: 2",
                    "fetch few fails INVALID_ARGUMENT Sampler's range is too small.",
                    "fetch far fails INVALID_ARGUMENT `true_candidate` out of range [0, 5), received 5",
                ],
            ),
        ],
        ..SAMPLER
    },
    OpDef {
        name: "LogUniformCandidateSampler",
        kernels: &[cpu(&[], |node| by_range(node, |_| Ok(Sampler::LogUniform)))],
        scripts: &[two_runs!("LogUniformCandidateSampler", "range_max=11, ")],
        ..SAMPLER
    },
    OpDef {
        name: "LearnedUnigramCandidateSampler",
        kernels: &[cpu(&[], |node| by_range(node, learned))],
        scripts: &[two_runs!("LearnedUnigramCandidateSampler", "range_max=11, ")],
        ..SAMPLER
    },
    OpDef {
        name: "ThreadUnsafeUnigramCandidateSampler",
        kernels: &[cpu(&[], |node| by_range(node, learned))],
        scripts: &[two_runs!("ThreadUnsafeUnigramCandidateSampler", "range_max=11, ")],
        ..SAMPLER
    },
    OpDef {
        name: "AllCandidateSampler",
        attrs: &[
            "num_true: int >= 1",
            "num_sampled: int >= 1",
            "unique: bool",
            "seed: int = 0",
            "seed2: int = 0",
        ],
        kernels: &[cpu(&[], |node| {
            let range = node.attrs.int("num_sampled")?;
            build(node, Sampler::All, range)
        })],
        scripts: &[script(
            "all",
            "t = int64[2,1]{0, 2}
             a = AllCandidateSampler(t) {num_true=1, num_sampled=3, unique=true}
             many = AllCandidateSampler(t) {num_true=1, num_sampled=68719476736, unique=true}",
            &[
                "fetch a, a:1, a:2 => int64[3]{0, 1, 2}; float[2,1]{1, 1}; float[3]{1, 1, 1}",
                "fetch many fails INVALID_ARGUMENT Attr num_sampled has value 68719476736 out of range for an int32",
            ],
        )],
        ..SAMPLER
    },
    OpDef {
        name: "FixedUnigramCandidateSampler",
        attrs: &[
            "num_true: int >= 1",
            "num_sampled: int >= 1",
            "unique: bool",
            "range_max: int >= 1",
            "vocab_file: string = ''",
            "distortion: float = 1.0",
            "num_reserved_ids: int = 0",
            "num_shards: int >= 1 = 1",
            "shard: int >= 0 = 0",
            "unigrams: list(float) = []",
            "seed: int = 0",
            "seed2: int = 0",
        ],
        kernels: &[cpu(&[], |node| by_range(node, fixed))],
        scripts: &[
            two_runs!(
                "FixedUnigramCandidateSampler",
                "range_max=7, unigrams=[1.0, 0.5, 3.0, 2.0, 0.25, 4.0], num_reserved_ids=1, distortion=0.75, "
            ),
            script(
                "weights",
                "t = int64[2,1]{0, 1}
                 none = FixedUnigramCandidateSampler(t) {num_true=1, num_sampled=1, unique=false, range_max=2}
                 few = FixedUnigramCandidateSampler(t) {num_true=1, num_sampled=1, unique=false, range_max=3, unigrams=[1.0, 2.0]}",
                &[
                    "fetch none fails INVALID_ARGUMENT Must provide either vocab_file or unigrams.",
                    "fetch few fails INVALID_ARGUMENT range is 3 must be equal to weights size  2",
                ],
            ),
        ],
        ..SAMPLER
    },
];

fn shapes(ctx: &mut InferCtx<'_>) -> Result<()> {
    let sampled = ctx.attrs().int("num_sampled")?;
    let rows = ctx.input(0).dim(0).map_or(UNKNOWN_DIM, |rows| rows);
    let columns = ctx.attrs().int("num_true")?;
    ctx.set(0, PartialShape::new(&[sampled]));
    ctx.set(1, PartialShape::new(&[rows, columns]));
    ctx.set(2, PartialShape::new(&[sampled]));
    Ok(())
}

fn by_range(node: &NodeInfo, sampler: fn(&Attrs) -> Result<Sampler>) -> Result<AnyKernel> {
    let range = node.attrs.int("range_max")?;
    build(node, sampler(&node.attrs)?, range)
}

fn learned(attrs: &Attrs) -> Result<Sampler> {
    let range = attrs.int("range_max")?;
    let range = i32::try_from(range).ok().filter(|range| *range < i32::MAX);
    let range = range.ok_or_else(|| invalid_argument!("range_max must be an int32"))?;
    Ok(Sampler::Seen(Seen::new(range as u32)))
}

fn fixed(attrs: &Attrs) -> Result<Sampler> {
    let file = String::from_utf8_lossy(attrs.bytes("vocab_file")?).into_owned();
    let unigrams = attrs.floats("unigrams")?;
    ensure!(
        !file.is_empty() || !unigrams.is_empty(),
        invalid_argument,
        "Must provide either vocab_file or unigrams."
    );
    ensure!(
        file.is_empty() || unigrams.is_empty(),
        invalid_argument,
        "Must only provide one of vocab_file and unigrams."
    );
    let (shards, shard) = (attrs.int("num_shards")?.max(1), attrs.int("shard")?);
    let (reserved, range) = (attrs.int("num_reserved_ids")?, attrs.int("range_max")?);
    ensure!(
        reserved <= MOST_WEIGHTS && range <= MOST_WEIGHTS,
        resource_exhausted,
        "{range} classes of which {reserved} are reserved are too many"
    );
    let distortion = attrs.float("distortion")?;
    let mut weights: Vec<f32> = (0..reserved)
        .filter(|id| id % shards == shard)
        .map(|_| 0.0)
        .collect();
    let mut total = 0.0f32;
    let first = weights.len() as i64;
    let mut add = |at: usize, weight: &dyn Fn() -> Result<f32>| -> Result<()> {
        if (first + at as i64) % shards == shard {
            let weight = weight()?.powf(distortion);
            total += weight;
            weights.push(weight);
        }
        Ok(())
    };
    if file.is_empty() {
        for (at, weight) in unigrams.iter().enumerate() {
            add(at, &|| Ok(*weight))?;
        }
    } else {
        let mut lines = Lines::open(&file)?;
        for at in 0.. {
            let Some(line) = lines.next_line()? else {
                break;
            };
            add(at, &|| {
                let line = String::from_utf8_lossy(&line);
                let last = line.rsplit(',').next().unwrap_or_default();
                let weight = last.trim().parse::<f32>();
                weight.map_err(|_| invalid_argument!("Wrong vocabulary format at line: {line}"))
            })?;
        }
    }
    ensure!(
        range == weights.len() as i64,
        invalid_argument,
        "range is {range} must be equal to weights size  {}",
        weights.len()
    );
    Ok(Sampler::Fixed(Fixed::new(weights, total)))
}

fn build(node: &NodeInfo, sampler: Sampler, range: i64) -> Result<AnyKernel> {
    let attrs = &node.attrs;
    let sampled = attrs.int("num_sampled")?;
    let count = i32::try_from(sampled).ok();
    let count = count.and_then(|count| usize::try_from(count).ok());
    let wanted = Wanted {
        count: count.ok_or_else(|| {
            invalid_argument!("Attr num_sampled has value {sampled} out of range for an int32")
        })?,
        is_unique: attrs.bool("unique")?,
        columns: attrs.int("num_true")?,
        range,
    };
    let (stream, sampler) = (Stream::new(node)?, Mutex::new(sampler));
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let classes = wanted.check(ctx.input(0)?)?;
        let samples = RESERVED_WORDS.wrapping_mul(wanted.count as u64).div_ceil(4);
        let mut words = Words::new(stream.reserve_samples(samples));
        let mut sampler = sampler.lock().unwrap_or_else(PoisonError::into_inner);
        let (drawn, tries) = wanted.draw(ctx, &sampler, &mut words)?;
        let expected = |class: &i64| {
            let probability = sampler.probability(*class, range);
            if let Sampler::All = *sampler {
                probability
            } else if tries == wanted.count {
                probability * wanted.count as f32
            } else {
                -(tries as f32 * (-probability).ln_1p()).exp_m1()
            }
        };
        let of_true: Vec<f32> = classes.iter().map(expected).collect();
        let shape_of_drawn = Shape::new(&[drawn.len() as i64])?;
        let mut of_drawn = ctx.allocate(DType::F32, shape_of_drawn.clone())?;
        for (slot, class) in of_drawn.slice_mut::<f32>()?.iter_mut().zip(&drawn) {
            *slot = expected(class);
        }
        if let Sampler::Seen(seen) = &mut *sampler {
            seen.see(classes);
        }
        let shape = ctx.input(0)?.shape().clone();
        ctx.set(1, Tensor::from_vec(shape, of_true)?);
        ctx.set(2, of_drawn);
        ctx.set(0, Tensor::from_vec(shape_of_drawn, drawn)?);
        Ok(())
    })
}

/// What the attributes ask for.
struct Wanted {
    count: usize,
    is_unique: bool,
    columns: i64,
    range: i64,
}

impl Wanted {
    /// The true classes.
    fn check<'a>(&self, classes: &'a Tensor) -> Result<&'a [i64]> {
        ensure!(
            classes.rank() == 2,
            invalid_argument,
            "true_classes must be a matrix"
        );
        let columns = classes.shape().dims()[1];
        ensure!(
            columns == self.columns,
            invalid_argument,
            "true_classes must have num_true columns, expected: {columns} was: {}",
            self.columns
        );
        ensure!(
            !self.is_unique || self.count as i64 <= self.range,
            invalid_argument,
            "Sampler's range is too small."
        );
        let classes = classes.slice::<i64>()?;
        for class in classes {
            ensure!(
                (0..self.range).contains(class),
                invalid_argument,
                "`true_candidate` out of range [0, {}), received {class}",
                self.range
            );
        }
        Ok(classes)
    }

    /// The candidates, and how many were drawn until there were enough.
    fn draw(
        &self,
        ctx: &KernelCtx<'_>,
        sampler: &Sampler,
        words: &mut Words,
    ) -> Result<(Vec<i64>, usize)> {
        // A tensor's size is checked before it is made.
        Tensor::new(DType::I64, Shape::new(&[self.count as i64])?)?;
        let no_memory = |_| resource_exhausted!("no memory for {} candidates", self.count);
        let mut drawn = Vec::new();
        drawn.try_reserve_exact(self.count).map_err(no_memory)?;
        if let Sampler::All = sampler {
            drawn.extend(0..self.range);
            return Ok((drawn, self.count));
        }
        if !self.is_unique {
            drawn.extend((0..self.count).map(|_| sampler.draw(words, self.range)));
            return Ok((drawn, self.count));
        }
        if let Sampler::Fixed(fixed) = sampler {
            ensure!(
                self.count <= fixed.possible(),
                invalid_argument,
                "Sampler's range is too small."
            );
        }
        let (mut used, mut tries) = (HashSet::new(), 0usize);
        used.try_reserve(self.count).map_err(|_| {
            resource_exhausted!("no memory for {} candidates that differ", self.count)
        })?;
        while drawn.len() < self.count {
            tries += 1;
            if tries.is_multiple_of(1 << 16) && ctx.is_cancelled() {
                return Err(cancelled!(
                    "the step was cancelled while candidates were drawn"
                ));
            }
            let class = sampler.draw(words, self.range);
            if used.insert(class) {
                drawn.push(class);
            }
        }
        Ok((drawn, tries))
    }
}
