//! `ReaderReadV2`, `ReaderReadUpToV2`, `ReaderNumRecordsProducedV2`, `ReaderNumWorkUnitsCompletedV2`,
//! `ReaderSerializeStateV2`, `ReaderRestoreStateV2`, `ReaderResetV2` and their older forms: what readers do.
//!
//! TensorFlow: ReaderReadV2(reader_handle: resource, queue_handle: resource) -> (key: string, value: string), the next record;
//! a unit of work is taken from the queue whenever the last one is done. ReaderReadUpToV2(reader_handle, queue_handle,
//! num_records: int64) -> (keys, values): at most so many, and all of one unit. Only readers of whole files and the identity
//! reader have a state that can be saved.

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::infer::{self, InferCtx};
use tensorfleet_graph::{OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, AsyncCtx, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, ensure, invalid_argument};
use tensorfleet_tensor::{PartialShape, TString, Tensor};

use super::BY_HANDLE;
use super::line::{Read, Reader, Verb};
use crate::data_flow::keeper::{resource, resource_at};

pub(crate) static OPS: [OpDef; 14] = [
    OpDef {
        name: "ReaderNumRecordsProduced",
        inputs: &["reader_handle: Ref(string)"],
        outputs: &["records_produced: int64"],
        kernels: &[cpu(&[], build_produced)],
        ..VERB_REF
    },
    OpDef {
        name: "ReaderNumRecordsProducedV2",
        inputs: &["reader_handle: resource"],
        outputs: &["records_produced: int64"],
        kernels: &[cpu(&[], build_produced)],
        ..VERB
    },
    OpDef {
        name: "ReaderNumWorkUnitsCompleted",
        inputs: &["reader_handle: Ref(string)"],
        outputs: &["units_completed: int64"],
        kernels: &[cpu(&[], build_completed)],
        ..VERB_REF
    },
    OpDef {
        name: "ReaderNumWorkUnitsCompletedV2",
        inputs: &["reader_handle: resource"],
        outputs: &["units_completed: int64"],
        kernels: &[cpu(&[], build_completed)],
        ..VERB
    },
    OpDef {
        name: "ReaderRead",
        inputs: &["reader_handle: Ref(string)", "queue_handle: Ref(string)"],
        outputs: &["key: string", "value: string"],
        kernels: &[cpu(&[], build_read)],
        ..VERB_REF
    },
    OpDef {
        name: "ReaderReadUpTo",
        inputs: &[
            "reader_handle: Ref(string)",
            "queue_handle: Ref(string)",
            "num_records: int64",
        ],
        outputs: &["keys: string", "values: string"],
        infer: vectors,
        kernels: &[cpu(&[], build_read_up_to)],
        ..VERB_REF
    },
    OpDef {
        name: "ReaderReadUpToV2",
        inputs: &[
            "reader_handle: resource",
            "queue_handle: resource",
            "num_records: int64",
        ],
        outputs: &["keys: string", "values: string"],
        infer: vectors,
        kernels: &[cpu(&[], build_read_up_to)],
        ..VERB
    },
    OpDef {
        name: "ReaderReadV2",
        inputs: &["reader_handle: resource", "queue_handle: resource"],
        outputs: &["key: string", "value: string"],
        kernels: &[cpu(&[], build_read)],
        scripts: &[READ, WRONG_WORK],
        ..VERB
    },
    OpDef {
        name: "ReaderReset",
        inputs: &["reader_handle: Ref(string)"],
        kernels: &[cpu(&[], build_reset)],
        ..VERB_REF
    },
    OpDef {
        name: "ReaderResetV2",
        inputs: &["reader_handle: resource"],
        kernels: &[cpu(&[], build_reset)],
        ..VERB
    },
    OpDef {
        name: "ReaderRestoreState",
        inputs: &["reader_handle: Ref(string)", "state: string"],
        kernels: &[cpu(&[], build_restore)],
        ..VERB_REF
    },
    OpDef {
        name: "ReaderRestoreStateV2",
        inputs: &["reader_handle: resource", "state: string"],
        kernels: &[cpu(&[], build_restore)],
        scripts: &[SAVED],
        ..VERB
    },
    OpDef {
        name: "ReaderSerializeState",
        inputs: &["reader_handle: Ref(string)"],
        outputs: &["state: string"],
        kernels: &[cpu(&[], build_serialize)],
        ..VERB_REF
    },
    OpDef {
        name: "ReaderSerializeStateV2",
        inputs: &["reader_handle: resource"],
        outputs: &["state: string"],
        kernels: &[cpu(&[], build_serialize)],
        scripts: &[SAVED],
        ..VERB
    },
];

const VERB: OpDef = OpDef {
    infer: infer::scalar,
    scripts: &[READ],
    ..BY_HANDLE
};

const VERB_REF: OpDef = OpDef {
    stateful: false,
    scripts: &[BY_NAME],
    ..VERB
};

fn vectors(ctx: &mut InferCtx<'_>) -> Result<()> {
    for index in 0..2 {
        ctx.set(index, PartialShape::of_rank(1));
    }
    Ok(())
}

const BY_NAME: Script = script(
    "by reference to a name",
    "r = IdentityReader() {container='c', shared_name='r'}
     q = FIFOQueue() {component_types=[DT_STRING], shapes=[[]]}
     names = string[3]{a, b, c}
     put = QueueEnqueueMany(q, [names])
     one = ReaderRead(r, q)
     five = int64[]{5}
     many = ReaderReadUpTo(r, q, five)
     produced = ReaderNumRecordsProduced(r)
     completed = ReaderNumWorkUnitsCompleted(r)
     state = ReaderSerializeState(r)
     bytes = DecodeRaw(state) {out_type=uint8}
     reset = ReaderReset(r)
     restore = ReaderRestoreState(r, state, ^reset)",
    &[
        "run put",
        "fetch one:0, one:1 => string[]{a}; string[]{a}",
        "fetch many:0, many:1 => string[1]{b}; string[1]{b}",
        "fetch produced, completed => int64[]{2}; int64[]{2}",
        "fetch bytes => uint8[9]{8, 2, 16, 2, 24, 2, 34, 1, 98}",
        "run reset",
        "fetch produced, completed => int64[]{0}; int64[]{0}",
        "fetch one:1 => string[]{c}",
    ],
);

const READ: Script = script(
    "work from a queue until it is closed",
    "r = IdentityReaderV2()
     q = FIFOQueueV2() {component_types=[DT_STRING]}
     names = string[3]{a, b, c}
     unit = string[1]{d}
     put = QueueEnqueueManyV2(q, [names])
     more = QueueEnqueueV2(q, [unit])
     close = QueueCloseV2(q)
     one = ReaderReadV2(r, q)
     two = int64[]{2}
     zero = int64[]{0}
     up_to = ReaderReadUpToV2(r, q, two)
     none = ReaderReadUpToV2(r, q, zero)
     produced = ReaderNumRecordsProducedV2(r)
     completed = ReaderNumWorkUnitsCompletedV2(r)
     reset = ReaderResetV2(r)",
    &[
        "fetch none:0, none:1 => string[0]{}; string[0]{}",
        "run put",
        "run more",
        "fetch one:0, one:1 => string[]{a}; string[]{a}",
        "fetch up_to:0, up_to:1 => string[1]{b}; string[1]{b}",
        "fetch one:1 => string[]{c}",
        "fetch one:1 => string[]{d}",
        "fetch produced, completed => int64[]{4}; int64[]{4}",
        "run reset",
        "fetch produced, completed => int64[]{0}; int64[]{0}",
        "run close",
        "fetch one:0 fails OUT_OF_RANGE is closed and has insufficient elements (requested 1, current size 0)",
        "fetch up_to:0 fails OUT_OF_RANGE is closed and has insufficient elements (requested 1, current size 0)",
    ],
);

const WRONG_WORK: Script = script(
    "queues of other things than names",
    "r = IdentityReaderV2()
     two = FIFOQueueV2() {component_types=[DT_STRING, DT_STRING]}
     ints = FIFOQueueV2() {component_types=[DT_INT32]}
     vectors = FIFOQueueV2() {component_types=[DT_STRING]}
     s = string[2]{a, b}
     i = int32[]{1}
     put_two = QueueEnqueueV2(two, [s, s])
     put_int = QueueEnqueueV2(ints, [i])
     put_vector = QueueEnqueueV2(vectors, [s])
     a = ReaderReadV2(r, two)
     b = ReaderReadV2(r, ints)
     c = ReaderReadV2(r, vectors)",
    &[
        "run put_two, put_int, put_vector",
        "fetch a fails INVALID_ARGUMENT Expected single component queue",
        "fetch b fails INVALID_ARGUMENT Expected queue with single string component",
        "fetch c fails INVALID_ARGUMENT Expected to dequeue a one-element string tensor",
    ],
);

const SAVED: Script = script(
    "saved and restored",
    "r = IdentityReaderV2()
     other = WholeFileReaderV2()
     lines = TextLineReaderV2()
     q = FIFOQueueV2() {component_types=[DT_STRING]}
     names = string[2]{a, b}
     put = QueueEnqueueManyV2(q, [names])
     one = ReaderReadV2(r, q)
     state = ReaderSerializeStateV2(r)
     take = ReaderRestoreStateV2(other, state)
     produced = ReaderNumRecordsProducedV2(other)
     bogus = string[]{BOGUS}
     vector = string[1]{BOGUS}
     empty = string[]{''}
     wrong = ReaderRestoreStateV2(other, bogus)
     shape = ReaderRestoreStateV2(other, vector)
     anew = ReaderRestoreStateV2(other, empty)
     no_save = ReaderSerializeStateV2(lines)
     no_restore = ReaderRestoreStateV2(lines, empty)",
    &[
        "run put",
        "fetch one:0 => string[]{a}",
        "run take",
        "fetch produced => int64[]{1}",
        "run wrong fails INVALID_ARGUMENT Could not parse state for WholeFileReader 'other': BOGUS",
        "fetch produced => int64[]{0}",
        "run take",
        "run anew",
        "fetch produced => int64[]{0}",
        "run shape fails INVALID_ARGUMENT ",
        "fetch no_save fails UNIMPLEMENTED Reader SerializeState",
        "run no_restore fails UNIMPLEMENTED Reader RestoreState",
    ],
);

fn build_read(_: &NodeInfo) -> Result<AnyKernel> {
    build(|ctx| read(ctx, 1, true))
}

fn build_read_up_to(_: &NodeInfo) -> Result<AnyKernel> {
    build(|ctx| {
        let wanted = ctx.int(2)?;
        let wanted = usize::try_from(wanted)
            .map_err(|_| invalid_argument!("num_records must be >= 0 not {wanted}"))?;
        read(ctx, wanted, false)
    })
}

fn read(ctx: &KernelCtx<'_>, wanted: usize, single: bool) -> Result<Verb> {
    Ok(Verb::Read(Read {
        queue: resource_at(ctx, 1)?,
        wanted,
        single,
        records: Vec::new(),
    }))
}

fn build_produced(_: &NodeInfo) -> Result<AnyKernel> {
    build(|_| {
        Ok(Verb::Tell(|_, counts, _| {
            Ok(Tensor::scalar(counts.num_records_produced))
        }))
    })
}

fn build_completed(_: &NodeInfo) -> Result<AnyKernel> {
    build(|_| {
        Ok(Verb::Tell(|_, counts, _| {
            Ok(Tensor::scalar(counts.work_finished))
        }))
    })
}

fn build_serialize(_: &NodeInfo) -> Result<AnyKernel> {
    build(|_| Ok(Verb::Tell(Reader::saved)))
}

fn build_reset(_: &NodeInfo) -> Result<AnyKernel> {
    build(|_| Ok(Verb::Reset))
}

fn build_restore(_: &NodeInfo) -> Result<AnyKernel> {
    build(|ctx| {
        let state = ctx.input(1)?;
        ensure!(
            state.rank() == 0,
            invalid_argument,
            "Reader state must be scalar, but had shape: {}",
            state.shape()
        );
        Ok(Verb::Restore(state.to_scalar::<TString>()?))
    })
}

fn build(verb: fn(&KernelCtx<'_>) -> Result<Verb>) -> Result<AnyKernel> {
    AnyKernel::later(move |mut ctx: AsyncCtx| {
        let prepared = ctx.view(|view| Ok((resource::<Reader>(view)?, verb(view)?)));
        match prepared {
            Ok((reader, verb)) => reader.submit(ctx, verb),
            Err(status) => ctx.fail(status),
        }
    })
}
