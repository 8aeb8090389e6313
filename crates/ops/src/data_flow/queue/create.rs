//! `FIFOQueueV2`, `PaddingFIFOQueueV2`, `PriorityQueueV2`, `RandomShuffleQueueV2` and their older forms: make queues.
//!
//! TensorFlow: FIFOQueueV2() -> handle: resource, with attrs component_types: list(type), shapes: list(shape) = [],
//! capacity: int = -1 (no limit), container: string = "", shared_name: string = "". A padding queue takes shapes with
//! unknown dimensions and pads with zeros when it gives many elements at once. A priority queue has an int64 before all
//! other components and gives the smallest first. A shuffling queue also has min_after_dequeue, seed and seed2.

use std::hash::{BuildHasher, RandomState};

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{Cost, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::Result;

use super::BY_HANDLE;
use super::spec::{Kind, Spec};
use super::waiting::Queue;
use crate::data_flow::keeper::Keeper;

pub(crate) static OPS: [OpDef; 8] = [
    OpDef {
        name: "FIFOQueue",
        kernels: &[cpu(&[], build_fifo)],
        scripts: &[BY_NAME],
        ..CREATE_REF
    },
    OpDef {
        name: "FIFOQueueV2",
        kernels: &[cpu(&[], build_fifo)],
        scripts: &[SHARED, WRONG],
        ..CREATE
    },
    OpDef {
        name: "PaddingFIFOQueue",
        kernels: &[cpu(&[], build_padding)],
        scripts: &[BY_NAME],
        ..CREATE_REF
    },
    OpDef {
        name: "PaddingFIFOQueueV2",
        kernels: &[cpu(&[], build_padding)],
        scripts: &[PADDED],
        ..CREATE
    },
    OpDef {
        name: "PriorityQueue",
        attrs: PRIORITY_ATTRS,
        kernels: &[cpu(&[], build_priority)],
        scripts: &[BY_NAME],
        ..CREATE_REF
    },
    OpDef {
        name: "PriorityQueueV2",
        attrs: PRIORITY_ATTRS,
        kernels: &[cpu(&[], build_priority)],
        scripts: &[PRIORITY],
        ..CREATE
    },
    OpDef {
        name: "RandomShuffleQueue",
        attrs: SHUFFLE_ATTRS,
        kernels: &[cpu(&[], build_shuffle)],
        scripts: &[BY_NAME],
        ..CREATE_REF
    },
    OpDef {
        name: "RandomShuffleQueueV2",
        attrs: SHUFFLE_ATTRS,
        kernels: &[cpu(&[], build_shuffle)],
        scripts: &[SHUFFLED],
        ..CREATE
    },
];

const CREATE: OpDef = OpDef {
    outputs: &["handle: resource"],
    attrs: &[
        "component_types: list(type) >= 1",
        "shapes: list(shape) >= 0 = []",
        "capacity: int = -1",
        "container: string = ''",
        "shared_name: string = ''",
    ],
    infer: infer::scalar,
    cost: Cost::Cheap,
    ..BY_HANDLE
};

const CREATE_REF: OpDef = OpDef {
    outputs: &["handle: Ref(string)"],
    infer: infer::unknown,
    ..CREATE
};

const PRIORITY_ATTRS: &[&str] = &[
    "component_types: list(type) >= 0 = []",
    "shapes: list(shape) >= 0",
    "capacity: int = -1",
    "container: string = ''",
    "shared_name: string = ''",
];

const SHUFFLE_ATTRS: &[&str] = &[
    "component_types: list(type) >= 1",
    "shapes: list(shape) >= 0 = []",
    "capacity: int = -1",
    "min_after_dequeue: int = 0",
    "seed: int = 0",
    "seed2: int = 0",
    "container: string = ''",
    "shared_name: string = ''",
];

const BY_NAME: Script = script(
    "by reference to a name",
    "f = FIFOQueue() {component_types=[DT_INT32], shapes=[[]]}
     p = PaddingFIFOQueue() {component_types=[DT_INT32], shapes=[[?]]}
     o = PriorityQueue() {component_types=[DT_INT32], shapes=[[]]}
     r = RandomShuffleQueue() {component_types=[DT_INT32], shapes=[[]], seed=1}
     x = int32[]{7}
     v = int32[2]{8, 9}
     k = int64[]{3}
     ks = int64[2]{2, 1}
     ef = QueueEnqueue(f, [x])
     mf = QueueEnqueueMany(f, [v])
     ep = QueueEnqueue(p, [v])
     eo = QueueEnqueueMany(o, [ks, v])
     er = QueueEnqueue(r, [x])
     df = QueueDequeue(f) {component_types=[DT_INT32]}
     two = int32[]{2}
     nf = QueueDequeueMany(f, two) {component_types=[DT_INT32]}
     dp = QueueDequeue(p) {component_types=[DT_INT32]}
     do = QueueDequeue(o) {component_types=[DT_INT64, DT_INT32]}
     single = int32[]{1}
     uo = QueueDequeueUpTo(o, single) {component_types=[DT_INT64, DT_INT32]}
     dr = QueueDequeue(r) {component_types=[DT_INT32]}
     size = QueueSize(f)
     closed = QueueIsClosed(f)
     close = QueueClose(f)",
    &[
        "run ef",
        "run mf",
        "run ep, eo, er",
        "fetch size, closed => int32[]{3}; bool[]{false}",
        "fetch df, dp, dr => int32[]{7}; int32[2]{8, 9}; int32[]{7}",
        "fetch nf => int32[2]{8, 9}",
        "fetch do:0, do:1 => int64[]{1}; int32[]{9}",
        "fetch uo:0, uo:1 => int64[1]{2}; int32[1]{8}",
        "run close",
        "fetch closed => bool[]{true}",
    ],
);

const SHARED: Script = script(
    "shared by name",
    "a = FIFOQueueV2() {component_types=[DT_INT32], shapes=[[]], shared_name='q', capacity=5}
     b = FIFOQueueV2() {component_types=[DT_INT32], shapes=[[]], shared_name='q', capacity=5}
     own = FIFOQueueV2() {component_types=[DT_INT32], shapes=[[]], capacity=5}
     other = FIFOQueueV2() {component_types=[DT_INT32], shapes=[[]], capacity=5}
     x = int32[]{7}
     put = QueueEnqueueV2(a, [x])
     keep = QueueEnqueueV2(own, [x])
     got = QueueDequeueV2(b) {component_types=[DT_INT32]}
     sizes_own = QueueSizeV2(own)
     sizes_other = QueueSizeV2(other)
     c = FIFOQueueV2() {component_types=[DT_INT32], shapes=[[]], shared_name='q', capacity=6}
     d = FIFOQueueV2() {component_types=[DT_FLOAT], shapes=[[]], shared_name='q', capacity=5}
     e = FIFOQueueV2() {component_types=[DT_INT32], shapes=[[2]], shared_name='q', capacity=5}
     f = RandomShuffleQueueV2() {component_types=[DT_INT32], shapes=[[]], shared_name='q', capacity=5}",
    &[
        "run put, keep",
        "fetch got => int32[]{7}",
        "fetch sizes_own, sizes_other => int32[]{1}; int32[]{0}",
        "run c fails INVALID_ARGUMENT Shared queue 'q' has capacity 5 but requested capacity was 6",
        "run d fails INVALID_ARGUMENT Shared queue 'q' has component types int32 but requested component types were float",
        "run e fails INVALID_ARGUMENT Shared queue 'q' has component shapes [[]] but requested component shapes were [[2]]",
        "run f fails INVALID_ARGUMENT Expected FIFOQueue, found RandomShuffleQueueV2",
    ],
);

const WRONG: Script = script(
    "queues that are none",
    "a = FIFOQueueV2() {component_types=[DT_INT32], shapes=[[], []]}
     b = FIFOQueueV2() {component_types=[DT_INT32], shapes=[[?]]}
     c = PaddingFIFOQueueV2() {component_types=[DT_INT32]}
     d = RandomShuffleQueueV2() {component_types=[DT_INT32], capacity=2, min_after_dequeue=2}
     e = FIFOQueueV2() {component_types=[DT_INT32], shared_name='_q'}",
    &[
        "run a fails INVALID_ARGUMENT",
        "run b fails INVALID_ARGUMENT",
        "run c fails INVALID_ARGUMENT",
        "run d fails INVALID_ARGUMENT",
        "run e fails INVALID_ARGUMENT shared_name cannot start with '_':_q",
    ],
);

const PADDED: Script = script(
    "padded with zeros",
    "q = PaddingFIFOQueueV2() {component_types=[DT_FLOAT, DT_STRING], shapes=[[?,2], [?]]}
     x = float[1,2]{1, 2}
     y = float[2,2]{3, 4, 5, 6}
     s = string[2]{a, b}
     t = string[1]{c}
     bad = float[2,3]{1}
     put_x = QueueEnqueueV2(q, [x, s])
     put_y = QueueEnqueueV2(q, [y, t])
     put_bad = QueueEnqueueV2(q, [bad, t])
     two = int32[]{2}
     zero = int32[]{0}
     got = QueueDequeueManyV2(q, two) {component_types=[DT_FLOAT, DT_STRING]}
     one = QueueDequeueV2(q) {component_types=[DT_FLOAT, DT_STRING]}
     none = QueueDequeueManyV2(q, zero) {component_types=[DT_FLOAT, DT_STRING]}
     up_to = QueueDequeueUpToV2(q, two) {component_types=[DT_FLOAT, DT_STRING]}
     close = QueueCloseV2(q)",
    &[
        "run put_x",
        "run put_y",
        "fetch got:0, got:1 => float[2,2,2]{1, 2, 0, 0, 3, 4, 5, 6}; string[2,2]{a, b, c, ''}",
        "fetch none:0, none:1 => float[0,0,2]{}; string[0,0]{}",
        "run put_bad fails INVALID_ARGUMENT Shape mismatch in tuple component 0. Expected [?,2], got [2,3]",
        "run put_x",
        "fetch one:0, one:1 => float[1,2]{1, 2}; string[2]{a, b}",
        "run put_y",
        "run close",
        "fetch up_to:0, up_to:1 => float[1,2,2]{3, 4, 5, 6}; string[1,1]{c}",
        "fetch up_to:0 fails OUT_OF_RANGE is closed and has insufficient elements (requested 2, current size 0)",
        "fetch one:0 fails OUT_OF_RANGE is closed and has insufficient elements (requested 1, current size 0)",
        "run put_x fails CANCELLED is closed.",
    ],
);

const PRIORITY: Script = script(
    "smallest first",
    "q = PriorityQueueV2() {component_types=[DT_STRING], shapes=[[]]}
     keys = int64[7]{5, 3, 9, 3, 5, 3, 1}
     words = string[7]{a, b, c, d, e, f, g}
     put = QueueEnqueueManyV2(q, [keys, words])
     seven = int32[]{7}
     got = QueueDequeueManyV2(q, seven) {component_types=[DT_INT64, DT_STRING]}
     key = int64[]{4}
     word = string[]{h}
     put_one = QueueEnqueueV2(q, [key, word])
     got_one = QueueDequeueV2(q) {component_types=[DT_INT64, DT_STRING]}
     vector = int64[1]{4}
     bad = QueueEnqueueV2(q, [vector, word])",
    &[
        "run put",
        "fetch got:0, got:1 => int64[7]{1, 3, 3, 3, 5, 5, 9}; string[7]{g, b, f, d, a, e, c}",
        "run put_one",
        "fetch got_one:0, got_one:1 => int64[]{4}; string[]{h}",
        "run bad fails INVALID_ARGUMENT",
    ],
);

const SHUFFLED: Script = script(
    "in TensorFlow's order for given seeds",
    "q = RandomShuffleQueueV2() {component_types=[DT_INT32], shapes=[[]], seed=3, seed2=4, min_after_dequeue=2}
     x = int32[10]{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
     put = QueueEnqueueManyV2(q, [x])
     five = int32[]{5}
     many = QueueDequeueManyV2(q, five) {component_types=[DT_INT32]}
     one = QueueDequeueV2(q) {component_types=[DT_INT32]}
     close = QueueCloseV2(q)
     rest = QueueDequeueUpToV2(q, five) {component_types=[DT_INT32]}
     size = QueueSizeV2(q)",
    &[
        "run put",
        "fetch many => ?",
        "fetch one => ?",
        "fetch size => int32[]{4}",
        "run close",
        "fetch rest => ?",
        "fetch one fails OUT_OF_RANGE is closed and has insufficient elements (requested 1, current size 0)",
    ],
);

fn build_fifo(node: &NodeInfo) -> Result<AnyKernel> {
    build(node, Kind::Fifo)
}

fn build_padding(node: &NodeInfo) -> Result<AnyKernel> {
    build(node, Kind::PaddingFifo)
}

fn build_priority(node: &NodeInfo) -> Result<AnyKernel> {
    build(node, Kind::Priority)
}

fn build_shuffle(node: &NodeInfo) -> Result<AnyKernel> {
    build(node, Kind::RandomShuffle)
}

fn build(node: &NodeInfo, kind: Kind) -> Result<AnyKernel> {
    let spec = Spec::of(node, kind)?;
    let keeper: Keeper<Queue> = Keeper::of(node)?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let op = &ctx.node().op;
        let make = |name: &str| Ok(Queue::new(name, spec.clone(), entropy));
        let verify = |queue: &Queue| queue.spec.check_shared(&queue.name, &spec, op);
        keeper.hand_out(ctx, make, verify)
    })
}

/// Bits that nobody can foresee: the standard library seeds its hashers with them.
fn entropy() -> i64 {
    RandomState::new().hash_one(0u64) as i64
}
