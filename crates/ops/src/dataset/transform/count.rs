//! `TakeDataset`, `SkipDataset`, `ShardDataset`: some of the elements, by their numbers.
//!
//! TensorFlow: TakeDataset(input_dataset: variant, count: int64) -> handle: variant, all of them for a negative count;
//! SkipDataset the same; ShardDataset(input_dataset: variant, num_shards: int64, index: int64).

use std::task::{Poll, Waker, ready};

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, NodeInfo};
use tensorfleet_status::{Result, ensure, invalid_argument};

use crate::dataset::home::Place;
use crate::dataset::kernel::{self, DATASET};
use crate::dataset::value::{AtEnd, Dataset, INFINITE, Iterate, Next, Stage, UNKNOWN};

const SCRIPT: Script = script(
    "by number",
    "zero = int64[]{0}
     one = int64[]{1}
     two = int64[]{2}
     three = int64[]{3}
     ten = int64[]{10}
     numbers = RangeDataset(zero, ten, one) {output_types=[DT_INT64], output_shapes=[[]]}
     minus = int64[]{-1}
     eleven = int64[]{11}
     a = TakeDataset(numbers, two) {output_types=[DT_INT64], output_shapes=[[]]}
     all = TakeDataset(numbers, minus) {output_types=[DT_INT64], output_shapes=[[]]}
     eight = int64[]{8}
     b = SkipDataset(numbers, eight) {output_types=[DT_INT64], output_shapes=[[]]}
     gone = SkipDataset(numbers, minus) {output_types=[DT_INT64], output_shapes=[[]]}
     four = int64[]{4}
     c = ShardDataset(numbers, four, one) {output_types=[DT_INT64], output_shapes=[[]]}
     few = TakeDataset(numbers, three) {output_types=[DT_INT64], output_shapes=[[]]}
     d = ShardDataset(few, four, one) {output_types=[DT_INT64], output_shapes=[[]], require_non_empty=true}
     e = ShardDataset(few, three, one) {output_types=[DT_INT64], output_shapes=[[]], require_non_empty=true}
     wrong = ShardDataset(numbers, three, three) {output_types=[DT_INT64], output_shapes=[[]]}
     none = ShardDataset(numbers, zero, zero) {output_types=[DT_INT64], output_shapes=[[]]}
     n_all = DatasetCardinality(all)
     n_b = DatasetCardinality(b)
     n_gone = DatasetCardinality(gone)
     n_c = DatasetCardinality(c)
     n_wrong = DatasetCardinality(wrong)
     n_none = DatasetCardinality(none)
     i = IteratorV2() {output_types=[DT_INT64], output_shapes=[[]], shared_name='', container=''}
     make_i = MakeIterator(a, i)
     next_i = IteratorGetNext(i) {output_types=[DT_INT64], output_shapes=[[]]}
     j = IteratorV2() {output_types=[DT_INT64], output_shapes=[[]], shared_name='', container=''}
     make_j = MakeIterator(b, j)
     next_j = IteratorGetNext(j) {output_types=[DT_INT64], output_shapes=[[]]}
     k = IteratorV2() {output_types=[DT_INT64], output_shapes=[[]], shared_name='', container=''}
     make_k = MakeIterator(c, k)
     next_k = IteratorGetNext(k) {output_types=[DT_INT64], output_shapes=[[]]}
     l = IteratorV2() {output_types=[DT_INT64], output_shapes=[[]], shared_name='', container=''}
     make_l = MakeIterator(d, l)
     next_l = IteratorGetNext(l) {output_types=[DT_INT64], output_shapes=[[]]}
     m = IteratorV2() {output_types=[DT_INT64], output_shapes=[[]], shared_name='', container=''}
     make_m = MakeIterator(e, m)
     next_m = IteratorGetNext(m) {output_types=[DT_INT64], output_shapes=[[]]}
     n = IteratorV2() {output_types=[DT_INT64], output_shapes=[[]], shared_name='', container=''}
     make_n = MakeIterator(gone, n)
     next_n = IteratorGetNext(n) {output_types=[DT_INT64], output_shapes=[[]]}",
    &[
        "run make_i, make_j, make_k, make_l, make_m, make_n",
        "fetch next_i => int64[]{0}",
        "fetch next_i => int64[]{1}",
        "fetch next_i fails OUT_OF_RANGE End of sequence",
        "fetch next_j => int64[]{8}",
        "fetch next_j => int64[]{9}",
        "fetch next_j fails OUT_OF_RANGE End of sequence",
        "fetch next_k => int64[]{1}",
        "fetch next_k => int64[]{5}",
        "fetch next_k => int64[]{9}",
        "fetch next_k fails OUT_OF_RANGE End of sequence",
        "fetch next_l fails INVALID_ARGUMENT Could not apply FILE based sharding: the dataset only has",
        "fetch next_m => int64[]{1}",
        "fetch next_m fails OUT_OF_RANGE End of sequence",
        "fetch next_n fails OUT_OF_RANGE End of sequence",
        "fetch n_all, n_b, n_gone, n_c => int64[]{10}; int64[]{2}; int64[]{0}; int64[]{3}",
        "fetch n_wrong fails INVALID_ARGUMENT Index must be between 0 and 2 (currently index = 3).",
        "fetch n_none fails INVALID_ARGUMENT Number of shards must be greater than zero (currently num_shards = 0).",
    ],
);

pub(crate) static OPS: [OpDef; 3] = [
    OpDef {
        name: "ShardDataset",
        inputs: &[
            "input_dataset: variant",
            "num_shards: int64",
            "index: int64",
        ],
        attrs: &[
            "require_non_empty: bool = false",
            "output_types: list(type) >= 1",
            "output_shapes: list(shape) >= 1",
            "metadata: string = ''",
        ],
        kernels: &[cpu(&[], build_shard)],
        scripts: &[SCRIPT],
        ..DATASET
    },
    OpDef {
        name: "SkipDataset",
        inputs: &["input_dataset: variant", "count: int64"],
        attrs: kernel::TYPES_AND_METADATA,
        kernels: &[cpu(&[], build_skip)],
        scripts: &[SCRIPT],
        ..DATASET
    },
    OpDef {
        name: "TakeDataset",
        inputs: &["input_dataset: variant", "count: int64"],
        attrs: kernel::TYPES_AND_METADATA,
        kernels: &[cpu(&[], build_take)],
        scripts: &[SCRIPT],
        ..DATASET
    },
];

fn build_take(node: &NodeInfo) -> Result<AnyKernel> {
    kernel::build(node, |ctx| {
        Ok(Take {
            input: [Dataset::input(ctx, 0)?],
            count: kernel::scalar(ctx, 1, "count")?,
        })
    })
}

fn build_skip(node: &NodeInfo) -> Result<AnyKernel> {
    kernel::build(node, |ctx| {
        Ok(Skip {
            input: [Dataset::input(ctx, 0)?],
            count: kernel::scalar(ctx, 1, "count")?,
        })
    })
}

fn build_shard(node: &NodeInfo) -> Result<AnyKernel> {
    let require_non_empty = node.attrs.bool("require_non_empty")?;
    kernel::build(node, move |ctx| {
        let shards: i64 = kernel::scalar(ctx, 1, "num_shards")?;
        ensure!(
            shards > 0,
            invalid_argument,
            "Number of shards must be greater than zero (currently num_shards = {shards})."
        );
        let index: i64 = kernel::scalar(ctx, 2, "index")?;
        ensure!(
            (0..shards).contains(&index),
            invalid_argument,
            "Index must be between 0 and {} (currently index = {index}).",
            shards - 1
        );
        Ok(Shard {
            input: [Dataset::input(ctx, 0)?],
            shards,
            index,
            require_non_empty,
        })
    })
}

struct Take {
    input: [Dataset; 1],
    count: i64,
}

impl Stage for Take {
    fn iterate(&self, place: &Place) -> Result<Box<dyn Iterate>> {
        Ok(match self.count {
            0 => Box::new(AtEnd),
            count if count < 0 => self.input[0].iterate(place)?,
            count => Box::new(Taking {
                input: self.input[0].iterate(place)?,
                left: count,
            }),
        })
    }

    fn cardinality(&self) -> i64 {
        match (self.input[0].cardinality(), self.count) {
            (UNKNOWN, _) => UNKNOWN,
            (count, taken) if taken < 0 => count,
            (INFINITE, taken) => taken,
            (count, taken) => count.min(taken),
        }
    }

    fn inputs(&self) -> &[Dataset] {
        &self.input
    }
}

struct Taking {
    input: Box<dyn Iterate>,
    left: i64,
}

impl Iterate for Taking {
    fn next(&mut self, waker: &Waker) -> Next {
        let next = match self.left {
            0 => None,
            _ => ready!(self.input.next(waker))?,
        };
        self.left -= 1;
        if next.is_none() || self.left < 0 {
            self.left = 0;
            self.input = Box::new(AtEnd);
        }
        Poll::Ready(Ok(next))
    }
}

struct Skip {
    input: [Dataset; 1],
    count: i64,
}

impl Stage for Skip {
    fn iterate(&self, place: &Place) -> Result<Box<dyn Iterate>> {
        Ok(match self.count {
            count if count < 0 => Box::new(AtEnd),
            0 => self.input[0].iterate(place)?,
            count => Box::new(Every {
                input: self.input[0].iterate(place)?,
                skips: count,
                then: 0,
            }),
        })
    }

    fn cardinality(&self) -> i64 {
        match self.input[0].cardinality() {
            count @ (INFINITE | UNKNOWN) => count,
            _ if self.count < 0 => 0,
            count => (count - self.count).max(0),
        }
    }

    fn inputs(&self) -> &[Dataset] {
        &self.input
    }
}

struct Shard {
    input: [Dataset; 1],
    shards: i64,
    index: i64,
    require_non_empty: bool,
}

impl Stage for Shard {
    fn iterate(&self, place: &Place) -> Result<Box<dyn Iterate>> {
        let every = Every {
            input: self.input[0].iterate(place)?,
            skips: self.index,
            then: self.shards - 1,
        };
        Ok(match self.require_non_empty {
            true => Box::new(FirstRound {
                every,
                first: None,
                seen: self.index + 1,
                shards: self.shards,
                passed: false,
            }),
            false => Box::new(every),
        })
    }

    fn cardinality(&self) -> i64 {
        match self.input[0].cardinality() {
            count @ (INFINITE | UNKNOWN) => count,
            count => count / self.shards + i64::from(self.index < count % self.shards),
        }
    }

    fn inputs(&self) -> &[Dataset] {
        &self.input
    }
}

/// An element, then another after each `then` that are left out.
struct Every {
    input: Box<dyn Iterate>,
    skips: i64,
    then: i64,
}

impl Iterate for Every {
    fn next(&mut self, waker: &Waker) -> Next {
        loop {
            let next = ready!(self.input.next(waker))?;
            if next.is_none() {
                self.input = Box::new(AtEnd);
                return Poll::Ready(Ok(None));
            }
            if self.skips == 0 {
                self.skips = self.then;
                return Poll::Ready(Ok(next));
            }
            self.skips -= 1;
        }
    }
}

/// A shard that wants all shards to have an element.
struct FirstRound {
    every: Every,
    first: Option<super::super::value::Element>,
    /// How many elements the input had so far.
    seen: i64,
    shards: i64,
    passed: bool,
}

impl Iterate for FirstRound {
    fn next(&mut self, waker: &Waker) -> Next {
        if self.passed {
            return self.every.next(waker);
        }
        if self.first.is_none() {
            match ready!(self.every.next(waker))? {
                Some(first) => self.first = Some(first),
                None => {
                    self.passed = true;
                    return Poll::Ready(Ok(None));
                }
            }
        }
        while self.seen < self.shards {
            if ready!(self.every.input.next(waker))?.is_none() {
                self.passed = true;
                self.every.input = Box::new(AtEnd);
                return Poll::Ready(Err(invalid_argument!(
                    "Could not apply FILE based sharding: the dataset only has {} file(s), which is not enough for the \
                     required {} shards/workers. If you are using datasets with distribution strategy, consider setting \
                     the auto sharding policy to either DATA or OFF using the `experimental_distribute.auto_shard_policy` \
                     option of `tf.data.Options()`. Or, split your input files into a larger number of small files such \
                     that number of files is greater than number of shards/workers.",
                    self.seen,
                    self.shards
                )));
            }
            self.seen += 1;
            self.every.skips -= 1;
        }
        self.passed = true;
        Poll::Ready(Ok(self.first.take()))
    }
}
