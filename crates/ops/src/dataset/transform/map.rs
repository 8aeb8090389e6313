//! `MapDataset`, `ParallelMapDataset`, `ParallelMapDatasetV2`, `MapAndBatchDataset`: a function of each element.
//!
//! TensorFlow: MapDataset(input_dataset: variant, other_arguments: Targuments) -> handle: variant, with f: func; the parallel
//! ones with num_parallel_calls: int32 or int64, MapAndBatchDataset also with batch_size: int64 and drop_remainder: bool.
//! Elements keep their order, whatever the attributes allow. A function that fails with OUT_OF_RANGE ends the sequence.

use std::collections::VecDeque;
use std::task::{Poll, Waker, ready};

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, ensure, invalid_argument};

use super::batch::Batch;
use crate::dataset::call::{Call, Function, FunctionOf, mapped};
use crate::dataset::home::Place;
use crate::dataset::kernel::{self, DATASET};
use crate::dataset::value::{Dataset, Iterate, Next, Spec, Stage, UNKNOWN};

const SCRIPT: Script = script(
    "times ten",
    "fn times(x: int64, y: int64) -> z {
         z = Mul(x, y)
     }
     fn checked(x: int64) -> z {
         five = int64[]{5}
         zero = int64[]{0}
         m = FloorMod(x, five)
         q = FloorDiv(x, m)
         z = Identity(q)
     }
     zero = int64[]{0}
     one = int64[]{1}
     two = int64[]{2}
     three = int64[]{3}
     ten = int64[]{10}
     numbers = RangeDataset(zero, three, one) {output_types=[DT_INT64], output_shapes=[[]]}
     calls = int32[]{2}
     drop = bool[]{true}
     a = MapDataset(numbers, [ten]) {f=times, output_types=[DT_INT64], output_shapes=[[]], preserve_cardinality=true}
     b = ParallelMapDataset(numbers, [ten], calls) {f=times, output_types=[DT_INT64], output_shapes=[[]]}
     c = ParallelMapDatasetV2(numbers, [ten], two) {f=times, output_types=[DT_INT64], output_shapes=[[]]}
     d = MapAndBatchDataset(numbers, [ten], two, two, drop) {f=times, output_types=[DT_INT64], output_shapes=[[2]]}
     e = MapDataset(numbers, []) {f=checked, output_types=[DT_INT64], output_shapes=[[]]}
     none = ParallelMapDatasetV2(numbers, [ten], zero) {f=times, output_types=[DT_INT64], output_shapes=[[]]}
     count = DatasetCardinality(a)
     unknown = DatasetCardinality(e)
     count_none = DatasetCardinality(none)
     i = IteratorV2() {output_types=[DT_INT64], output_shapes=[[]], shared_name='', container=''}
     make_i = MakeIterator(a, i)
     next_i = IteratorGetNext(i) {output_types=[DT_INT64], output_shapes=[[]]}
     j = IteratorV2() {output_types=[DT_INT64], output_shapes=[[]], shared_name='', container=''}
     make_j = MakeIterator(b, j)
     next_j = IteratorGetNext(j) {output_types=[DT_INT64], output_shapes=[[]]}
     k = IteratorV2() {output_types=[DT_INT64], output_shapes=[[]], shared_name='', container=''}
     make_k = MakeIterator(c, k)
     next_k = IteratorGetNext(k) {output_types=[DT_INT64], output_shapes=[[]]}
     l = IteratorV2() {output_types=[DT_INT64], output_shapes=[[2]], shared_name='', container=''}
     make_l = MakeIterator(d, l)
     next_l = IteratorGetNext(l) {output_types=[DT_INT64], output_shapes=[[2]]}
     m = IteratorV2() {output_types=[DT_INT64], output_shapes=[[]], shared_name='', container=''}
     make_m = MakeIterator(e, m)
     next_m = IteratorGetNext(m) {output_types=[DT_INT64], output_shapes=[[]]}",
    &[
        "run make_i, make_j, make_k, make_l, make_m",
        "fetch next_i, next_j, next_k => int64[]{0}; int64[]{0}; int64[]{0}",
        "fetch next_i, next_j, next_k => int64[]{10}; int64[]{10}; int64[]{10}",
        "fetch next_i, next_j, next_k => int64[]{20}; int64[]{20}; int64[]{20}",
        "fetch next_i fails OUT_OF_RANGE End of sequence",
        "fetch next_j fails OUT_OF_RANGE End of sequence",
        "fetch next_k fails OUT_OF_RANGE End of sequence",
        "fetch next_l => int64[2]{0, 10}",
        "fetch next_l fails OUT_OF_RANGE End of sequence",
        "fetch next_m fails INVALID_ARGUMENT",
        "fetch next_m => int64[]{1}",
        "fetch count, unknown => int64[]{3}; int64[]{-2}",
        "fetch count_none fails INVALID_ARGUMENT num_parallel_calls must be greater than zero.",
    ],
);

pub(crate) static OPS: [OpDef; 4] = [
    OpDef {
        name: "MapAndBatchDataset",
        inputs: &[
            "input_dataset: variant",
            "other_arguments: Targuments",
            "batch_size: int64",
            "num_parallel_calls: int64",
            "drop_remainder: bool",
        ],
        attrs: &[
            "f: func",
            "Targuments: list(type) >= 0",
            "output_types: list(type) >= 1",
            "output_shapes: list(shape) >= 1",
            "preserve_cardinality: bool = false",
            "metadata: string = ''",
        ],
        kernels: &[cpu(&[], build_and_batch)],
        scripts: &[SCRIPT],
        ..DATASET
    },
    OpDef {
        name: "MapDataset",
        inputs: &["input_dataset: variant", "other_arguments: Targuments"],
        attrs: &[
            "f: func",
            "Targuments: list(type) >= 0",
            "output_types: list(type) >= 1",
            "output_shapes: list(shape) >= 1",
            "use_inter_op_parallelism: bool = true",
            "preserve_cardinality: bool = false",
            "force_synchronous: bool = false",
            "metadata: string = ''",
        ],
        kernels: &[cpu(&[], build)],
        scripts: &[SCRIPT],
        ..DATASET
    },
    OpDef {
        name: "ParallelMapDataset",
        inputs: &[
            "input_dataset: variant",
            "other_arguments: Targuments",
            "num_parallel_calls: int32",
        ],
        attrs: &[
            "f: func",
            "Targuments: list(type) >= 0",
            "output_types: list(type) >= 1",
            "output_shapes: list(shape) >= 1",
            "use_inter_op_parallelism: bool = true",
            "sloppy: bool = false",
            "preserve_cardinality: bool = false",
            "metadata: string = ''",
        ],
        kernels: &[cpu(&[], build_parallel)],
        scripts: &[SCRIPT],
        ..DATASET
    },
    OpDef {
        name: "ParallelMapDatasetV2",
        inputs: &[
            "input_dataset: variant",
            "other_arguments: Targuments",
            "num_parallel_calls: int64",
        ],
        attrs: &[
            "f: func",
            "Targuments: list(type) >= 0",
            "output_types: list(type) >= 1",
            "output_shapes: list(shape) >= 1",
            "use_inter_op_parallelism: bool = true",
            "deterministic: string = 'default'",
            "preserve_cardinality: bool = false",
            "use_unbounded_threadpool: bool = false",
            "metadata: string = ''",
        ],
        kernels: &[cpu(&[], build_parallel)],
        scripts: &[SCRIPT],
        ..DATASET
    },
];

/// As many calls at a time as there are threads.
pub(super) const AUTOTUNE: i64 = -1;
/// Nobody has a use for more.
const MOST_CALLS: usize = 1 << 10;

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let function = FunctionOf::attrs(node, "f", "Targuments")?;
    let keeps = node.attrs.bool("preserve_cardinality")?;
    kernel::build(node, move |ctx| {
        Ok(Map {
            input: [Dataset::input(ctx, 0)?],
            function: function.read(ctx, 1)?,
            calls: Calls::One,
            keeps,
        })
    })
}

fn build_parallel(node: &NodeInfo) -> Result<AnyKernel> {
    let function = FunctionOf::attrs(node, "f", "Targuments")?;
    let keeps = node.attrs.bool("preserve_cardinality")?;
    kernel::build(node, move |ctx| {
        Ok(Map {
            input: [Dataset::input(ctx, 0)?],
            calls: calls(ctx, function.end(1))?,
            function: function.read(ctx, 1)?,
            keeps,
        })
    })
}

fn build_and_batch(node: &NodeInfo) -> Result<AnyKernel> {
    let function = FunctionOf::attrs(node, "f", "Targuments")?;
    let keeps = node.attrs.bool("preserve_cardinality")?;
    // The attributes describe batches; what is in them is known by its types.
    let spec = std::sync::Arc::new(Spec {
        types: Spec::of(node)?.types,
        shapes: Vec::new(),
    });
    kernel::build(node, move |ctx| {
        let at = function.end(1);
        let batch_size = super::batch::size(ctx, at)?;
        let calls = calls(ctx, at + 1)?;
        let drop_remainder = kernel::scalar(ctx, at + 2, "drop_remainder")?;
        let map = Map {
            input: [Dataset::input(ctx, 0)?],
            function: function.read(ctx, 1)?,
            calls,
            keeps,
        };
        let mapped = Dataset::new(map, spec.clone())?;
        Ok(Batch::new(mapped, batch_size, drop_remainder))
    })
}

/// The number of calls at a time in input `index`.
fn calls(ctx: &KernelCtx<'_>, index: usize) -> Result<Calls> {
    ensure!(
        ctx.input(index)?.rank() == 0,
        invalid_argument,
        "num_parallel_calls must be a scalar"
    );
    match ctx.int(index)? {
        AUTOTUNE => Ok(Calls::AsThreads),
        calls if calls > 0 => Ok(Calls::Many(MOST_CALLS.min(calls as usize))),
        _ => Err(invalid_argument!(
            "num_parallel_calls must be greater than zero."
        )),
    }
}

/// How many calls at a time.
#[derive(Clone, Copy)]
enum Calls {
    /// One, on the thread that wants the element.
    One,
    Many(usize),
    AsThreads,
}

struct Map {
    input: [Dataset; 1],
    function: Function,
    calls: Calls,
    keeps: bool,
}

impl Stage for Map {
    fn iterate(&self, place: &Place) -> Result<Box<dyn Iterate>> {
        let input = self.input[0].iterate(place)?;
        let most = match self.calls {
            Calls::One => 1,
            Calls::Many(calls) => calls,
            Calls::AsThreads => place.home.threads(),
        };
        Ok(Box::new(Mapping {
            input,
            function: self.function.clone(),
            place: place.clone(),
            inline: matches!(self.calls, Calls::One),
            most,
            keeps: self.keeps,
            under_way: VecDeque::new(),
            ended: false,
        }))
    }

    fn cardinality(&self) -> i64 {
        match self.keeps {
            true => self.input[0].cardinality(),
            // The function may end it.
            false => UNKNOWN,
        }
    }

    fn inputs(&self) -> &[Dataset] {
        &self.input
    }
}

struct Mapping {
    input: Box<dyn Iterate>,
    function: Function,
    place: Place,
    inline: bool,
    most: usize,
    keeps: bool,
    /// In the order of the elements. An input that failed has its place among them.
    under_way: VecDeque<Result<Call>>,
    ended: bool,
}

impl Mapping {
    /// Begins as many calls as there may be.
    fn begin(&mut self, waker: &Waker) {
        while !self.ended && self.under_way.len() < self.most {
            let home = &self.place.home;
            let next = match self.input.next(waker) {
                Poll::Pending => return,
                Poll::Ready(Ok(None)) => {
                    self.ended = true;
                    return;
                }
                Poll::Ready(Ok(Some(element))) if self.inline => {
                    Ok(self.function.call(home, element))
                }
                Poll::Ready(Ok(Some(element))) => Ok(self.function.call_elsewhere(home, element)),
                Poll::Ready(Err(status)) => Err(status),
            };
            self.under_way.push_back(next);
        }
    }
}

impl Iterate for Mapping {
    fn next(&mut self, waker: &Waker) -> Next {
        self.begin(waker);
        let result = match self.under_way.front_mut() {
            Some(Ok(call)) => mapped(ready!(call.poll(waker)), self.keeps),
            Some(Err(_)) => Ok(None),
            None if self.ended => return Poll::Ready(Ok(None)),
            None => return Poll::Pending,
        };
        if let Some(Err(status)) = self.under_way.pop_front() {
            return Poll::Ready(Err(status));
        }
        Poll::Ready(result)
    }
}
