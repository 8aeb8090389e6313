//! `BatchDataset`, `BatchDatasetV2`, `ParallelBatchDataset`: some elements as one, each component with a new dimension 0.
//!
//! TensorFlow: BatchDataset(input_dataset: variant, batch_size: int64) -> handle: variant, V2 with drop_remainder: bool,
//! ParallelBatchDataset with num_parallel_calls: int64 before it. Elements are copied on all threads where that is worth it.

use std::task::{Poll, Waker, ready};

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::par::Par;
use tensorfleet_status::{Result, ensure, invalid_argument};
use tensorfleet_tensor::{Shape, Tensor};

use crate::array::moves;
use crate::dataset::home::Place;
use crate::dataset::kernel::{self, DATASET};
use crate::dataset::value::{Dataset, Element, INFINITE, Iterate, Next, Stage, UNKNOWN};

const SCRIPT: Script = script(
    "of two",
    "fn shaped(x: int64) -> y {
         axis = int64[]{0}
         one = int64[1]{1}
         dims = Mul(x, one)
         y = Fill(dims, x)
     }
     zero = int64[]{0}
     one = int64[]{1}
     two = int64[]{2}
     three = int64[]{3}
     ten = int64[]{10}
     numbers = RangeDataset(zero, three, one) {output_types=[DT_INT64], output_shapes=[[]]}
     drop = bool[]{true}
     keep = bool[]{false}
     first = BatchDataset(numbers, two) {output_types=[DT_INT64], output_shapes=[[?]]}
     a = BatchDataset(numbers, ten) {output_types=[DT_INT64], output_shapes=[[?]]}
     all = DatasetToSingleElement(a) {output_types=[DT_INT64], output_shapes=[[?]]}
     b = BatchDatasetV2(numbers, two, drop) {output_types=[DT_INT64], output_shapes=[[2]]}
     c = ParallelBatchDataset(numbers, two, two, keep) {output_types=[DT_INT64], output_shapes=[[?]]}
     uneven = MapDataset(numbers, []) {f=shaped, output_types=[DT_INT64], output_shapes=[[?]]}
     d = BatchDatasetV2(uneven, two, keep) {output_types=[DT_INT64], output_shapes=[[?,?]]}
     none = BatchDataset(numbers, zero) {output_types=[DT_INT64], output_shapes=[[?]]}
     count_a = DatasetCardinality(first)
     count_b = DatasetCardinality(b)
     count_none = DatasetCardinality(none)
     j = IteratorV2() {output_types=[DT_INT64], output_shapes=[[2]], shared_name='', container=''}
     make_j = MakeIterator(b, j)
     next_j = IteratorGetNext(j) {output_types=[DT_INT64], output_shapes=[[2]]}
     k = IteratorV2() {output_types=[DT_INT64], output_shapes=[[?]], shared_name='', container=''}
     make_k = MakeIterator(c, k)
     next_k = IteratorGetNext(k) {output_types=[DT_INT64], output_shapes=[[?]]}
     l = IteratorV2() {output_types=[DT_INT64], output_shapes=[[?,?]], shared_name='', container=''}
     make_l = MakeIterator(d, l)
     next_l = IteratorGetNext(l) {output_types=[DT_INT64], output_shapes=[[?,?]]}",
    &[
        "run make_j, make_k, make_l",
        "fetch all => int64[3]{0, 1, 2}",
        "fetch next_j, next_k => int64[2]{0, 1}; int64[2]{0, 1}",
        "fetch next_k => int64[1]{2}",
        "fetch next_j fails OUT_OF_RANGE End of sequence",
        "fetch next_k fails OUT_OF_RANGE End of sequence",
        "fetch next_l fails INVALID_ARGUMENT Cannot batch tensors with different shapes in component 0. First element had shape [0] and element 1 had shape [1].",
        "fetch next_l => int64[1,2]{2, 2}",
        "fetch count_a, count_b => int64[]{2}; int64[]{1}",
        "fetch count_none fails INVALID_ARGUMENT Batch size must be greater than zero.",
    ],
);

pub(crate) static OPS: [OpDef; 3] = [
    OpDef {
        name: "BatchDataset",
        inputs: &["input_dataset: variant", "batch_size: int64"],
        attrs: kernel::TYPES_AND_METADATA,
        kernels: &[cpu(&[], |node| build(node, None))],
        scripts: &[SCRIPT],
        ..DATASET
    },
    OpDef {
        name: "BatchDatasetV2",
        inputs: &[
            "input_dataset: variant",
            "batch_size: int64",
            "drop_remainder: bool",
        ],
        attrs: &[
            "parallel_copy: bool = false",
            "output_types: list(type) >= 1",
            "output_shapes: list(shape) >= 1",
            "metadata: string = ''",
        ],
        kernels: &[cpu(&[], |node| build(node, Some(2)))],
        scripts: &[SCRIPT],
        ..DATASET
    },
    OpDef {
        name: "ParallelBatchDataset",
        inputs: &[
            "input_dataset: variant",
            "batch_size: int64",
            "num_parallel_calls: int64",
            "drop_remainder: bool",
        ],
        attrs: &[
            "parallel_copy: bool = false",
            "output_types: list(type) >= 1",
            "output_shapes: list(shape) >= 1",
            "deterministic: string = 'default'",
            "metadata: string = ''",
        ],
        kernels: &[cpu(&[], |node| build(node, Some(3)))],
        scripts: &[SCRIPT],
        ..DATASET
    },
];

fn build(node: &NodeInfo, drop_remainder: Option<usize>) -> Result<AnyKernel> {
    kernel::build(node, move |ctx| {
        let drop_remainder = match drop_remainder {
            Some(index) => kernel::scalar(ctx, index, "drop_remainder")?,
            None => false,
        };
        let size = size(ctx, 1)?;
        Ok(Batch::new(Dataset::input(ctx, 0)?, size, drop_remainder))
    })
}

/// The size of batches in input `index`.
pub(super) fn size(ctx: &KernelCtx<'_>, index: usize) -> Result<usize> {
    let size: i64 = kernel::scalar(ctx, index, "batch_size")?;
    ensure!(
        size > 0,
        invalid_argument,
        "Batch size must be greater than zero."
    );
    Ok(size as usize)
}

/// Elements in batches.
pub(super) struct Batch {
    input: [Dataset; 1],
    size: usize,
    drop_remainder: bool,
}

impl Batch {
    pub(super) fn new(input: Dataset, size: usize, drop_remainder: bool) -> Batch {
        Batch {
            input: [input],
            size,
            drop_remainder,
        }
    }
}

/// As many batches as there are of `count` elements.
pub(super) fn batches(count: i64, size: usize, drop_remainder: bool) -> i64 {
    if count == INFINITE || count == UNKNOWN {
        return count;
    }
    let size = i64::try_from(size).unwrap_or(i64::MAX);
    count / size + i64::from(count % size != 0 && !drop_remainder)
}

impl Stage for Batch {
    fn iterate(&self, place: &Place) -> Result<Box<dyn Iterate>> {
        let pool = place.home.pool.clone();
        Ok(Box::new(Gathering {
            input: self.input[0].iterate(place)?,
            size: self.size,
            drop_remainder: self.drop_remainder,
            gathered: Vec::new(),
            join: move |elements: Vec<Element>| join(&*pool, elements),
        }))
    }

    fn cardinality(&self) -> i64 {
        batches(self.input[0].cardinality(), self.size, self.drop_remainder)
    }

    fn inputs(&self) -> &[Dataset] {
        &self.input
    }
}

/// Gathers elements until they are a batch.
pub(super) struct Gathering<F> {
    pub(super) input: Box<dyn Iterate>,
    pub(super) size: usize,
    pub(super) drop_remainder: bool,
    pub(super) gathered: Vec<Element>,
    /// Makes one of many.
    pub(super) join: F,
}

impl<F: FnMut(Vec<Element>) -> Result<Element> + Send> Iterate for Gathering<F> {
    fn next(&mut self, waker: &Waker) -> Next {
        while self.gathered.len() < self.size {
            match ready!(self.input.next(waker)) {
                Ok(Some(element)) => self.gathered.push(element),
                Ok(None) if self.drop_remainder || self.gathered.is_empty() => {
                    self.gathered.clear();
                    return Poll::Ready(Ok(None));
                }
                Ok(None) => break,
                Err(status) => {
                    self.gathered.clear();
                    return Poll::Ready(Err(status));
                }
            }
        }
        let gathered = std::mem::take(&mut self.gathered);
        Poll::Ready((self.join)(gathered).map(Some))
    }
}

/// The components of elements of the same shapes, one behind the other.
fn join(par: &dyn Par, elements: Vec<Element>) -> Result<Element> {
    let first = elements.first().map_or(&[][..], Vec::as_slice);
    let components = first.iter().enumerate().map(|(component, first)| {
        let mut parts: Vec<(&Tensor, usize)> = Vec::with_capacity(elements.len());
        for (index, element) in elements.iter().enumerate() {
            let Some(part) = element.get(component) else {
                return Err(invalid_argument!(
                    "element {index} of a batch has fewer components than the first"
                ));
            };
            ensure!(
                part.dtype() == first.dtype(),
                invalid_argument,
                "Cannot batch tensors with different types in component {component}. First element had type {} and element \
                 {index} had type {}.",
                first.dtype(),
                part.dtype()
            );
            ensure!(
                part.shape() == first.shape(),
                invalid_argument,
                "Cannot batch tensors with different shapes in component {component}. First element had shape {} and element \
                 {index} had shape {}.",
                first.shape(),
                part.shape()
            );
            parts.push((part, part.elements()));
        }
        let shape = Shape::new(&[parts.len() as i64])?.concat(first.shape())?;
        match shape.elements() {
            0 => Tensor::new(first.dtype(), shape),
            _ => moves::concat(par, first.dtype(), &parts, shape),
        }
    });
    components.collect()
}
