//! `AnonymousSeedGenerator`, `AnonymousRandomSeedGenerator`, `DummySeedGenerator` and their end: where shuffles have their seeds
//! from, one pair for each time they begin.
//!
//! TensorFlow: AnonymousSeedGenerator(seed: int64, seed2: int64, reshuffle: bool) -> handle: resource, deleter: variant;
//! AnonymousRandomSeedGenerator, without reshuffle, always fails there and here; DummySeedGenerator() -> handle: resource, a handle of
//! nothing; DeleteSeedGenerator(handle: resource, deleter: variant).

use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};

use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo, Resource};
use tensorfleet_math::random::Philox;
use tensorfleet_status::{Code, Result, invalid_argument};

use crate::dataset::handles;
use crate::dataset::kernel;

const SEEDS: OpDef = OpDef {
    stateful: true,
    gradient: Gradient::None("seeds are not differentiated"),
    cost: Cost::Cheap,
    exactness: Exactness::Bits,
    scripts: &[super::shuffle::SCRIPT],
    ..OpDef::BLANK
};

const DELETE: OpDef = OpDef {
    inputs: &["handle: resource", "deleter: variant"],
    kernels: &[cpu(&[], handles::build_delete_named)],
    ..SEEDS
};

pub(crate) static OPS: [OpDef; 5] = [
    OpDef {
        name: "AnonymousRandomSeedGenerator",
        inputs: &["seed: int64", "seed2: int64"],
        outputs: &["handle: resource", "deleter: variant"],
        infer: infer::scalar,
        kernels: &[cpu(&[], |_| {
            // TensorFlow's kernel asks for an input that the op does not have.
            AnyKernel::sync(|_: &mut KernelCtx<'_>| {
                Err(invalid_argument!("Unknown input name: reshuffle"))
            })
        })],
        ..SEEDS
    },
    OpDef {
        name: "AnonymousSeedGenerator",
        inputs: &["seed: int64", "seed2: int64", "reshuffle: bool"],
        outputs: &["handle: resource", "deleter: variant"],
        infer: infer::scalar,
        kernels: &[cpu(&[], build)],
        ..SEEDS
    },
    OpDef {
        name: "DeleteRandomSeedGenerator",
        ..DELETE
    },
    OpDef {
        name: "DeleteSeedGenerator",
        ..DELETE
    },
    OpDef {
        name: "DummySeedGenerator",
        outputs: &["handle: resource"],
        infer: infer::scalar,
        kernels: &[cpu(&[], handles::build_dummy)],
        ..SEEDS
    },
];

/// Pairs of seeds.
pub(super) struct SeedGenerator {
    seeds: (i64, i64),
    /// `None` if all pairs are the same.
    words: Option<Mutex<Words>>,
}

/// The words of a stream, one after the other.
pub(super) struct Words {
    philox: Philox,
    sample: [u32; 4],
    used: usize,
}

impl Words {
    pub(super) fn new(seeds: (i64, i64)) -> Words {
        Words {
            philox: Philox::new(seeds.0, seeds.1),
            sample: [0; 4],
            used: 4,
        }
    }

    pub(super) fn next(&mut self) -> u32 {
        if self.used == self.sample.len() {
            self.sample = self.philox.next_sample();
            self.used = 0;
        }
        let word = self.sample[self.used];
        self.used += 1;
        word
    }
}

impl Resource for SeedGenerator {
    fn type_name(&self) -> &'static str {
        "N10tensorflow4data20SeedGeneratorManagerE"
    }
}

impl SeedGenerator {
    /// Two zeros stand for seeds that nobody can foresee.
    pub(super) fn new(mut seeds: (i64, i64), reshuffle: bool) -> SeedGenerator {
        if seeds == (0, 0) {
            seeds = (entropy(), entropy());
        }
        SeedGenerator {
            seeds,
            words: reshuffle.then(|| Mutex::new(Words::new(seeds))),
        }
    }

    /// The next pair.
    pub(super) fn next(&self) -> (i64, i64) {
        let Some(words) = &self.words else {
            return self.seeds;
        };
        let mut words = words.lock().unwrap_or_else(PoisonError::into_inner);
        (i64::from(words.next()), i64::from(words.next()))
    }

    /// The generator of an input; `None` if its handle is one of nothing.
    pub(super) fn input(ctx: &KernelCtx<'_>, index: usize) -> Result<Option<Arc<SeedGenerator>>> {
        match ctx.resource::<SeedGenerator>(index) {
            Err(status) if status.code() == Code::NotFound => Ok(None),
            found => found.map(Some),
        }
    }
}

/// Bits that nobody can foresee: the standard library seeds its hashers with them.
fn entropy() -> i64 {
    RandomState::new().hash_one(0u64) as i64
}

fn build(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let seeds = (
            kernel::scalar(ctx, 0, "seed")?,
            kernel::scalar(ctx, 1, "seed2")?,
        );
        let reshuffle = kernel::scalar(ctx, 2, "reshuffle")?;
        let generator = Arc::new(SeedGenerator::new(seeds, reshuffle));
        handles::hand_out_anonymous(ctx, "SeedGenerator", generator);
        Ok(())
    })
}
