//! `PrefetchDataset`: elements are made before they are wanted, on other threads.
//!
//! TensorFlow: PrefetchDataset(input_dataset: variant, buffer_size: int64) -> handle: variant. TensorFlow chooses the size if
//! it is -1; so do we.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, NodeInfo};
use tensorfleet_math::par::Pool;
use tensorfleet_status::{Result, ensure};

use super::map::AUTOTUNE;
use crate::dataset::home::Place;
use crate::dataset::kernel::{self, DATASET};
use crate::dataset::task::{Task, Work, guarded};
use crate::dataset::value::{AtEnd, Dataset, Element, Iterate, Next, Stage};

const SCRIPT: Script = script(
    "ahead",
    "zero = int64[]{0}
     one = int64[]{1}
     two = int64[]{2}
     three = int64[]{3}
     ten = int64[]{10}
     numbers = RangeDataset(zero, three, one) {output_types=[DT_INT64], output_shapes=[[]]}
     minus = int64[]{-1}
     less = int64[]{-2}
     a = PrefetchDataset(numbers, one) {output_types=[DT_INT64], output_shapes=[[]]}
     b = PrefetchDataset(numbers, zero) {output_types=[DT_INT64], output_shapes=[[]]}
     c = PrefetchDataset(numbers, minus) {output_types=[DT_INT64], output_shapes=[[]]}
     none = PrefetchDataset(numbers, less) {output_types=[DT_INT64], output_shapes=[[]]}
     count = DatasetCardinality(a)
     count_none = DatasetCardinality(none)
     i = IteratorV2() {output_types=[DT_INT64], output_shapes=[[]], shared_name='', container=''}
     make_i = MakeIterator(a, i)
     next_i = IteratorGetNext(i) {output_types=[DT_INT64], output_shapes=[[]]}
     j = IteratorV2() {output_types=[DT_INT64], output_shapes=[[]], shared_name='', container=''}
     make_j = MakeIterator(b, j)
     next_j = IteratorGetNext(j) {output_types=[DT_INT64], output_shapes=[[]]}
     k = IteratorV2() {output_types=[DT_INT64], output_shapes=[[]], shared_name='', container=''}
     make_k = MakeIterator(c, k)
     next_k = IteratorGetNext(k) {output_types=[DT_INT64], output_shapes=[[]]}",
    &[
        "run make_i, make_j, make_k",
        "fetch next_i => int64[]{0}",
        "fetch next_i => int64[]{1}",
        "fetch next_i => int64[]{2}",
        "fetch next_i fails OUT_OF_RANGE End of sequence",
        "fetch next_j => int64[]{0}",
        "fetch next_j => int64[]{1}",
        "fetch next_j => int64[]{2}",
        "fetch next_j fails OUT_OF_RANGE End of sequence",
        "fetch next_k => int64[]{0}",
        "fetch next_k => int64[]{1}",
        "fetch next_k => int64[]{2}",
        "fetch next_k fails OUT_OF_RANGE End of sequence",
        "run make_i",
        "fetch next_i => int64[]{0}",
        "run make_i",
        "fetch next_i => int64[]{0}",
        "fetch next_i => int64[]{1}",
        "fetch next_i => int64[]{2}",
        "fetch next_i fails OUT_OF_RANGE End of sequence",
        "fetch count => int64[]{3}",
        "fetch count_none fails INVALID_ARGUMENT buffer_size must be >= 0 or set buffer_size to be -1 for auto-tuning",
    ],
);

pub(crate) static OP: OpDef = OpDef {
    name: "PrefetchDataset",
    inputs: &["input_dataset: variant", "buffer_size: int64"],
    attrs: &[
        "output_types: list(type) >= 1",
        "output_shapes: list(shape) >= 1",
        "slack_period: int = 0",
        "legacy_autotune: bool = true",
        "buffer_size_min: int = 0",
        "metadata: string = ''",
    ],
    kernels: &[cpu(&[], build)],
    scripts: &[SCRIPT],
    ..DATASET
};

/// What is kept ready if nobody says how much.
const CHOSEN: usize = 8;

/// No more are kept ready, whatever the program asks for: what has no end would use up the memory.
const MOST: usize = 1 << 16;

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    kernel::build(node, |ctx| {
        let size: i64 = kernel::scalar(ctx, 1, "buffer_size")?;
        ensure!(
            size >= 0 || size == AUTOTUNE,
            invalid_argument,
            "buffer_size must be >= 0 or set buffer_size to be {AUTOTUNE} for auto-tuning"
        );
        Ok(Prefetch {
            input: [Dataset::input(ctx, 0)?],
            size: match size {
                AUTOTUNE => CHOSEN,
                size => MOST.min(size as usize),
            },
        })
    })
}

struct Prefetch {
    input: [Dataset; 1],
    size: usize,
}

impl Stage for Prefetch {
    fn iterate(&self, place: &Place) -> Result<Box<dyn Iterate>> {
        let input = self.input[0].iterate(place)?;
        Ok(match self.size {
            0 => input,
            size => Box::new(Ahead::new(input, place, size)),
        })
    }

    fn cardinality(&self) -> i64 {
        self.input[0].cardinality()
    }

    fn inputs(&self) -> &[Dataset] {
        &self.input
    }
}

/// An iterator whose elements are made ahead.
pub(super) struct Ahead(Arc<Task<Making>>);

impl Ahead {
    /// At most `most` elements ahead, from the first that is wanted on.
    pub(super) fn new(iterator: Box<dyn Iterate>, place: &Place, most: usize) -> Ahead {
        Ahead(Task::new(Making {
            place: place.clone(),
            most,
            iterator: Mutex::new(iterator),
            buffer: Mutex::default(),
        }))
    }

    /// The same, from now on.
    pub(super) fn start(iterator: Box<dyn Iterate>, place: &Place, most: usize) -> Ahead {
        let ahead = Ahead::new(iterator, place, most);
        ahead.0.go_on();
        ahead
    }
}

struct Making {
    place: Place,
    most: usize,
    iterator: Mutex<Box<dyn Iterate>>,
    buffer: Mutex<Buffer>,
}

#[derive(Default)]
struct Buffer {
    ready: VecDeque<Result<Element>>,
    ended: bool,
    /// Nobody will want anything any more.
    dropped: bool,
    waits: Option<Waker>,
}

impl Making {
    fn buffer(&self) -> MutexGuard<'_, Buffer> {
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets go of the iterator, unless somebody is at it, who will then.
    fn let_go(&self) {
        if let Ok(mut iterator) = self.iterator.try_lock() {
            let before = std::mem::replace(&mut *iterator, Box::new(AtEnd));
            drop(iterator);
            drop(before);
        }
    }
}

impl Work for Making {
    fn work(&self, waker: &Waker) {
        loop {
            {
                let buffer = self.buffer();
                if buffer.dropped || self.place.home.cancel.is_cancelled() {
                    drop(buffer);
                    return self.let_go();
                }
                if buffer.ended || buffer.ready.len() >= self.most {
                    return;
                }
            }
            let next = {
                let mut iterator = self.iterator.lock().unwrap_or_else(PoisonError::into_inner);
                guarded(&mut **iterator, waker)
            };
            let waits = {
                let mut buffer = self.buffer();
                match next {
                    Poll::Pending if buffer.dropped => continue,
                    Poll::Pending => return,
                    Poll::Ready(Ok(None)) => buffer.ended = true,
                    Poll::Ready(Ok(Some(element))) => buffer.ready.push_back(Ok(element)),
                    Poll::Ready(Err(status)) => buffer.ready.push_back(Err(status)),
                }
                buffer.waits.take()
            };
            if let Some(waits) = waits {
                waits.wake();
            }
        }
    }

    fn pool(&self) -> &Arc<Pool> {
        &self.place.home.pool
    }
}

impl Iterate for Ahead {
    fn next(&mut self, waker: &Waker) -> Next {
        let next = {
            let mut buffer = self.0.work.buffer();
            match buffer.ready.pop_front() {
                Some(next) => Poll::Ready(next.map(Some)),
                None if buffer.ended => return Poll::Ready(Ok(None)),
                None => {
                    buffer.waits = Some(waker.clone());
                    Poll::Pending
                }
            }
        };
        self.0.go_on();
        next
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        let waits = {
            let mut buffer = self.0.work.buffer();
            buffer.dropped = true;
            buffer.ready.clear();
            buffer.waits.take()
        };
        drop(waits);
        self.0.work.let_go();
    }
}
