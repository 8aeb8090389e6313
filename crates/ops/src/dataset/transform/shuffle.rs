//! `ShuffleDataset`, `ShuffleDatasetV2`, `V3`, `ShuffleAndRepeatDataset`, `V2`: elements in another order, chosen among as many
//! as a buffer holds.
//!
//! TensorFlow: ShuffleDataset(input_dataset: variant, buffer_size: int64, seed: int64, seed2: int64) -> handle: variant; V2 has
//! seed_generator: resource instead of seeds, V3 both; ShuffleAndRepeatDataset has count: int64 behind the seeds, V2 also
//! seed_generator. The order is TensorFlow's for given seeds. With a count, elements of up to three epochs wait in the buffer,
//! and each epoch ends before the next begins.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Poll, Waker, ready};

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, NodeInfo};
use tensorfleet_status::{Result, ensure};

use super::seeds::{SeedGenerator, Words};
use crate::dataset::home::{Key, Place};
use crate::dataset::kernel::{self, DATASET};
use crate::dataset::value::{Dataset, Element, INFINITE, Iterate, Next, Stage, UNKNOWN};

pub(super) const SCRIPT: Script = script(
    "in TensorFlow's order for given seeds",
    "zero = int64[]{0}
     one = int64[]{1}
     two = int64[]{2}
     three = int64[]{3}
     ten = int64[]{10}
     numbers = RangeDataset(zero, ten, one) {output_types=[DT_INT64], output_shapes=[[]]}
     four = int64[]{4}
     all = int64[]{-2}
     many = int64[]{30}
     yes = bool[]{true}
     keep = bool[]{false}
     dummy = DummySeedGenerator()
     seeds = AnonymousSeedGenerator(three, four, yes)
     more = AnonymousRandomSeedGenerator(three, four)
     a = ShuffleDataset(numbers, four, three, two) {output_types=[DT_INT64], output_shapes=[[]]}
     twice = RepeatDataset(a, two) {output_types=[DT_INT64], output_shapes=[[]]}
     b = ShuffleDatasetV3(numbers, all, three, two, dummy) {output_types=[DT_INT64], output_shapes=[[]], reshuffle_each_iteration=false}
     same = RepeatDataset(b, two) {output_types=[DT_INT64], output_shapes=[[]]}
     c = ShuffleDatasetV2(numbers, ten, seeds) {output_types=[DT_INT64], output_shapes=[[]]}
     d = ShuffleAndRepeatDataset(numbers, four, three, two, three) {output_types=[DT_INT64], output_shapes=[[]]}
     e = ShuffleAndRepeatDatasetV2(numbers, all, three, two, two, dummy) {output_types=[DT_INT64], output_shapes=[[]]}
     end_seeds = DeleteSeedGenerator(seeds, seeds:1)
     end_more = DeleteRandomSeedGenerator(seeds, seeds:1)
     none = ShuffleDataset(numbers, zero, three, two) {output_types=[DT_INT64], output_shapes=[[]]}
     n_d = DatasetCardinality(d)
     n_none = DatasetCardinality(none)
     i_all = BatchDatasetV2(twice, many, keep) {output_types=[DT_INT64], output_shapes=[[?]]}
     i = IteratorV2() {output_types=[DT_INT64], output_shapes=[[?]], shared_name='', container=''}
     make_i = MakeIterator(i_all, i)
     next_i = IteratorGetNext(i) {output_types=[DT_INT64], output_shapes=[[?]]}
     j_all = BatchDatasetV2(same, many, keep) {output_types=[DT_INT64], output_shapes=[[?]]}
     j = IteratorV2() {output_types=[DT_INT64], output_shapes=[[?]], shared_name='', container=''}
     make_j = MakeIterator(j_all, j)
     next_j = IteratorGetNext(j) {output_types=[DT_INT64], output_shapes=[[?]]}
     k_all = BatchDatasetV2(c, many, keep) {output_types=[DT_INT64], output_shapes=[[?]]}
     k = IteratorV2() {output_types=[DT_INT64], output_shapes=[[?]], shared_name='', container=''}
     make_k = MakeIterator(k_all, k)
     next_k = IteratorGetNext(k) {output_types=[DT_INT64], output_shapes=[[?]]}
     l_all = BatchDatasetV2(d, many, keep) {output_types=[DT_INT64], output_shapes=[[?]]}
     l = IteratorV2() {output_types=[DT_INT64], output_shapes=[[?]], shared_name='', container=''}
     make_l = MakeIterator(l_all, l)
     next_l = IteratorGetNext(l) {output_types=[DT_INT64], output_shapes=[[?]]}
     m_all = BatchDatasetV2(e, many, keep) {output_types=[DT_INT64], output_shapes=[[?]]}
     m = IteratorV2() {output_types=[DT_INT64], output_shapes=[[?]], shared_name='', container=''}
     make_m = MakeIterator(m_all, m)
     next_m = IteratorGetNext(m) {output_types=[DT_INT64], output_shapes=[[?]]}",
    &[
        "run make_i, make_j, make_k, make_l, make_m",
        "fetch next_i => ?",
        "fetch next_j => ?",
        "fetch next_k => ?",
        "fetch next_l => ?",
        "fetch next_m => ?",
        "fetch next_i fails OUT_OF_RANGE End of sequence",
        "run make_i",
        "fetch next_i => ?",
        "run more fails INVALID_ARGUMENT Unknown input name: reshuffle",
        "run end_seeds fails INTERNAL Cannot delete an unowned Resource",
        "run end_more fails INTERNAL Cannot delete an unowned Resource",
        "fetch n_d => int64[]{30}",
        "fetch n_none fails INVALID_ARGUMENT buffer_size must be greater than zero or UNKNOWN_CARDINALITY",
    ],
);

pub(crate) static OPS: [OpDef; 5] = [
    OpDef {
        name: "ShuffleAndRepeatDataset",
        inputs: &[
            "input_dataset: variant",
            "buffer_size: int64",
            "seed: int64",
            "seed2: int64",
            "count: int64",
        ],
        attrs: RESHUFFLE_LAST,
        kernels: &[cpu(&[], |node| build(node, Some(2), Some(4), None))],
        scripts: &[SCRIPT],
        ..DATASET
    },
    OpDef {
        name: "ShuffleAndRepeatDatasetV2",
        inputs: &[
            "input_dataset: variant",
            "buffer_size: int64",
            "seed: int64",
            "seed2: int64",
            "count: int64",
            "seed_generator: resource",
        ],
        attrs: RESHUFFLE_FIRST,
        stateful: true,
        kernels: &[cpu(&[], |node| build(node, Some(2), Some(4), Some(5)))],
        scripts: &[SCRIPT],
        ..DATASET
    },
    OpDef {
        name: "ShuffleDataset",
        inputs: &[
            "input_dataset: variant",
            "buffer_size: int64",
            "seed: int64",
            "seed2: int64",
        ],
        attrs: RESHUFFLE_FIRST,
        kernels: &[cpu(&[], |node| build(node, Some(2), None, None))],
        scripts: &[SCRIPT],
        ..DATASET
    },
    OpDef {
        name: "ShuffleDatasetV2",
        inputs: &[
            "input_dataset: variant",
            "buffer_size: int64",
            "seed_generator: resource",
        ],
        attrs: kernel::TYPES_AND_METADATA,
        stateful: true,
        kernels: &[cpu(&[], |node| build(node, None, None, Some(2)))],
        scripts: &[SCRIPT],
        ..DATASET
    },
    OpDef {
        name: "ShuffleDatasetV3",
        inputs: &[
            "input_dataset: variant",
            "buffer_size: int64",
            "seed: int64",
            "seed2: int64",
            "seed_generator: resource",
        ],
        attrs: RESHUFFLE_FIRST,
        stateful: true,
        kernels: &[cpu(&[], |node| build(node, Some(2), None, Some(4)))],
        scripts: &[SCRIPT],
        ..DATASET
    },
];

const RESHUFFLE_FIRST: &[&str] = &[
    "reshuffle_each_iteration: bool = true",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "metadata: string = ''",
];

const RESHUFFLE_LAST: &[&str] = &[
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "reshuffle_each_iteration: bool = true",
    "metadata: string = ''",
];

/// The buffer holds all of an epoch.
const ALL: i64 = UNKNOWN;
/// Once elements of more epochs wait, no more are added.
const MOST_EPOCHS: usize = 3;

/// The numbers of the inputs for seeds, count and generator, where the op has them.
fn build(
    node: &NodeInfo,
    seeds: Option<usize>,
    count: Option<usize>,
    generator: Option<usize>,
) -> Result<AnyKernel> {
    let reshuffle = node.attrs.bool("reshuffle_each_iteration").unwrap_or(true);
    kernel::build(node, move |ctx| {
        let size: i64 = kernel::scalar(ctx, 1, "buffer_size")?;
        ensure!(
            size > 0 || size == ALL,
            invalid_argument,
            "buffer_size must be greater than zero or UNKNOWN_CARDINALITY"
        );
        let pair = match seeds {
            Some(first) => (
                kernel::scalar(ctx, first, "seed")?,
                kernel::scalar(ctx, first + 1, "seed2")?,
            ),
            None => (0, 0),
        };
        let shared = match generator {
            Some(index) => SeedGenerator::input(ctx, index)?,
            None => None,
        };
        let count: i64 = match count {
            Some(index) => kernel::scalar(ctx, index, "count")?,
            None => 1,
        };
        ensure!(
            count > 0 || count == -1,
            invalid_argument,
            "count must be greater than zero or equal to -1."
        );
        Ok(Shuffle {
            input: [Dataset::input(ctx, 0)?],
            size: usize::try_from(size).ok(),
            count: u64::try_from(count).ok(),
            seeds: match shared {
                Some(generator) => Seeds::Shared(generator),
                None => Seeds::Own(Key::default(), pair, reshuffle),
            },
        })
    })
}

struct Shuffle {
    input: [Dataset; 1],
    /// `None` for all.
    size: Option<usize>,
    /// `None` without end.
    count: Option<u64>,
    seeds: Seeds,
}

/// Where seeds come from.
enum Seeds {
    /// A resource.
    Shared(Arc<SeedGenerator>),
    /// A generator for each home, of these seeds.
    Own(Key, (i64, i64), bool),
}

impl Stage for Shuffle {
    fn iterate(&self, place: &Place) -> Result<Box<dyn Iterate>> {
        let seeds = match &self.seeds {
            Seeds::Shared(generator) => generator.clone(),
            Seeds::Own(key, pair, reshuffle) => {
                let new = || SeedGenerator::new(*pair, *reshuffle);
                place.home.keep(key, new)
            }
        };
        let words = Words::new(seeds.next());
        Ok(Box::new(Shuffling {
            dataset: self.input[0].clone(),
            place: place.clone(),
            input: None,
            size: self.size,
            count: self.count,
            seeds,
            words,
            epoch: 0,
            epochs: VecDeque::new(),
            waiting: 0,
            had_any: false,
        }))
    }

    fn cardinality(&self) -> i64 {
        match (self.input[0].cardinality(), self.count) {
            (_, None) | (INFINITE, _) => INFINITE,
            (UNKNOWN, _) => UNKNOWN,
            (count, Some(times)) => count.saturating_mul(i64::try_from(times).unwrap_or(i64::MAX)),
        }
    }

    fn inputs(&self) -> &[Dataset] {
        &self.input
    }
}

struct Shuffling {
    dataset: Dataset,
    place: Place,
    /// `None` between epochs.
    input: Option<Box<dyn Iterate>>,
    size: Option<usize>,
    count: Option<u64>,
    seeds: Arc<SeedGenerator>,
    words: Words,
    epoch: u64,
    /// What waits of each epoch. The first elements of one are where TensorFlow has them in its ring.
    epochs: VecDeque<Epoch>,
    waiting: usize,
    had_any: bool,
}

#[derive(Default)]
struct Epoch {
    elements: VecDeque<Element>,
    ended: bool,
}

impl Shuffling {
    /// Whether another element is to be added before one is chosen.
    fn wants_more(&self) -> bool {
        if self.input.is_none() && self.count.is_some_and(|count| self.epoch >= count) {
            return false;
        }
        if self.epochs.len() > MOST_EPOCHS && self.waiting > 0 {
            return false;
        }
        match self.size {
            Some(size) => self.waiting < size,
            None => {
                let mut serving = self.epochs.iter();
                !serving
                    .find(|epoch| !epoch.elements.is_empty())
                    .is_some_and(|epoch| epoch.ended)
            }
        }
    }

    /// Fills the buffer. Whether there is nothing left at all.
    fn fill(&mut self, waker: &Waker) -> Poll<Result<()>> {
        while self.wants_more() {
            let input = match &mut self.input {
                Some(input) => input,
                None => {
                    let input = self.dataset.iterate(&self.place)?;
                    self.epochs.push_back(Epoch::default());
                    self.epoch += 1;
                    self.input.insert(input)
                }
            };
            let next = ready!(input.next(waker))?;
            let Some(epoch) = self.epochs.back_mut() else {
                break;
            };
            match next {
                Some(element) => {
                    epoch.elements.push_back(element);
                    self.waiting += 1;
                    self.had_any = true;
                }
                None => {
                    epoch.ended = true;
                    self.input = None;
                    if !self.had_any && self.count.is_none() {
                        // It would go on without end and never have an element.
                        break;
                    }
                }
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl Iterate for Shuffling {
    fn next(&mut self, waker: &Waker) -> Next {
        ready!(self.fill(waker))?;
        if self.waiting == 0 {
            return Poll::Ready(Ok(None));
        }
        while self
            .epochs
            .front()
            .is_some_and(|epoch| epoch.elements.is_empty())
        {
            self.epochs.pop_front();
            self.words = Words::new(self.seeds.next());
        }
        let Some(epoch) = self.epochs.front_mut() else {
            return Poll::Ready(Ok(None));
        };
        let chosen = self.words.next() as usize % epoch.elements.len();
        // The first takes the place of the chosen one, as in TensorFlow.
        epoch.elements.swap(0, chosen);
        self.waiting -= 1;
        Poll::Ready(Ok(epoch.elements.pop_front()))
    }
}
