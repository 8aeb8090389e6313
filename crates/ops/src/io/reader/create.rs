//! `WholeFileReaderV2`, `TextLineReaderV2`, `FixedLengthRecordReaderV2`, `TFRecordReaderV2`, `IdentityReaderV2` and their
//! older forms: make readers.
//!
//! TensorFlow: WholeFileReaderV2() -> reader_handle: resource, with attrs container: string = "", shared_name: string = "";
//! TextLineReaderV2 also has skip_header_lines: int = 0, FixedLengthRecordReaderV2 record_bytes: int and header_bytes,
//! footer_bytes, hop_bytes: int = 0 and encoding: string = "", TFRecordReaderV2 compression_type: string = "". Both know ZLIB
//! and GZIP.

use tensorfleet_checkpoint::packed::Packing;
use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{Cost, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, invalid_argument};

use super::BY_HANDLE;
use super::line::Reader;
use super::source::{FixedLength, Identity, Layout, Source, TextLine, TfRecord, WholeFile};
use crate::data_flow::keeper::Keeper;

pub(crate) static OPS: [OpDef; 10] = [
    OpDef {
        name: "FixedLengthRecordReader",
        attrs: &[
            "header_bytes: int = 0",
            "record_bytes: int",
            "footer_bytes: int = 0",
            "hop_bytes: int = 0",
            "container: string = ''",
            "shared_name: string = ''",
        ],
        kernels: &[cpu(&[], build_fixed)],
        deprecated: 26,
        ..CREATE_REF
    },
    OpDef {
        name: "FixedLengthRecordReaderV2",
        attrs: &[
            "header_bytes: int = 0",
            "record_bytes: int",
            "footer_bytes: int = 0",
            "hop_bytes: int = 0",
            "container: string = ''",
            "shared_name: string = ''",
            "encoding: string = ''",
        ],
        kernels: &[cpu(&[], build_fixed)],
        scripts: &[WRONG],
        ..CREATE
    },
    OpDef {
        name: "IdentityReader",
        kernels: &[cpu(&[], build_identity)],
        deprecated: 26,
        ..CREATE_REF
    },
    OpDef {
        name: "IdentityReaderV2",
        kernels: &[cpu(&[], build_identity)],
        scripts: &[SHARED],
        ..CREATE
    },
    OpDef {
        name: "TFRecordReader",
        attrs: RECORD_ATTRS,
        kernels: &[cpu(&[], build_records)],
        deprecated: 26,
        ..CREATE_REF
    },
    OpDef {
        name: "TFRecordReaderV2",
        attrs: RECORD_ATTRS,
        kernels: &[cpu(&[], build_records)],
        ..CREATE
    },
    OpDef {
        name: "TextLineReader",
        attrs: LINE_ATTRS,
        kernels: &[cpu(&[], build_lines)],
        deprecated: 26,
        ..CREATE_REF
    },
    OpDef {
        name: "TextLineReaderV2",
        attrs: LINE_ATTRS,
        kernels: &[cpu(&[], build_lines)],
        scripts: &[WRONG],
        ..CREATE
    },
    OpDef {
        name: "WholeFileReader",
        kernels: &[cpu(&[], build_whole)],
        ..CREATE_REF
    },
    OpDef {
        name: "WholeFileReaderV2",
        kernels: &[cpu(&[], build_whole)],
        ..CREATE
    },
];

const CREATE: OpDef = OpDef {
    outputs: &["reader_handle: resource"],
    attrs: &["container: string = ''", "shared_name: string = ''"],
    infer: infer::scalar,
    cost: Cost::Cheap,
    scripts: &[MISSING],
    ..BY_HANDLE
};

const CREATE_REF: OpDef = OpDef {
    outputs: &["reader_handle: Ref(string)"],
    infer: infer::unknown,
    scripts: &[MISSING_BY_NAME],
    ..CREATE
};

const RECORD_ATTRS: &[&str] = &[
    "container: string = ''",
    "shared_name: string = ''",
    "compression_type: string = ''",
];

const LINE_ATTRS: &[&str] = &[
    "skip_header_lines: int = 0",
    "container: string = ''",
    "shared_name: string = ''",
];

// Where files may be written, only a test can say: scripts show files that are missing. A file that cannot be opened is no
// work that was begun.
const MISSING: Script = script(
    "files that are missing",
    "whole = WholeFileReaderV2()
     lines = TextLineReaderV2() {skip_header_lines=1}
     fixed = FixedLengthRecordReaderV2() {record_bytes=3, encoding='GZIP'}
     records = TFRecordReaderV2() {compression_type='ZLIB'}
     q = FIFOQueueV2() {component_types=[DT_STRING], shapes=[[]]}
     names = string[4]{no/such/a, no/such/b, no/such/c, no/such/d}
     put = QueueEnqueueManyV2(q, [names])
     a = ReaderReadV2(whole, q)
     b = ReaderReadV2(lines, q)
     c = ReaderReadV2(fixed, q)
     d = ReaderReadV2(records, q)
     done = ReaderNumWorkUnitsCompletedV2(lines)
     size = QueueSizeV2(q)",
    &[
        "run put",
        "fetch a fails NOT_FOUND no/such/a",
        "fetch b fails NOT_FOUND no/such/b",
        "fetch c fails NOT_FOUND no/such/c",
        "fetch d fails NOT_FOUND no/such/d",
        "fetch done, size => int64[]{0}; int32[]{0}",
    ],
);

const MISSING_BY_NAME: Script = script(
    "files that are missing, by reference to a name",
    "whole = WholeFileReader()
     identity = WholeFileReader()
     q = FIFOQueue() {component_types=[DT_STRING], shapes=[[]]}
     names = string[2]{no/such/a, no/such/b}
     put = QueueEnqueueMany(q, [names])
     a = ReaderRead(whole, q)
     b = ReaderRead(identity, q)",
    &[
        "run put",
        "fetch a fails NOT_FOUND no/such/a",
        "fetch b fails NOT_FOUND no/such/b",
    ],
);

const WRONG: Script = script(
    "sizes that are none",
    "a = TextLineReaderV2() {skip_header_lines=-1}
     b = FixedLengthRecordReaderV2() {record_bytes=-2}
     c = FixedLengthRecordReaderV2() {record_bytes=2, header_bytes=-1}
     d = FixedLengthRecordReaderV2() {record_bytes=2, footer_bytes=-1}
     e = FixedLengthRecordReaderV2() {record_bytes=2, hop_bytes=-1}",
    &[
        "run a fails INVALID_ARGUMENT skip_header_lines must be >= 0 not -1",
        "run b fails INVALID_ARGUMENT record_bytes must be >= 0 not -2",
        "run c fails INVALID_ARGUMENT header_bytes must be >= 0 not -1",
        "run d fails INVALID_ARGUMENT footer_bytes must be >= 0 not -1",
        "run e fails INVALID_ARGUMENT hop_bytes must be >= 0 not -1",
    ],
);

const SHARED: Script = script(
    "shared by name",
    "a = IdentityReaderV2() {shared_name='r'}
     b = IdentityReaderV2() {shared_name='r'}
     own = IdentityReaderV2()
     q = FIFOQueueV2() {component_types=[DT_STRING], shapes=[[]]}
     names = string[2]{x, y}
     put = QueueEnqueueManyV2(q, [names])
     x = ReaderReadV2(a, q)
     y = ReaderReadV2(b, q)
     count = ReaderNumRecordsProducedV2(a)
     none = ReaderNumRecordsProducedV2(own)",
    &[
        "run put",
        "fetch x:0, x:1 => string[]{x}; string[]{x}",
        "fetch y:1 => string[]{y}",
        "fetch count, none => int64[]{2}; int64[]{0}",
    ],
);

fn build_whole(node: &NodeInfo) -> Result<AnyKernel> {
    build(node, || Box::new(WholeFile))
}

fn build_identity(node: &NodeInfo) -> Result<AnyKernel> {
    build(node, || Box::new(Identity))
}

fn build_lines(node: &NodeInfo) -> Result<AnyKernel> {
    let skip = count(node, "skip_header_lines")?;
    build(node, move || Box::new(TextLine::new(skip)))
}

fn build_fixed(node: &NodeInfo) -> Result<AnyKernel> {
    let record_bytes = count(node, "record_bytes")?;
    let layout = Layout {
        header_bytes: count(node, "header_bytes")?,
        record_bytes,
        footer_bytes: count(node, "footer_bytes")?,
        hop_bytes: match count(node, "hop_bytes")? {
            0 => record_bytes,
            hop => hop,
        },
        // The older form has no such attribute.
        packing: Packing::named(node.attrs.str("encoding").unwrap_or_default()),
    };
    build(node, move || Box::new(FixedLength::new(layout)))
}

fn build_records(node: &NodeInfo) -> Result<AnyKernel> {
    let packing = Packing::named(node.attrs.str("compression_type")?);
    build(node, move || Box::new(TfRecord::new(packing)))
}

fn count(node: &NodeInfo, attr: &str) -> Result<u64> {
    let value = node.attrs.int(attr)?;
    u64::try_from(value).map_err(|_| invalid_argument!("{attr} must be >= 0 not {value}"))
}

fn build(
    node: &NodeInfo,
    source: impl Fn() -> Box<dyn Source> + Send + Sync + 'static,
) -> Result<AnyKernel> {
    let keeper: Keeper<Reader> = Keeper::of(node)?;
    let kind = node.op.strip_suffix("V2").unwrap_or(&node.op);
    let name = format!("{kind} '{}'", node.name);
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        keeper.hand_out(ctx, |_| Ok(Reader::new(name.clone(), source())), |_| Ok(()))
    })
}
