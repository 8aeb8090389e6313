//! `CacheDataset`, `CacheDatasetV2`, `AnonymousMemoryCache`, `DummyMemoryCache`, `DeleteMemoryCache`: elements are made once and
//! kept in memory.
//!
//! TensorFlow: CacheDataset(input_dataset: variant, filename: string) -> handle: variant, V2 with cache: resource. Elements are
//! kept once all were seen; who stops before begins anew. With a filename TensorFlow keeps them in files, we do not:
//! UNIMPLEMENTED.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker, ready};

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo, Resource};
use tensorfleet_status::{Code, Result, unimplemented};
use tensorfleet_tensor::TString;

use crate::dataset::handles;
use crate::dataset::home::{Key, Place};
use crate::dataset::kernel::{self, DATASET};
use crate::dataset::value::{Dataset, Element, Iterate, Next, Stage};

const SCRIPT: Script = script(
    "the same order again",
    "zero = int64[]{0}
     one = int64[]{1}
     two = int64[]{2}
     three = int64[]{3}
     ten = int64[]{10}
     numbers = RangeDataset(zero, three, one) {output_types=[DT_INT64], output_shapes=[[]]}
     nowhere = string[]{}
     cache = AnonymousMemoryCache()
     dummy = DummyMemoryCache()
     shuffled = ShuffleDataset(numbers, ten, three, two) {output_types=[DT_INT64], output_shapes=[[]]}
     a = CacheDataset(shuffled, nowhere) {output_types=[DT_INT64], output_shapes=[[]]}
     twice = RepeatDataset(a, two) {output_types=[DT_INT64], output_shapes=[[]]}
     b = CacheDatasetV2(shuffled, nowhere, cache) {output_types=[DT_INT64], output_shapes=[[]]}
     b_twice = RepeatDataset(b, two) {output_types=[DT_INT64], output_shapes=[[]]}
     c = CacheDatasetV2(numbers, nowhere, dummy) {output_types=[DT_INT64], output_shapes=[[]]}
     gone = DeleteMemoryCache(cache, cache:1)
     n = DatasetCardinality(a)
     i = IteratorV2() {output_types=[DT_INT64], output_shapes=[[]], shared_name='', container=''}
     make_i = MakeIterator(twice, i)
     next_i = IteratorGetNext(i) {output_types=[DT_INT64], output_shapes=[[]]}
     j = IteratorV2() {output_types=[DT_INT64], output_shapes=[[]], shared_name='', container=''}
     make_j = MakeIterator(b_twice, j)
     next_j = IteratorGetNext(j) {output_types=[DT_INT64], output_shapes=[[]]}
     k = IteratorV2() {output_types=[DT_INT64], output_shapes=[[]], shared_name='', container=''}
     make_k = MakeIterator(c, k)
     next_k = IteratorGetNext(k) {output_types=[DT_INT64], output_shapes=[[]]}",
    &[
        "run make_i, make_j, make_k",
        "fetch next_i => ?",
        "fetch next_i => ?",
        "fetch next_i => ?",
        "fetch next_i => ?",
        "fetch next_i => ?",
        "fetch next_i => ?",
        "fetch next_i fails OUT_OF_RANGE End of sequence",
        "fetch next_j => ?",
        "fetch next_j => ?",
        "fetch next_j => ?",
        "fetch next_j => ?",
        "fetch next_j => ?",
        "fetch next_j => ?",
        "fetch next_j fails OUT_OF_RANGE End of sequence",
        "fetch next_k => int64[]{0}",
        "fetch next_k => int64[]{1}",
        "fetch next_k => int64[]{2}",
        "fetch next_k fails OUT_OF_RANGE End of sequence",
        "run gone fails INTERNAL Cannot delete an unowned Resource",
        "fetch n => int64[]{3}",
    ],
);

const CACHE: OpDef = OpDef {
    stateful: true,
    gradient: Gradient::None("a cache is no number"),
    cost: Cost::Cheap,
    exactness: Exactness::Bits,
    scripts: &[SCRIPT],
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 5] = [
    OpDef {
        name: "AnonymousMemoryCache",
        outputs: &["handle: resource", "deleter: variant"],
        infer: infer::scalar,
        kernels: &[cpu(&[], |_| {
            AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
                handles::hand_out_anonymous(ctx, "MemoryCache", Arc::new(MemoryCache::default()));
                Ok(())
            })
        })],
        ..CACHE
    },
    OpDef {
        name: "CacheDataset",
        inputs: &["input_dataset: variant", "filename: string"],
        attrs: kernel::TYPES_AND_METADATA,
        kernels: &[cpu(&[], build)],
        scripts: &[SCRIPT],
        ..DATASET
    },
    OpDef {
        name: "CacheDatasetV2",
        inputs: &[
            "input_dataset: variant",
            "filename: string",
            "cache: resource",
        ],
        attrs: kernel::TYPES_AND_METADATA,
        stateful: true,
        kernels: &[cpu(&[], build)],
        scripts: &[SCRIPT],
        ..DATASET
    },
    OpDef {
        name: "DeleteMemoryCache",
        inputs: &["handle: resource", "deleter: variant"],
        kernels: &[cpu(&[], handles::build_delete_named)],
        ..CACHE
    },
    OpDef {
        name: "DummyMemoryCache",
        outputs: &["handle: resource"],
        infer: infer::scalar,
        kernels: &[cpu(&[], handles::build_dummy)],
        ..CACHE
    },
];

/// Elements, once all of them were seen.
#[derive(Default)]
struct MemoryCache(Mutex<Option<Arc<Vec<Element>>>>);

impl MemoryCache {
    fn lock(&self) -> MutexGuard<'_, Option<Arc<Vec<Element>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Resource for MemoryCache {
    fn type_name(&self) -> &'static str {
        "N10tensorflow4data18MemoryCacheManagerE"
    }
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    kernel::build(node, |ctx| {
        let filename: TString = kernel::scalar(ctx, 1, "filename")?;
        if !filename.is_empty() {
            return Err(unimplemented!(
                "a cache in files ('{}') is not supported, leave the filename empty to cache in memory",
                String::from_utf8_lossy(&filename)
            ));
        }
        let shared = match ctx.num_inputs() > 2 {
            true => match ctx.resource::<MemoryCache>(2) {
                Err(status) if status.code() == Code::NotFound => None,
                cache => Some(cache?),
            },
            false => None,
        };
        Ok(Cache {
            input: [Dataset::input(ctx, 0)?],
            shared,
            key: Key::default(),
        })
    })
}

struct Cache {
    input: [Dataset; 1],
    /// A resource, or one for each home.
    shared: Option<Arc<MemoryCache>>,
    key: Key,
}

impl Stage for Cache {
    fn iterate(&self, place: &Place) -> Result<Box<dyn Iterate>> {
        let cache = match &self.shared {
            Some(cache) => cache.clone(),
            None => place.home.keep(&self.key, MemoryCache::default),
        };
        let kept = cache.lock().clone();
        Ok(match kept {
            Some(elements) => Box::new(Kept { elements, at: 0 }),
            None => Box::new(Keeping {
                input: self.input[0].iterate(place)?,
                cache,
                count: self.input[0].cardinality(),
                seen: Vec::new(),
            }),
        })
    }

    fn cardinality(&self) -> i64 {
        self.input[0].cardinality()
    }

    fn inputs(&self) -> &[Dataset] {
        &self.input
    }
}

struct Kept {
    elements: Arc<Vec<Element>>,
    at: usize,
}

impl Iterate for Kept {
    fn next(&mut self, _: &Waker) -> Next {
        let element = self.elements.get(self.at).cloned();
        self.at += usize::from(element.is_some());
        Poll::Ready(Ok(element))
    }
}

struct Keeping {
    input: Box<dyn Iterate>,
    cache: Arc<MemoryCache>,
    /// As many as there should be.
    count: i64,
    seen: Vec<Element>,
}

impl Keeping {
    fn complete(&mut self) {
        let seen = std::mem::take(&mut self.seen);
        self.cache.lock().get_or_insert_with(|| Arc::new(seen));
    }
}

impl Iterate for Keeping {
    fn next(&mut self, waker: &Waker) -> Next {
        let next = ready!(self.input.next(waker))?;
        match &next {
            Some(element) => {
                self.seen.push(element.clone());
                if i64::try_from(self.seen.len()) == Ok(self.count) {
                    self.complete();
                }
            }
            None => self.complete(),
        }
        Poll::Ready(Ok(next))
    }
}
