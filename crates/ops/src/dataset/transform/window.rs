//! `WindowDataset`, `WindowOp`: some elements as datasets, one for each component.
//!
//! TensorFlow: WindowDataset(input_dataset: variant, size: int64, shift: int64, stride: int64, drop_remainder: bool) -> handle:
//! variant; WindowOp(inputs: Tinputs) makes such a dataset of tensors.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Poll, Waker, ready};

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, Status, ensure, invalid_argument};

use crate::dataset::home::Place;
use crate::dataset::kernel::{self, DATASET};
use crate::dataset::value::{
    AtEnd, Dataset, Element, INFINITE, Iterate, Next, Spec, Stage, UNKNOWN,
};

const SCRIPT: Script = script(
    "side by side, apart and overlapping",
    "fn joined(w: variant) -> d {
         two = int64[]{2}
         d = BatchDataset(w, two) {output_types=[DT_INT64], output_shapes=[[?]]}
     }
     zero = int64[]{0}
     one = int64[]{1}
     two = int64[]{2}
     three = int64[]{3}
     ten = int64[]{10}
     five = int64[]{5}
     numbers = RangeDataset(zero, five, one) {output_types=[DT_INT64], output_shapes=[[]]}
     drop = bool[]{true}
     keep = bool[]{false}
     windows = WindowDataset(numbers, two, two, one, keep) {output_types=[DT_VARIANT], output_shapes=[[]]}
     a = FlatMapDataset(windows, []) {f=joined, output_types=[DT_INT64], output_shapes=[[?]]}
     wide = WindowDataset(numbers, two, one, two, drop) {output_types=[DT_VARIANT], output_shapes=[[]]}
     b = FlatMapDataset(wide, []) {f=joined, output_types=[DT_INT64], output_shapes=[[?]]}
     far = WindowDataset(numbers, one, three, one, keep) {output_types=[DT_VARIANT], output_shapes=[[]]}
     c = FlatMapDataset(far, []) {f=joined, output_types=[DT_INT64], output_shapes=[[?]]}
     of_two = WindowOp([two, three]) {output_types=[DT_INT64], output_shapes=[[]]}
     none = WindowDataset(numbers, zero, one, one, keep) {output_types=[DT_VARIANT], output_shapes=[[]]}
     n_a = DatasetCardinality(windows)
     n_b = DatasetCardinality(wide)
     n_none = DatasetCardinality(none)
     i = IteratorV2() {output_types=[DT_INT64], output_shapes=[[?]], shared_name='', container=''}
     make_i = MakeIterator(a, i)
     next_i = IteratorGetNext(i) {output_types=[DT_INT64], output_shapes=[[?]]}
     j = IteratorV2() {output_types=[DT_INT64], output_shapes=[[?]], shared_name='', container=''}
     make_j = MakeIterator(b, j)
     next_j = IteratorGetNext(j) {output_types=[DT_INT64], output_shapes=[[?]]}
     k = IteratorV2() {output_types=[DT_INT64], output_shapes=[[?]], shared_name='', container=''}
     make_k = MakeIterator(c, k)
     next_k = IteratorGetNext(k) {output_types=[DT_INT64], output_shapes=[[?]]}
     l = IteratorV2() {output_types=[DT_INT64], output_shapes=[[]], shared_name='', container=''}
     make_l = MakeIterator(of_two, l)
     next_l = IteratorGetNext(l) {output_types=[DT_INT64], output_shapes=[[]]}",
    &[
        "run make_i, make_j, make_k, make_l",
        "fetch next_i, next_j, next_k => int64[2]{0, 1}; int64[2]{0, 2}; int64[1]{0}",
        "fetch next_i, next_j, next_k => int64[2]{2, 3}; int64[2]{1, 3}; int64[1]{3}",
        "fetch next_i, next_j => int64[1]{4}; int64[2]{2, 4}",
        "fetch next_i fails OUT_OF_RANGE End of sequence",
        "fetch next_j fails OUT_OF_RANGE End of sequence",
        "fetch next_k fails OUT_OF_RANGE End of sequence",
        "fetch next_l => int64[]{2}",
        "fetch next_l => int64[]{3}",
        "fetch next_l fails OUT_OF_RANGE End of sequence",
        "fetch n_a, n_b => int64[]{3}; int64[]{3}",
        "fetch n_none fails INVALID_ARGUMENT Window size must be greater than zero.",
    ],
);

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "WindowDataset",
        inputs: &[
            "input_dataset: variant",
            "size: int64",
            "shift: int64",
            "stride: int64",
            "drop_remainder: bool",
        ],
        attrs: kernel::TYPES_AND_METADATA,
        kernels: &[cpu(&[], build)],
        scripts: &[SCRIPT],
        ..DATASET
    },
    OpDef {
        name: "WindowOp",
        inputs: &["inputs: Tinputs"],
        attrs: &[
            "output_types: list(type) >= 1",
            "output_shapes: list(shape) >= 1",
            "Tinputs: list(type) >= 1",
        ],
        kernels: &[cpu(&[], build_of_tensors)],
        scripts: &[SCRIPT],
        ..DATASET
    },
];

fn positive(ctx: &KernelCtx<'_>, index: usize, what: &str) -> Result<usize> {
    let value: i64 = kernel::scalar(ctx, index, what)?;
    ensure!(
        value > 0,
        invalid_argument,
        "Window {what} must be greater than zero."
    );
    Ok(value as usize)
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    kernel::build(node, |ctx| {
        let size = positive(ctx, 1, "size")?;
        let shift = positive(ctx, 2, "shift")?;
        let stride = positive(ctx, 3, "stride")?;
        let span = (size - 1)
            .checked_mul(stride)
            .and_then(|span| span.checked_add(1));
        let span =
            span.ok_or_else(|| invalid_argument!("a window of {size} by {stride} is too large"))?;
        Ok(Windows {
            input: [Dataset::input(ctx, 0)?],
            shift,
            stride,
            span,
            drop_remainder: kernel::scalar(ctx, 4, "drop_remainder")?,
        })
    })
}

fn build_of_tensors(node: &NodeInfo) -> Result<AnyKernel> {
    let components = Spec::of(node)?.types.len().max(1);
    kernel::build(node, move |ctx| {
        let count = ctx.num_inputs();
        ensure!(
            count % components == 0,
            invalid_argument,
            "{count} tensors are no elements of {components} components"
        );
        let tensors: Result<Vec<_>> = (0..count).map(|index| ctx.take(index)).collect();
        let elements = tensors?.chunks(components).map(<[_]>::to_vec).collect();
        Ok(Window(Arc::new(elements)))
    })
}

/// A dataset of these elements.
pub(super) fn of(elements: Vec<Element>, spec: Arc<Spec>) -> Result<Dataset> {
    Dataset::new(Window(Arc::new(elements)), spec)
}

/// Elements that are there.
struct Window(Arc<Vec<Element>>);

impl Stage for Window {
    fn iterate(&self, _: &Place) -> Result<Box<dyn Iterate>> {
        Ok(Box::new(Looking {
            elements: self.0.clone(),
            at: 0,
        }))
    }

    fn cardinality(&self) -> i64 {
        self.0.len() as i64
    }
}

struct Looking {
    elements: Arc<Vec<Element>>,
    at: usize,
}

impl Iterate for Looking {
    fn next(&mut self, _: &Waker) -> Next {
        let element = self.elements.get(self.at).cloned();
        self.at += usize::from(element.is_some());
        Poll::Ready(Ok(element))
    }
}

struct Windows {
    input: [Dataset; 1],
    shift: usize,
    stride: usize,
    /// From the first element of a window to its last.
    span: usize,
    drop_remainder: bool,
}

impl Stage for Windows {
    fn iterate(&self, place: &Place) -> Result<Box<dyn Iterate>> {
        let spec = self.input[0].spec();
        let pairs = spec.types.iter().zip(&spec.shapes);
        let specs = pairs.map(|(dtype, shape)| Arc::new(Spec::single(*dtype, shape.clone())));
        Ok(Box::new(Sliding {
            input: self.input[0].iterate(place)?,
            shift: self.shift,
            stride: self.stride,
            span: self.span,
            drop_remainder: self.drop_remainder,
            specs: specs.collect(),
            buffer: VecDeque::new(),
            skips: 0,
            ended: false,
        }))
    }

    fn cardinality(&self) -> i64 {
        let count = self.input[0].cardinality();
        if count == INFINITE || count == UNKNOWN {
            return count;
        }
        let shift = i64::try_from(self.shift).unwrap_or(i64::MAX);
        if !self.drop_remainder {
            return count / shift + i64::from(count % shift != 0);
        }
        let span = i64::try_from(self.span).unwrap_or(i64::MAX);
        match count - span {
            rest if rest < 0 => 0,
            rest => rest / shift + 1,
        }
    }

    fn inputs(&self) -> &[Dataset] {
        &self.input
    }
}

struct Sliding {
    input: Box<dyn Iterate>,
    shift: usize,
    stride: usize,
    span: usize,
    drop_remainder: bool,
    specs: Vec<Arc<Spec>>,
    /// What begins with the next window. An element that failed has its place.
    buffer: VecDeque<std::result::Result<Element, Status>>,
    /// Elements between two windows that are still to come.
    skips: usize,
    ended: bool,
}

impl Sliding {
    /// Gathers a window's elements, as far as there are any.
    fn gather(&mut self, waker: &Waker) -> Poll<()> {
        while !self.ended && (self.skips > 0 || self.buffer.len() < self.span) {
            match ready!(self.input.next(waker)) {
                Ok(None) => {
                    self.ended = true;
                    self.input = Box::new(AtEnd);
                }
                _ if self.skips > 0 => self.skips -= 1,
                Ok(Some(element)) => self.buffer.push_back(Ok(element)),
                Err(status) => self.buffer.push_back(Err(status)),
            }
        }
        Poll::Ready(())
    }
}

impl Iterate for Sliding {
    fn next(&mut self, waker: &Waker) -> Next {
        ready!(self.gather(waker));
        let is_short = self.buffer.len() < self.span;
        if self.buffer.is_empty() || self.drop_remainder && is_short {
            return Poll::Ready(Ok(None));
        }
        let chosen: std::result::Result<Vec<Element>, Status> =
            self.buffer.iter().step_by(self.stride).cloned().collect();
        let passed = self.shift.min(self.buffer.len());
        self.buffer.drain(..passed);
        self.skips = self.shift - passed;
        let chosen = chosen?;
        let windows = self.specs.iter().enumerate().map(|(component, spec)| {
            let parts = chosen.iter().map(|element| {
                let part = element.get(component).cloned();
                part.map(|part| vec![part]).ok_or_else(|| {
                    invalid_argument!("an element of a window has no component {component}")
                })
            });
            let parts = parts.collect::<Result<Vec<Element>>>()?;
            Ok(of(parts, spec.clone())?.to_tensor())
        });
        Poll::Ready(windows.collect::<Result<Element>>().map(Some))
    }
}
