//! `InterleaveDataset`, `ParallelInterleaveDataset`, `V2` to `V4`, `LegacyParallelInterleaveDatasetV2`: the elements of the datasets that a function makes, some of
//! these datasets in turns.
//!
//! TensorFlow: InterleaveDataset(input_dataset: variant, other_arguments: Targuments, cycle_length: int64, block_length: int64)
//! -> handle: variant, with f: func; V2 and V3 also with num_parallel_calls: int64, V4 before it with
//! buffer_output_elements: int64 and prefetch_input_elements: int64. The parallel ones read ahead in each dataset of the cycle
//! on threads of their own and keep the order of the plain one, whatever the attributes allow.

use std::task::{Poll, Waker, ready};

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, ensure};

use super::ahead::Ahead;
use super::map::AUTOTUNE;
use crate::dataset::call::{Call, Function, FunctionOf, returned_dataset};
use crate::dataset::home::Place;
use crate::dataset::kernel::{self, DATASET};
use crate::dataset::value::{Dataset, Iterate, Next, Stage};

const SCRIPT: Script = script(
    "two in turns",
    "fn repeated(x: int64) -> d {
         three = int64[]{3}
         t = TensorDataset([x]) {output_shapes=[[]]}
         d = RepeatDataset(t, three) {output_types=[DT_INT64], output_shapes=[[]]}
     }
     zero = int64[]{0}
     one = int64[]{1}
     two = int64[]{2}
     three = int64[]{3}
     ten = int64[]{10}
     numbers = RangeDataset(zero, three, one) {output_types=[DT_INT64], output_shapes=[[]]}
     a = InterleaveDataset(numbers, [], two, two) {f=repeated, output_types=[DT_INT64], output_shapes=[[]]}
     b = ParallelInterleaveDatasetV2(numbers, [], two, two, two) {f=repeated, output_types=[DT_INT64], output_shapes=[[]]}
     c = ParallelInterleaveDatasetV3(numbers, [], two, two, two) {f=repeated, output_types=[DT_INT64], output_shapes=[[]], deterministic='true'}
     d = ParallelInterleaveDatasetV4(numbers, [], two, two, one, one, two) {f=repeated, output_types=[DT_INT64], output_shapes=[[]], deterministic='true'}
     none = InterleaveDataset(numbers, [], zero, two) {f=repeated, output_types=[DT_INT64], output_shapes=[[]]}
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
     l = IteratorV2() {output_types=[DT_INT64], output_shapes=[[]], shared_name='', container=''}
     make_l = MakeIterator(d, l)
     next_l = IteratorGetNext(l) {output_types=[DT_INT64], output_shapes=[[]]}",
    &[
        "run make_i, make_j, make_k, make_l",
        "fetch next_i => int64[]{0}",
        "fetch next_i => int64[]{0}",
        "fetch next_i => int64[]{1}",
        "fetch next_i => int64[]{1}",
        "fetch next_i => int64[]{0}",
        "fetch next_i => int64[]{1}",
        "fetch next_i => int64[]{2}",
        "fetch next_i => int64[]{2}",
        "fetch next_i => int64[]{2}",
        "fetch next_i fails OUT_OF_RANGE End of sequence",
        "fetch next_j => int64[]{0}",
        "fetch next_j => int64[]{0}",
        "fetch next_j => int64[]{1}",
        "fetch next_j => int64[]{1}",
        "fetch next_j => int64[]{0}",
        "fetch next_j => int64[]{1}",
        "fetch next_j => int64[]{2}",
        "fetch next_j => int64[]{2}",
        "fetch next_j => int64[]{2}",
        "fetch next_j fails OUT_OF_RANGE End of sequence",
        "fetch next_k => int64[]{0}",
        "fetch next_k => int64[]{0}",
        "fetch next_k => int64[]{1}",
        "fetch next_k => int64[]{1}",
        "fetch next_k => int64[]{0}",
        "fetch next_k => int64[]{1}",
        "fetch next_k => int64[]{2}",
        "fetch next_k => int64[]{2}",
        "fetch next_k => int64[]{2}",
        "fetch next_k fails OUT_OF_RANGE End of sequence",
        "fetch next_l => int64[]{0}",
        "fetch next_l => int64[]{0}",
        "fetch next_l => int64[]{1}",
        "fetch next_l => int64[]{1}",
        "fetch next_l => int64[]{0}",
        "fetch next_l => int64[]{1}",
        "fetch next_l => int64[]{2}",
        "fetch next_l => int64[]{2}",
        "fetch next_l => int64[]{2}",
        "fetch next_l fails OUT_OF_RANGE End of sequence",
        "fetch count_none fails INVALID_ARGUMENT cycle_length must be greater than zero.",
    ],
);

const LEGACY: Script = script(
    "two in turns, the older ones",
    "fn repeated(x: int64) -> d {
         three = int64[]{3}
         t = TensorDataset([x]) {output_shapes=[[]]}
         d = RepeatDataset(t, three) {output_types=[DT_INT64], output_shapes=[[]]}
     }
     zero = int64[]{0}
     one = int64[]{1}
     two = int64[]{2}
     three = int64[]{3}
     ten = int64[]{10}
     numbers = RangeDataset(zero, three, one) {output_types=[DT_INT64], output_shapes=[[]]}
     no = bool[]{false}
     keep = bool[]{false}
     a = ParallelInterleaveDataset(numbers, [], two, two, no, one, one) {f=repeated, output_types=[DT_INT64], output_shapes=[[]]}
     b = LegacyParallelInterleaveDatasetV2(numbers, [], two, two, one, one) {f=repeated, output_types=[DT_INT64], output_shapes=[[]], deterministic='true'}
     a_all = BatchDatasetV2(a, ten, keep) {output_types=[DT_INT64], output_shapes=[[?]]}
     b_all = BatchDatasetV2(b, ten, keep) {output_types=[DT_INT64], output_shapes=[[?]]}
     from_a = DatasetToSingleElement(a_all) {output_types=[DT_INT64], output_shapes=[[?]]}
     from_b = DatasetToSingleElement(b_all) {output_types=[DT_INT64], output_shapes=[[?]]}",
    &[
        "fetch from_a, from_b => int64[9]{0, 0, 1, 1, 0, 1, 2, 2, 2}; int64[9]{0, 0, 1, 1, 0, 1, 2, 2, 2}",
    ],
);

pub(crate) static OPS: [OpDef; 6] = [
    OpDef {
        name: "InterleaveDataset",
        inputs: &[
            "input_dataset: variant",
            "other_arguments: Targuments",
            "cycle_length: int64",
            "block_length: int64",
        ],
        attrs: &[
            "f: func",
            "Targuments: list(type) >= 0",
            "output_types: list(type) >= 1",
            "output_shapes: list(shape) >= 1",
            "metadata: string = ''",
        ],
        kernels: &[cpu(&[], |node| build(node, Kind::Plain))],
        scripts: &[SCRIPT],
        ..DATASET
    },
    OpDef {
        name: "LegacyParallelInterleaveDatasetV2",
        inputs: &[
            "input_dataset: variant",
            "other_arguments: Targuments",
            "cycle_length: int64",
            "block_length: int64",
            "buffer_output_elements: int64",
            "prefetch_input_elements: int64",
        ],
        attrs: PARALLEL_ATTRS,
        kernels: &[cpu(&[], |node| build(node, Kind::Legacy))],
        scripts: &[LEGACY],
        ..DATASET
    },
    OpDef {
        name: "ParallelInterleaveDataset",
        inputs: &[
            "input_dataset: variant",
            "other_arguments: Targuments",
            "cycle_length: int64",
            "block_length: int64",
            "sloppy: bool",
            "buffer_output_elements: int64",
            "prefetch_input_elements: int64",
        ],
        attrs: &[
            "f: func",
            "Targuments: list(type) >= 0",
            "output_types: list(type) >= 1",
            "output_shapes: list(shape) >= 1",
            "metadata: string = ''",
        ],
        kernels: &[cpu(&[], |node| build(node, Kind::Legacy))],
        scripts: &[LEGACY],
        ..DATASET
    },
    OpDef {
        name: "ParallelInterleaveDatasetV2",
        inputs: &[
            "input_dataset: variant",
            "other_arguments: Targuments",
            "cycle_length: int64",
            "block_length: int64",
            "num_parallel_calls: int64",
        ],
        attrs: &[
            "f: func",
            "Targuments: list(type) >= 0",
            "output_types: list(type) >= 1",
            "output_shapes: list(shape) >= 1",
            "sloppy: bool = false",
            "metadata: string = ''",
        ],
        kernels: &[cpu(&[], |node| build(node, Kind::Parallel))],
        scripts: &[SCRIPT],
        ..DATASET
    },
    OpDef {
        name: "ParallelInterleaveDatasetV3",
        inputs: &[
            "input_dataset: variant",
            "other_arguments: Targuments",
            "cycle_length: int64",
            "block_length: int64",
            "num_parallel_calls: int64",
        ],
        attrs: PARALLEL_ATTRS,
        kernels: &[cpu(&[], |node| build(node, Kind::Parallel))],
        scripts: &[SCRIPT],
        ..DATASET
    },
    OpDef {
        name: "ParallelInterleaveDatasetV4",
        inputs: &[
            "input_dataset: variant",
            "other_arguments: Targuments",
            "cycle_length: int64",
            "block_length: int64",
            "buffer_output_elements: int64",
            "prefetch_input_elements: int64",
            "num_parallel_calls: int64",
        ],
        attrs: PARALLEL_ATTRS,
        kernels: &[cpu(&[], |node| build(node, Kind::Parallel))],
        scripts: &[SCRIPT],
        ..DATASET
    },
];

const PARALLEL_ATTRS: &[&str] = &[
    "f: func",
    "deterministic: string = 'default'",
    "Targuments: list(type) >= 0",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "metadata: string = ''",
];

/// Cycles and blocks may be this long, as in TensorFlow.
const LONGEST: i64 = 100_000;
/// Elements that a dataset of a parallel cycle is ahead if nobody says how many.
const AHEAD: usize = 16;

/// The kinds of these datasets.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Plain,
    /// Ahead, with a number of calls as the last input.
    Parallel,
    /// Ahead, without.
    Legacy,
}

fn build(node: &NodeInfo, kind: Kind) -> Result<AnyKernel> {
    let parallel = kind == Kind::Parallel;
    let function = FunctionOf::attrs(node, "f", "Targuments")?;
    kernel::build(node, move |ctx| {
        let at = function.end(1);
        let (cycle, block) = (
            length(ctx, at, "cycle_length", parallel)?,
            length(ctx, at + 1, "block_length", false)?,
        );
        let ahead = match kind {
            Kind::Plain => None,
            _ => Some(block.clamp(1, AHEAD)),
        };
        if parallel {
            let calls: i64 = kernel::scalar(ctx, ctx.num_inputs() - 1, "num_parallel_calls")?;
            ensure!(
                calls > 0 || calls == AUTOTUNE,
                invalid_argument,
                "num_parallel_calls must be greater than zero."
            );
        }
        Ok(Interleave {
            input: [Dataset::input(ctx, 0)?],
            function: function.read(ctx, 1)?,
            cycle,
            block,
            ahead,
        })
    })
}

fn length(ctx: &KernelCtx<'_>, index: usize, name: &str, may_be_any: bool) -> Result<usize> {
    let length: i64 = kernel::scalar(ctx, index, name)?;
    if may_be_any && length == AUTOTUNE {
        return Ok(0);
    }
    ensure!(
        length > 0,
        invalid_argument,
        "{name} must be greater than zero."
    );
    ensure!(
        length <= LONGEST,
        invalid_argument,
        "{name} must be less than or equal to {LONGEST}"
    );
    Ok(length as usize)
}

struct Interleave {
    input: [Dataset; 1],
    function: Function,
    /// Zero for as many as there are threads.
    cycle: usize,
    block: usize,
    ahead: Option<usize>,
}

impl Stage for Interleave {
    fn iterate(&self, place: &Place) -> Result<Box<dyn Iterate>> {
        let cycle = match self.cycle {
            0 => place.home.threads(),
            cycle => cycle,
        };
        Ok(Box::new(Interleaving {
            input: self.input[0].iterate(place)?,
            function: self.function.clone(),
            place: place.clone(),
            ended: false,
            cycle: std::iter::repeat_with(|| Slot::Empty).take(cycle).collect(),
            block: self.block,
            at: 0,
            within: 0,
            open: 0,
            ahead: self.ahead,
        }))
    }

    fn inputs(&self) -> &[Dataset] {
        &self.input
    }
}

enum Slot {
    Empty,
    Called(Call),
    Open(Box<dyn Iterate>),
}

struct Interleaving {
    input: Box<dyn Iterate>,
    function: Function,
    place: Place,
    ended: bool,
    cycle: Vec<Slot>,
    block: usize,
    /// Whose turn it is, and how many elements of its turn are taken.
    at: usize,
    within: usize,
    /// Slots that are not empty.
    open: usize,
    ahead: Option<usize>,
}

impl Interleaving {
    fn turn(&mut self) {
        self.within = 0;
        self.at = (self.at + 1) % self.cycle.len();
    }

    /// Lets the datasets whose turns come start on theirs.
    fn fill(&mut self, waker: &Waker) {
        if self.ahead.is_none() || self.ended || self.open == self.cycle.len() {
            return;
        }
        for step in 0..self.cycle.len() {
            let at = (self.at + step) % self.cycle.len();
            if self.ended || !matches!(self.cycle[at], Slot::Empty) {
                continue;
            }
            match self.input.next(waker) {
                Poll::Ready(Ok(Some(element))) => {
                    let call = self.function.call(&self.place.home, element);
                    self.cycle[at] = self.opened(call, waker);
                    self.open += 1;
                }
                Poll::Ready(Ok(None)) => self.ended = true,
                Poll::Ready(Err(status)) => {
                    self.cycle[at] = Slot::Open(Box::new(Fails(Some(status))));
                    self.open += 1;
                }
                Poll::Pending => return,
            }
        }
    }

    /// The slot of a dataset that is asked for, opened at once if it is there.
    fn opened(&self, mut call: Call, waker: &Waker) -> Slot {
        if !call.is_done() {
            return Slot::Called(call);
        }
        match call.poll(waker) {
            Poll::Ready(Ok(results)) => match self.open(&results) {
                Ok(open) => Slot::Open(open),
                Err(status) => Slot::Open(Box::new(Fails(Some(status)))),
            },
            Poll::Ready(Err(status)) => Slot::Open(Box::new(Fails(Some(status)))),
            Poll::Pending => Slot::Called(call),
        }
    }

    fn open(&self, results: &[tensorfleet_tensor::Tensor]) -> Result<Box<dyn Iterate>> {
        let iterator = returned_dataset(results)?.iterate(&self.place)?;
        Ok(match self.ahead {
            Some(most) => Box::new(Ahead::start(iterator, &self.place, most)),
            None => iterator,
        })
    }
}

/// A dataset that could not be made.
struct Fails(Option<tensorfleet_status::Status>);

impl Iterate for Fails {
    fn next(&mut self, _: &Waker) -> Next {
        Poll::Ready(match self.0.take() {
            Some(status) => Err(status),
            None => Ok(None),
        })
    }
}

impl Iterate for Interleaving {
    fn next(&mut self, waker: &Waker) -> Next {
        while !self.ended || self.open > 0 {
            self.fill(waker);
            let at = self.at;
            match &mut self.cycle[at] {
                Slot::Open(current) => match ready!(current.next(waker)) {
                    Ok(Some(element)) => {
                        self.within += 1;
                        if self.within == self.block {
                            self.turn();
                        }
                        return Poll::Ready(Ok(Some(element)));
                    }
                    Ok(None) => {
                        self.cycle[at] = Slot::Empty;
                        self.open -= 1;
                        self.turn();
                    }
                    Err(status) => return Poll::Ready(Err(status)),
                },
                Slot::Called(call) => {
                    let results = ready!(call.poll(waker));
                    self.cycle[at] = Slot::Empty;
                    self.open -= 1;
                    let iterator = self.open(&results?)?;
                    self.cycle[at] = Slot::Open(iterator);
                    self.open += 1;
                }
                Slot::Empty if self.ended => self.turn(),
                Slot::Empty => match ready!(self.input.next(waker))? {
                    Some(element) => {
                        let call = self.function.call(&self.place.home, element);
                        self.cycle[at] = Slot::Called(call);
                        self.open += 1;
                    }
                    None => self.ended = true,
                },
            }
        }
        Poll::Ready(Ok(None))
    }
}
