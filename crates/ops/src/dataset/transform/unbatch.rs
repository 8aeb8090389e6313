//! `UnbatchDataset`: the rows of each element as elements.
//!
//! TensorFlow: UnbatchDataset(input_dataset: variant) -> handle: variant.

use std::task::{Poll, Waker, ready};

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, NodeInfo};
use tensorfleet_status::{Result, ensure};
use tensorfleet_tensor::Tensor;

use crate::dataset::home::Place;
use crate::dataset::kernel::{self, UNARY};
use crate::dataset::value::{Dataset, Element, INFINITE, Iterate, Next, Stage, UNKNOWN, row};

const SCRIPT: Script = script(
    "rows",
    "x = int64[2,2]{1, 2, 3, 4}
     z = int64[]{7}
     whole = TensorDataset([x, x]) {output_shapes=[[2,2], [2,2]]}
     scalar = TensorDataset([z]) {output_shapes=[[]]}
     a = UnbatchDataset(whole) {output_types=[DT_INT64, DT_INT64], output_shapes=[[2], [2]]}
     b = UnbatchDataset(scalar) {output_types=[DT_INT64], output_shapes=[[]]}
     n = DatasetCardinality(a)
     i = IteratorV2() {output_types=[DT_INT64, DT_INT64], output_shapes=[[2], [2]], shared_name='', container=''}
     make_i = MakeIterator(a, i)
     next_i = IteratorGetNext(i) {output_types=[DT_INT64, DT_INT64], output_shapes=[[2], [2]]}
     j = IteratorV2() {output_types=[DT_INT64], output_shapes=[[]], shared_name='', container=''}
     make_j = MakeIterator(b, j)
     next_j = IteratorGetNext(j) {output_types=[DT_INT64], output_shapes=[[]]}",
    &[
        "run make_i, make_j",
        "fetch next_i:0, next_i:1 => int64[2]{1, 2}; int64[2]{1, 2}",
        "fetch next_i:0, next_i:1 => int64[2]{3, 4}; int64[2]{3, 4}",
        "fetch next_i:0 fails OUT_OF_RANGE End of sequence",
        "fetch next_j fails INVALID_ARGUMENT Input element must have a non-scalar value in each component.",
        "fetch n => int64[]{2}",
    ],
);

pub(crate) static OP: OpDef = OpDef {
    name: "UnbatchDataset",
    kernels: &[cpu(&[], build)],
    scripts: &[SCRIPT],
    ..UNARY
};

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    kernel::build(node, |ctx| Ok(Unbatch([Dataset::input(ctx, 0)?])))
}

struct Unbatch([Dataset; 1]);

impl Stage for Unbatch {
    fn iterate(&self, place: &Place) -> Result<Box<dyn Iterate>> {
        Ok(Box::new(Rows {
            input: self.0[0].iterate(place)?,
            current: Vec::new(),
            at: 0,
            rows: 0,
        }))
    }

    fn cardinality(&self) -> i64 {
        let shapes = &self.0[0].spec().shapes;
        let rows = shapes.iter().filter_map(|shape| shape.dim(0));
        match (
            self.0[0].cardinality(),
            rows.filter(|rows| *rows >= 0).max(),
        ) {
            (count @ (INFINITE | UNKNOWN), _) => count,
            (count, Some(rows)) if rows > 0 => count.saturating_mul(rows),
            _ => UNKNOWN,
        }
    }

    fn inputs(&self) -> &[Dataset] {
        &self.0
    }
}

struct Rows {
    input: Box<dyn Iterate>,
    current: Element,
    at: usize,
    rows: usize,
}

/// The number of rows of all components.
fn rows(element: &[Tensor]) -> Result<usize> {
    let rows = element.first().map_or(0, |first| first.shape().dim(0));
    for (index, component) in element.iter().enumerate() {
        ensure!(
            component.rank() > 0,
            invalid_argument,
            "Input element must have a non-scalar value in each component."
        );
        ensure!(
            component.shape().dim(0) == rows,
            invalid_argument,
            "Input element must have the same batch size in each component. Component 0 had size {rows} but component \
             {index} had size, {}.",
            component.shape().dim(0)
        );
    }
    Ok(rows)
}

impl Iterate for Rows {
    fn next(&mut self, waker: &Waker) -> Next {
        while self.at == self.rows {
            (self.at, self.rows) = (0, 0);
            self.current = Vec::new();
            let Some(element) = ready!(self.input.next(waker))? else {
                return Poll::Ready(Ok(None));
            };
            let rows = rows(&element)?;
            (self.current, self.rows) = (element, rows);
        }
        let parts = self.current.iter().map(|component| row(component, self.at));
        let element = parts.collect::<Result<_>>()?;
        self.at += 1;
        Poll::Ready(Ok(Some(element)))
    }
}
