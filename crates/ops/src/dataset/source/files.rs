//! `TextLineDataset`, `TFRecordDataset`, `FixedLengthRecordDataset` and their V2: what is in files, one file after the other.
//!
//! TensorFlow: TextLineDataset(filenames: string, compression_type: string, buffer_size: int64) -> handle: variant;
//! TFRecordDataset the same, V2 with byte_offsets: int64; FixedLengthRecordDataset(filenames: string, header_bytes: int64,
//! record_bytes: int64, footer_bytes: int64, buffer_size: int64), V2 with compression_type: string. Files are read as they are
//! needed. One that breaks off is an error once, then the next one's turn comes; one that cannot be opened stays one. Sizes of
//! buffers are ours to choose.

use std::io::Read;
use std::sync::Arc;
use std::task::{Poll, Waker};

use tensorfleet_checkpoint::fs;
use tensorfleet_checkpoint::packed::{self, Packing, RecordStream};
use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, data_loss, ensure, invalid_argument, out_of_range};
use tensorfleet_tensor::{Bytes, DType, PartialShape, TString, Tensor};

use crate::dataset::home::Place;
use crate::dataset::kernel::{self, DATASET};
use crate::dataset::value::{Iterate, Next, Spec, Stage};
use crate::io::lines::Lines;
use crate::io::text;

const MISSING: Script = script(
    "no such file",
    "missing = string[1]{/no/such/file}
     none = string[0]{}
     plain = string[]{}
     odd = string[]{LZ4}
     zero = int64[]{0}
     four = int64[]{4}
     offsets = int64[1]{0}
     l = TextLineDataset(missing, plain, zero)
     r = TFRecordDataset(missing, plain, zero)
     s = TFRecordDatasetV2(missing, plain, zero, offsets)
     f = FixedLengthRecordDataset(missing, zero, four, zero, zero)
     g = FixedLengthRecordDatasetV2(missing, zero, four, zero, zero, plain)
     e = TextLineDataset(none, plain, zero)
     bad = TextLineDataset(none, odd, zero)
     short = FixedLengthRecordDataset(none, zero, zero, zero, zero)
     n_bad = DatasetCardinality(bad)
     n_short = DatasetCardinality(short)
     n_l = DatasetCardinality(l)
     from_s = DatasetToSingleElement(s) {output_types=[DT_STRING], output_shapes=[[]]}
     from_f = DatasetToSingleElement(f) {output_types=[DT_STRING], output_shapes=[[]]}
     i = IteratorV2() {output_types=[DT_STRING], output_shapes=[[]], shared_name='', container=''}
     make_i = MakeIterator(l, i)
     next_i = IteratorGetNext(i) {output_types=[DT_STRING], output_shapes=[[]]}
     j = IteratorV2() {output_types=[DT_STRING], output_shapes=[[]], shared_name='', container=''}
     make_j = MakeIterator(r, j)
     next_j = IteratorGetNext(j) {output_types=[DT_STRING], output_shapes=[[]]}
     n = IteratorV2() {output_types=[DT_STRING], output_shapes=[[]], shared_name='', container=''}
     make_n = MakeIterator(g, n)
     next_n = IteratorGetNext(n) {output_types=[DT_STRING], output_shapes=[[]]}
     o = IteratorV2() {output_types=[DT_STRING], output_shapes=[[]], shared_name='', container=''}
     make_o = MakeIterator(e, o)
     next_o = IteratorGetNext(o) {output_types=[DT_STRING], output_shapes=[[]]}",
    &[
        "run make_i, make_j, make_n, make_o",
        "fetch next_i fails NOT_FOUND /no/such/file",
        "fetch next_j fails NOT_FOUND /no/such/file",
        "fetch next_n fails NOT_FOUND /no/such/file",
        "fetch from_s fails NOT_FOUND /no/such/file",
        "fetch from_f fails NOT_FOUND /no/such/file",
        "fetch next_i fails NOT_FOUND /no/such/file",
        "fetch next_o fails OUT_OF_RANGE End of sequence",
        "fetch n_bad fails INVALID_ARGUMENT Unsupported compression_type.",
        "fetch n_short fails INVALID_ARGUMENT `record_bytes` must be > 0",
        "fetch n_l => int64[]{-2}",
    ],
);

const RECORDS: OpDef = OpDef {
    attrs: &["metadata: string = ''"],
    stateful: true,
    scripts: &[MISSING],
    ..DATASET
};

pub(crate) static OPS: [OpDef; 5] = [
    OpDef {
        name: "FixedLengthRecordDataset",
        inputs: &[
            "filenames: string",
            "header_bytes: int64",
            "record_bytes: int64",
            "footer_bytes: int64",
            "buffer_size: int64",
        ],
        kernels: &[cpu(&[], build_fixed)],
        ..RECORDS
    },
    OpDef {
        name: "FixedLengthRecordDatasetV2",
        inputs: &[
            "filenames: string",
            "header_bytes: int64",
            "record_bytes: int64",
            "footer_bytes: int64",
            "buffer_size: int64",
            "compression_type: string",
        ],
        kernels: &[cpu(&[], build_fixed)],
        ..RECORDS
    },
    OpDef {
        name: "TFRecordDataset",
        inputs: &[
            "filenames: string",
            "compression_type: string",
            "buffer_size: int64",
        ],
        kernels: &[cpu(&[], build_records)],
        ..RECORDS
    },
    OpDef {
        name: "TFRecordDatasetV2",
        inputs: &[
            "filenames: string",
            "compression_type: string",
            "buffer_size: int64",
            "byte_offsets: int64",
        ],
        kernels: &[cpu(&[], build_records)],
        ..RECORDS
    },
    OpDef {
        name: "TextLineDataset",
        inputs: &[
            "filenames: string",
            "compression_type: string",
            "buffer_size: int64",
        ],
        kernels: &[cpu(&[], build_lines)],
        ..RECORDS
    },
];

/// A file that gives one record after the other.
trait Records: Send {
    fn next_record(&mut self) -> Result<Option<TString>>;
}

/// How the file with this number is opened.
type Open = Arc<dyn Fn(usize, &str) -> Result<Box<dyn Records>> + Send + Sync>;

/// Records of some files.
#[derive(Clone)]
struct Files {
    names: Arc<Vec<TString>>,
    open: Open,
}

fn build(
    node: &NodeInfo,
    open: impl Fn(&KernelCtx<'_>, &NodeInfo) -> Result<Open> + Send + Sync + 'static,
) -> Result<AnyKernel> {
    let node = Arc::new(node.clone());
    let spec = Spec::single(DType::String, PartialShape::scalar());
    kernel::build_as(spec, move |ctx| {
        let names = ctx.input(0)?;
        ensure!(
            names.rank() <= 1,
            invalid_argument,
            "`filenames` must be a scalar or a vector."
        );
        let names = Arc::new(names.slice::<TString>()?.to_vec());
        Ok(Files {
            names,
            open: open(ctx, &node)?,
        })
    })
}

fn packing(ctx: &KernelCtx<'_>, index: usize) -> Result<Packing> {
    let name: TString = kernel::scalar(ctx, index, "compression_type")?;
    match &*name {
        b"" => Ok(Packing::None),
        b"ZLIB" => Ok(Packing::Zlib),
        b"GZIP" => Ok(Packing::Gzip),
        _ => Err(invalid_argument!("Unsupported compression_type.")),
    }
}

fn at_least(ctx: &KernelCtx<'_>, index: usize, name: &str, least: i64) -> Result<u64> {
    let value: i64 = kernel::scalar(ctx, index, name)?;
    let bound = match least {
        0 => ">= 0",
        _ => "> 0",
    };
    ensure!(value >= least, invalid_argument, "`{name}` must be {bound}");
    Ok(value as u64)
}

fn build_lines(node: &NodeInfo) -> Result<AnyKernel> {
    build(node, |ctx, _| {
        let packing = packing(ctx, 1)?;
        at_least(ctx, 2, "buffer_size", 0)?;
        Ok(Arc::new(move |_, path| {
            Ok(Box::new(Lines::unpacked(path, packing)?))
        }))
    })
}

fn build_records(node: &NodeInfo) -> Result<AnyKernel> {
    build(node, |ctx, _| {
        // Unknown names stand for no compression in records, as in TensorFlow.
        let name: TString = kernel::scalar(ctx, 1, "compression_type")?;
        let packing = Packing::named(&String::from_utf8_lossy(&name));
        let buffer_size: i64 = kernel::scalar(ctx, 2, "buffer_size")?;
        ensure!(
            buffer_size >= -1,
            invalid_argument,
            "`buffer_size` must be >= 0 (0 == no buffering)"
        );
        let mut offsets = Vec::new();
        if ctx.num_inputs() > 3 {
            let tensor = ctx.input(3)?;
            ensure!(
                tensor.rank() <= 1,
                invalid_argument,
                "`byte_offsets` must be a scalar or a vector."
            );
            ensure!(
                tensor.shape() == ctx.input(0)?.shape() || tensor.is_empty(),
                invalid_argument,
                "`byte_offsets` must be of same size as `filenames`"
            );
            offsets.extend_from_slice(tensor.slice::<i64>()?);
        }
        Ok(Arc::new(move |number, path: &str| {
            let mut stream = packed::stream(fs::for_path(path)?.open(path)?, packing);
            let offset = offsets.get(number).copied().unwrap_or(0);
            let offset = u64::try_from(offset)
                .map_err(|_| invalid_argument!("Trying to seek offset: {offset}"))?;
            if offset > 0 && !packed::skip(&mut stream, offset, path)? {
                return Err(out_of_range!("{path} has no byte {offset}"));
            }
            Ok(Box::new(Framed {
                path: path.to_owned(),
                records: RecordStream::new(stream),
            }))
        }))
    })
}

fn build_fixed(node: &NodeInfo) -> Result<AnyKernel> {
    build(node, |ctx, _| {
        let header = at_least(ctx, 1, "header_bytes", 0)?;
        let record = at_least(ctx, 2, "record_bytes", 1)?;
        let footer = at_least(ctx, 3, "footer_bytes", 0)?;
        at_least(ctx, 4, "buffer_size", 0)?;
        let packing = match ctx.num_inputs() > 5 {
            true => packing(ctx, 5)?,
            false => Packing::None,
        };
        Ok(Arc::new(move |_, path: &str| {
            let layout = Layout {
                header,
                record,
                footer,
                packing,
            };
            Ok(Box::new(Fixed::open(path, layout)?))
        }))
    })
}

impl Records for Lines {
    fn next_record(&mut self) -> Result<Option<TString>> {
        Ok(self.next_line()?.map(TString::from))
    }
}

/// TFRecords.
struct Framed {
    path: String,
    records: RecordStream,
}

impl Records for Framed {
    fn next_record(&mut self) -> Result<Option<TString>> {
        let record: Option<Bytes> = self.records.next_record(&self.path)?;
        Ok(record.map(TString::from))
    }
}

#[derive(Clone, Copy)]
struct Layout {
    header: u64,
    record: u64,
    footer: u64,
    packing: Packing,
}

/// Records of a fixed length between a header and a footer.
struct Fixed {
    path: String,
    layout: Layout,
    stream: Box<dyn Read + Send>,
    /// Records left, unless compression hides how many there are.
    left: Option<u64>,
    /// Compressed: as many bytes as the footer has, which are the footer if no more follow.
    ahead: Vec<u8>,
    read: u64,
}

impl Fixed {
    fn open(path: &str, layout: Layout) -> Result<Fixed> {
        let file = fs::for_path(path)?.open(path)?;
        let Layout {
            header,
            record,
            footer,
            packing,
        } = layout;
        let mut left = None;
        if packing == Packing::None {
            let len = file.len()?;
            let around = header.saturating_add(footer);
            ensure!(
                len >= around,
                invalid_argument,
                "Input file \"{path}\" has length {len} bytes, which is smaller than the sum of the header ({header} bytes) \
                 and footer ({footer} bytes)."
            );
            let body = len - around;
            ensure!(
                body % record == 0,
                invalid_argument,
                "Excluding the header ({header} bytes) and footer ({footer} bytes), input file \"{path}\" has body length \
                 {body} bytes, which is not an exact multiple of the record length ({record} bytes)."
            );
            left = Some(body / record);
        }
        let mut stream = packed::stream(file, packing);
        if !packed::skip(&mut stream, header, path)? {
            return Err(out_of_range!("reached end of file"));
        }
        let mut ahead = Vec::new();
        if left.is_none() {
            ahead = packed::read_up_to(&mut stream, footer, path)?;
        }
        Ok(Fixed {
            path: path.to_owned(),
            layout,
            stream,
            left,
            ahead,
            read: 0,
        })
    }
}

impl Records for Fixed {
    fn next_record(&mut self) -> Result<Option<TString>> {
        if self.left == Some(0) {
            return Ok(None);
        }
        let wanted = self.layout.record;
        let bytes = packed::read_up_to(&mut self.stream, wanted, &self.path)?;
        let whole = bytes.len() as u64 == wanted;
        if let Some(left) = &mut self.left {
            ensure!(whole, out_of_range, "{}; reached end of file", self.path);
            *left -= 1;
            return Ok(Some(bytes.into()));
        }
        if !whole && bytes.is_empty() {
            return Ok(None);
        }
        self.read += bytes.len() as u64;
        if !whole {
            let Layout {
                header,
                record,
                footer,
                ..
            } = self.layout;
            return Err(data_loss!(
                "Excluding the header ({header} bytes) and footer ({footer} bytes), input file \"{}\" has body length {} \
                 bytes, which is not an exact multiple of the record length ({record} bytes).",
                self.path,
                self.read
            ));
        }
        self.ahead.extend_from_slice(&bytes);
        let rest = self.ahead.split_off(wanted as usize);
        let record = std::mem::replace(&mut self.ahead, rest);
        Ok(Some(record.into()))
    }
}

impl Stage for Files {
    fn iterate(&self, _: &Place) -> Result<Box<dyn Iterate>> {
        Ok(Box::new(Reading {
            files: self.clone(),
            at: 0,
            current: None,
        }))
    }
}

struct Reading {
    files: Files,
    /// The file that is read, or comes next.
    at: usize,
    current: Option<Box<dyn Records>>,
}

impl Reading {
    fn read(&mut self) -> Result<Option<TString>> {
        loop {
            if let Some(current) = &mut self.current {
                match current.next_record() {
                    Ok(Some(record)) => return Ok(Some(record)),
                    Ok(None) => {
                        self.current = None;
                        self.at += 1;
                    }
                    Err(status) => {
                        self.current = None;
                        self.at += 1;
                        return Err(status);
                    }
                }
            }
            let Some(name) = self.files.names.get(self.at) else {
                return Ok(None);
            };
            self.current = Some((self.files.open)(self.at, &text(name)?)?);
        }
    }
}

impl Iterate for Reading {
    fn next(&mut self, _: &Waker) -> Next {
        Poll::Ready(
            self.read()
                .map(|record| record.map(|record| vec![Tensor::scalar(record)])),
        )
    }
}
