//! `SummaryWriter` and what writes through it: event files as resources.
//!
//! TensorFlow: SummaryWriter() -> writer: resource; CreateSummaryFileWriter(writer, logdir, max_queue, flush_millis,
//! filename_suffix); WriteSummary(writer, step, tensor, tag, summary_metadata); WriteScalarSummary(writer, step, tag, value);
//! WriteHistogramSummary(writer, step, tag, values); WriteRawProtoSummary(writer, step, tensor); WriteGraphSummary(writer,
//! step, tensor), a serialized GraphDef; ImportEvent(writer, event), a serialized Event as it is; FlushSummaryWriter(writer);
//! CloseSummaryWriter(writer).

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prost::Message;
use tensorfleet_checkpoint::events::{EventsOptions, EventsWriter, unique_suffix};
use tensorfleet_graph::example::script;
use tensorfleet_graph::{Cost, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo, Resource};
use tensorfleet_proto::summary::value;
use tensorfleet_proto::{Event, GraphDef, Summary, event};
use tensorfleet_status::{Result, data_loss, invalid_argument, not_found};
use tensorfleet_tensor::{Bytes, TString};

use super::encode::{Entry, put_bytes, serialized, tag};
use super::histogram::histogram;
use super::tensor_summary::tensor_value;
use crate::math::cast::doubles;
use crate::state::names::{container_or_default, handle_to};

/// The event file behind a handle, once it was created.
#[derive(Default)]
struct Writer(Mutex<Option<EventsWriter>>);

impl Resource for Writer {
    fn type_name(&self) -> &'static str {
        "SummaryWriterInterface"
    }
}

impl Writer {
    fn lock(&self) -> MutexGuard<'_, Option<EventsWriter>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) const WRITE: OpDef = OpDef {
    stateful: true,
    gradient: Gradient::Stop("summaries are not differentiated"),
    cost: Cost::Measured,
    // Where files may be written, only a test can say: what is shown here is a writer that was never created.
    scripts: &[script(
        "not created",
        "w = SummaryWriter() {shared_name='never'}\nf = FlushSummaryWriter(w)",
        &["run f fails NOT_FOUND "],
    )],
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 10] = [
    OpDef {
        name: "SummaryWriter",
        outputs: &["writer: resource"],
        attrs: &["shared_name: string = ''", "container: string = ''"],
        infer: infer::scalar,
        cost: Cost::Cheap,
        kernels: &[cpu(&[], build_handle)],
        ..WRITE
    },
    OpDef {
        name: "CreateSummaryFileWriter",
        inputs: &[
            "writer: resource",
            "logdir: string",
            "max_queue: int32",
            "flush_millis: int32",
            "filename_suffix: string",
        ],
        kernels: &[cpu(&[], build_create)],
        ..WRITE
    },
    OpDef {
        name: "WriteSummary",
        inputs: &[
            "writer: resource",
            "step: int64",
            "tensor: T",
            "tag: string",
            "summary_metadata: string",
        ],
        attrs: &["T: type"],
        kernels: &[cpu(&[], |_| {
            write(|ctx| {
                Ok(vec![tensor_value(
                    &tag(ctx, 3)?,
                    ctx.input(2)?,
                    &ctx.scalar::<TString>(4)?,
                )?])
            })
        })],
        ..WRITE
    },
    OpDef {
        name: "WriteScalarSummary",
        inputs: &["writer: resource", "step: int64", "tag: string", "value: T"],
        attrs: &[
            "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}",
        ],
        kernels: &[cpu(&[], |_| write(scalar_value))],
        ..WRITE
    },
    OpDef {
        name: "WriteHistogramSummary",
        inputs: &[
            "writer: resource",
            "step: int64",
            "tag: string",
            "values: T",
        ],
        attrs: &[
            "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64, bool} = DT_FLOAT",
        ],
        kernels: &[cpu(&[], |_| write(histogram_value))],
        ..WRITE
    },
    OpDef {
        name: "WriteRawProtoSummary",
        inputs: &["writer: resource", "step: int64", "tensor: string"],
        kernels: &[cpu(&[], |_| write(raw_values))],
        ..WRITE
    },
    OpDef {
        name: "WriteGraphSummary",
        inputs: &["writer: resource", "step: int64", "tensor: string"],
        kernels: &[cpu(&[], build_graph)],
        ..WRITE
    },
    OpDef {
        name: "ImportEvent",
        inputs: &["writer: resource", "event: string"],
        kernels: &[cpu(&[], build_import)],
        ..WRITE
    },
    OpDef {
        name: "FlushSummaryWriter",
        inputs: &["writer: resource"],
        kernels: &[cpu(&[], build_flush)],
        ..WRITE
    },
    OpDef {
        name: "CloseSummaryWriter",
        inputs: &["writer: resource"],
        kernels: &[cpu(&[], build_close)],
        ..WRITE
    },
];

/// The writer has the shared name as it stands: nodes without one share the writer without a name, as in TensorFlow.
fn build_handle(node: &NodeInfo) -> Result<AnyKernel> {
    let name = node.attrs.str("shared_name")?.to_owned();
    let container = node.attrs.str("container")?.to_owned();
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let container = container_or_default(&container, ctx);
        let resources = &ctx.env().resources;
        let writer = resources.lookup_or_create(container, &name, || Ok(Writer::default()))?;
        let handle = handle_to(ctx, container, &name, writer);
        ctx.set(0, handle);
        Ok(())
    })
}

fn build_create(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let writer = ctx.resource::<Writer>(0)?;
        let mut writer = writer.lock();
        if writer.is_some() {
            // Whoever comes second shares the first one's file, as in TensorFlow.
            return Ok(());
        }
        let text = |index| -> Result<String> {
            Ok(String::from_utf8_lossy(&tag(ctx, index)?).into_owned())
        };
        let logdir = text(1)?;
        let options = EventsOptions {
            max_queue: usize::try_from(ctx.int(2)?).unwrap_or(0),
            flush_after: Duration::from_millis(u64::try_from(ctx.int(3)?).unwrap_or(0)),
            suffix: unique_suffix(&text(4)?),
            ..EventsOptions::default()
        };
        *writer = Some(EventsWriter::create(&logdir, &options)?);
        Ok(())
    })
}

/// Runs an action on the writer behind input 0.
fn with_writer(
    ctx: &KernelCtx<'_>,
    act: impl FnOnce(&mut EventsWriter) -> Result<()>,
) -> Result<()> {
    let writer = ctx.resource::<Writer>(0)?;
    match &mut *writer.lock() {
        Some(writer) => act(writer),
        None => Err(not_found!(
            "Resource {}/{}/SummaryWriterInterface does not exist.",
            ctx.handle(0)?.container,
            ctx.handle(0)?.name
        )),
    }
}

/// A kernel that writes one event with the values that `make` makes of the inputs.
pub(super) fn write(
    make: impl Fn(&KernelCtx<'_>) -> Result<Vec<Entry>> + Send + Sync + 'static,
) -> Result<AnyKernel> {
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let summary = serialized(&make(ctx)?);
        let mut event = now(ctx)?.encode_to_vec();
        put_bytes(&mut event, 5, &summary);
        with_writer(ctx, |writer| writer.write_encoded(&event))
    })
}

/// An event of this moment and the step in input 1.
fn now(ctx: &KernelCtx<'_>) -> Result<Event> {
    Ok(Event {
        wall_time: ctx.env().clock.wall().as_secs_f64(),
        step: ctx.int(1)?,
        ..Event::default()
    })
}

fn build_graph(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let graph = ctx.scalar::<TString>(2)?;
        GraphDef::decode(&graph[..])
            .map_err(|_| data_loss!("Bad tf.GraphDef binary proto tensor string"))?;
        let mut event = now(ctx)?;
        event.what = Some(event::What::GraphDef(graph.into()));
        with_writer(ctx, |writer| writer.write(&event))
    })
}

fn build_import(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let event = Event::decode(Bytes::from(ctx.scalar::<TString>(1)?))
            .map_err(|_| data_loss!("Bad tf.Event binary proto tensor string"))?;
        with_writer(ctx, |writer| writer.write(&event))
    })
}

fn scalar_value(ctx: &KernelCtx<'_>) -> Result<Vec<Entry>> {
    let number = match doubles(ctx.input(3)?)?.as_slice() {
        [number] => *number,
        other => {
            return Err(invalid_argument!(
                "value must be a scalar, got {} elements",
                other.len()
            ));
        }
    };
    let value = value::Value::SimpleValue(number as f32);
    Ok(vec![Entry::new(&tag(ctx, 2)?[..], value)])
}

fn histogram_value(ctx: &KernelCtx<'_>) -> Result<Vec<Entry>> {
    let tag = tag(ctx, 2)?;
    let histogram = histogram(&doubles(ctx.input(3)?)?, &tag)?;
    Ok(vec![Entry::new(&tag[..], value::Value::Histo(histogram))])
}

/// The values of all summaries, in one event.
fn raw_values(ctx: &KernelCtx<'_>) -> Result<Vec<Entry>> {
    let mut values = Vec::new();
    for (index, bytes) in ctx.input(2)?.slice::<TString>()?.iter().enumerate() {
        let summary = Summary::decode(Bytes::from(bytes)).map_err(|_| {
            data_loss!("Bad tf.compat.v1.Summary binary proto tensor string at index {index}")
        })?;
        let entries = summary.value.into_iter();
        values.extend(entries.map(|value| Entry::of(value.tag.clone(), value)));
    }
    Ok(values)
}

fn build_flush(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| with_writer(ctx, EventsWriter::flush))
}

fn build_close(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        with_writer(ctx, EventsWriter::flush)?;
        let handle = ctx.handle(0)?;
        ctx.env().resources.remove(&handle.container, &handle.name)
    })
}
