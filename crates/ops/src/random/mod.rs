//! Random numbers, bit-exact with TensorFlow for given seeds.

mod binomial;
mod bounded;
mod candidates;
mod distribution;
mod generator;
mod index_shuffle;
mod keys;
mod multinomial;
mod rates;
mod shuffle;
mod sobol;
mod stateful;
mod stateless;
mod words;

use crate::Family;

pub(crate) use words::Words;

pub(crate) static FAMILY: Family = Family {
    name: "random",
    ops: &[&candidates::HITS, &index_shuffle::OP, &sobol::OP],
    tables: &[
        &binomial::OPS,
        &bounded::OPS,
        &candidates::OPS,
        &generator::OPS,
        &keys::OPS,
        &multinomial::OPS,
        &rates::OPS,
        &shuffle::OPS,
        &stateful::OPS,
        &stateless::OPS,
    ],
};

use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError};

use tensorfleet_graph::Output;
use tensorfleet_graph::gradient::GradCtx;
use tensorfleet_kernel::{KernelCtx, NodeInfo};
use tensorfleet_math::random::Philox;
use tensorfleet_status::{Result, internal};
use tensorfleet_tensor::{DType, Shape, Tensor, bf16, f16};

/// The stream of a stateful random op: every run takes the next part of it.
pub(crate) struct Stream(Mutex<Philox>);

impl Stream {
    /// The stream of the node's seeds; two zeros mean that every kernel gets a stream of its own.
    pub(crate) fn new(node: &NodeInfo) -> Result<Stream> {
        let (seed, seed2) = (node.attrs.int("seed")?, node.attrs.int("seed2")?);
        let philox = if seed == 0 && seed2 == 0 {
            Philox::new(entropy(), entropy())
        } else {
            Philox::new(seed, seed2)
        };
        Ok(Stream(Mutex::new(philox)))
    }

    /// The part of the stream for a run with this many outputs.
    fn reserve(&self, outputs: usize) -> Philox {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .reserve_outputs(outputs)
    }

    /// The part of the stream that is this many samples long.
    pub(crate) fn reserve_samples(&self, samples: u64) -> Philox {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .reserve_samples(samples)
    }
}

/// Bits that nobody can foresee: the standard library seeds its hashers with them.
pub(crate) fn entropy() -> i64 {
    RandomState::new().hash_one(0u64) as i64
}

/// The shape in input `index`.
fn shape_input(ctx: &KernelCtx<'_>, index: usize) -> Result<Shape> {
    if ctx.input(index)?.rank() != 1 {
        return Err(tensorfleet_status::invalid_argument!(
            "shape must be a vector of {{int32,int64}}, got shape {}",
            ctx.input(index)?.shape()
        ));
    }
    Shape::new(&ctx.ints(index)?)
}

/// A part of the gradient for each sample, summed over the samples that a parameter was broadcast to.
fn sum_to(g: &mut GradCtx<'_>, part: Output, parameter: Output) -> Result<Output> {
    let (own, whole) = (g.shape(parameter)?, g.shape(part)?);
    let args = g.builder().op("BroadcastGradientArgs");
    let args = args.input(own).input(whole).build()?;
    let sum = g.apply("Sum", &[part, args.output(0)])?;
    g.apply("Reshape", &[sum, own])
}

/// The elements of a tensor of real numbers in double precision.
fn doubles(tensor: &Tensor) -> Result<Vec<f64>> {
    Ok(match tensor.dtype() {
        DType::F64 => tensor.slice::<f64>()?.to_vec(),
        DType::F32 => tensor
            .slice::<f32>()?
            .iter()
            .map(|x| f64::from(*x))
            .collect(),
        DType::F16 => tensor.slice::<f16>()?.iter().map(|x| x.to_f64()).collect(),
        DType::BF16 => tensor.slice::<bf16>()?.iter().map(|x| x.to_f64()).collect(),
        DType::I32 => tensor
            .slice::<i32>()?
            .iter()
            .map(|x| f64::from(*x))
            .collect(),
        DType::I64 => tensor.slice::<i64>()?.iter().map(|x| *x as f64).collect(),
        other => return Err(internal!("no parameters of {other}")),
    })
}
