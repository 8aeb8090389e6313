//! `RebatchDataset`, `RebatchDatasetV2`: the rows of elements in other batches.
//!
//! TensorFlow: RebatchDataset(input_dataset: variant, num_replicas: int64) -> handle: variant splits each element into so many;
//! RebatchDatasetV2(input_dataset: variant, batch_sizes: int64, drop_remainder: bool) makes batches of these sizes in turns.

use std::task::{Poll, Waker, ready};

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, NodeInfo};
use tensorfleet_math::par::Par;
use tensorfleet_status::{Result, ensure, invalid_argument};
use tensorfleet_tensor::{Shape, Tensor};

use crate::array::moves;
use crate::dataset::home::Place;
use crate::dataset::kernel::{self, DATASET};
use crate::dataset::value::{Dataset, Element, Iterate, Next, Spec, Stage};

const SCRIPT: Script = script(
    "smaller and across",
    "x = int64[2,5]{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
     rows = TensorSliceDataset([x]) {output_shapes=[[5]]}
     two = int64[]{2}
     sizes = int64[2]{3, 1}
     keep = bool[]{false}
     drop = bool[]{true}
     a = RebatchDataset(rows, two) {output_types=[DT_INT64], output_shapes=[[?]]}
     b = RebatchDatasetV2(rows, sizes, keep) {output_types=[DT_INT64], output_shapes=[[?]]}
     three = int64[]{3}
     c = RebatchDatasetV2(rows, three, drop) {output_types=[DT_INT64], output_shapes=[[?]]}
     i = IteratorV2() {output_types=[DT_INT64], output_shapes=[[?]], shared_name='', container=''}
     make_i = MakeIterator(a, i)
     next_i = IteratorGetNext(i) {output_types=[DT_INT64], output_shapes=[[?]]}
     j = IteratorV2() {output_types=[DT_INT64], output_shapes=[[?]], shared_name='', container=''}
     make_j = MakeIterator(b, j)
     next_j = IteratorGetNext(j) {output_types=[DT_INT64], output_shapes=[[?]]}
     k = IteratorV2() {output_types=[DT_INT64], output_shapes=[[?]], shared_name='', container=''}
     make_k = MakeIterator(c, k)
     next_k = IteratorGetNext(k) {output_types=[DT_INT64], output_shapes=[[?]]}",
    &[
        "run make_i, make_j, make_k",
        "fetch next_i, next_j, next_k => int64[3]{0, 1, 2}; int64[3]{0, 1, 2}; int64[3]{0, 1, 2}",
        "fetch next_i, next_j, next_k => int64[2]{3, 4}; int64[1]{3}; int64[3]{3, 4, 5}",
        "fetch next_i, next_j, next_k => int64[3]{5, 6, 7}; int64[3]{4, 5, 6}; int64[3]{6, 7, 8}",
        "fetch next_i, next_j => int64[2]{8, 9}; int64[1]{7}",
        "fetch next_k fails OUT_OF_RANGE End of sequence",
        "fetch next_i fails OUT_OF_RANGE End of sequence",
        "fetch next_j => int64[2]{8, 9}",
        "fetch next_j fails OUT_OF_RANGE End of sequence",
    ],
);

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "RebatchDataset",
        inputs: &["input_dataset: variant", "num_replicas: int64"],
        attrs: &[
            "output_types: list(type) >= 1",
            "output_shapes: list(shape) >= 1",
            "use_fallback: bool = true",
        ],
        kernels: &[cpu(&[], build_split)],
        scripts: &[SCRIPT],
        ..DATASET
    },
    OpDef {
        name: "RebatchDatasetV2",
        inputs: &[
            "input_dataset: variant",
            "batch_sizes: int64",
            "drop_remainder: bool",
        ],
        attrs: kernel::TYPES,
        kernels: &[cpu(&[], build_sizes)],
        scripts: &[SCRIPT],
        ..DATASET
    },
];

fn build_split(node: &NodeInfo) -> Result<AnyKernel> {
    kernel::build(node, |ctx| {
        let parts: i64 = kernel::scalar(ctx, 1, "num_replicas")?;
        ensure!(
            parts > 0,
            invalid_argument,
            "num_replicas must be greater than zero."
        );
        Ok(Split {
            input: [Dataset::input(ctx, 0)?],
            parts: parts as usize,
        })
    })
}

fn build_sizes(node: &NodeInfo) -> Result<AnyKernel> {
    let spec = Spec::of(node)?;
    kernel::build(node, move |ctx| {
        let tensor = ctx.input(1)?;
        ensure!(
            tensor.rank() <= 1,
            invalid_argument,
            "`batch_sizes` must be a scalar or a vector."
        );
        let sizes = tensor.slice::<i64>()?.iter();
        let sizes = sizes.map(|size| usize::try_from(*size).ok());
        let sizes: Option<Vec<usize>> = sizes.collect();
        let Some(sizes) = sizes.filter(|sizes| sizes.iter().any(|size| *size > 0)) else {
            return Err(invalid_argument!(
                "`batch_sizes` must not be negative, and one of them greater than zero"
            ));
        };
        Ok(Sizes {
            input: [Dataset::input(ctx, 0)?],
            sizes,
            drop_remainder: kernel::scalar(ctx, 2, "drop_remainder")?,
            spec: spec.clone(),
        })
    })
}

struct Split {
    input: [Dataset; 1],
    parts: usize,
}

impl Stage for Split {
    fn iterate(&self, place: &Place) -> Result<Box<dyn Iterate>> {
        Ok(Box::new(Splitting {
            input: self.input[0].iterate(place)?,
            current: Vec::new(),
            part: 0,
            parts: self.parts,
        }))
    }

    fn inputs(&self) -> &[Dataset] {
        &self.input
    }
}

struct Splitting {
    input: Box<dyn Iterate>,
    current: Element,
    part: usize,
    parts: usize,
}

impl Iterate for Splitting {
    fn next(&mut self, waker: &Waker) -> Next {
        if self.part == 0 {
            let Some(element) = ready!(self.input.next(waker))? else {
                return Poll::Ready(Ok(None));
            };
            check_rows(&element)?;
            self.current = element;
        }
        let parts = self.current.iter().map(|component| {
            let rows = component.shape().dim(0);
            let interval = rows.div_ceil(self.parts);
            let start = interval.saturating_mul(self.part).min(rows);
            let end = start.saturating_add(interval).min(rows);
            component.rows(start, end - start)
        });
        let element = parts.collect::<Result<_>>();
        self.part = (self.part + 1) % self.parts;
        Poll::Ready(element.map(Some))
    }
}

fn check_rows(element: &[Tensor]) -> Result<()> {
    for (index, component) in element.iter().enumerate() {
        ensure!(
            component.rank() > 0,
            invalid_argument,
            "Cannot rebatch dataset: All components must have at least one dimension. Perhaps your input dataset is not \
             batched? Component {index} is scalar."
        );
    }
    Ok(())
}

struct Sizes {
    input: [Dataset; 1],
    sizes: Vec<usize>,
    drop_remainder: bool,
    spec: Spec,
}

impl Stage for Sizes {
    fn iterate(&self, place: &Place) -> Result<Box<dyn Iterate>> {
        Ok(Box::new(Joining {
            input: self.input[0].iterate(place)?,
            place: place.clone(),
            sizes: self.sizes.clone(),
            drop_remainder: self.drop_remainder,
            spec: self.spec.clone(),
            turn: 0,
            current: None,
            gathered: Vec::new(),
            ended: false,
        }))
    }

    fn inputs(&self) -> &[Dataset] {
        &self.input
    }
}

struct Joining {
    input: Box<dyn Iterate>,
    place: Place,
    sizes: Vec<usize>,
    drop_remainder: bool,
    spec: Spec,
    turn: usize,
    /// An element of the input and how many of its rows are taken.
    current: Option<(Element, usize)>,
    /// Parts of the batch that is made.
    gathered: Vec<Element>,
    ended: bool,
}

impl Joining {
    fn take_rows(&mut self, wanted: usize) -> Result<()> {
        let Some((element, taken)) = &mut self.current else {
            return Ok(());
        };
        let rows = element.first().map_or(0, |first| first.shape().dim(0));
        let count = wanted.min(rows - *taken);
        let parts = element
            .iter()
            .map(|component| component.rows(*taken, count));
        self.gathered.push(parts.collect::<Result<_>>()?);
        *taken += count;
        if *taken == rows {
            self.current = None;
        }
        Ok(())
    }

    /// A batch of no rows.
    fn nothing(&self) -> Result<Element> {
        let pairs = self.spec.types.iter().zip(&self.spec.shapes);
        let empty = pairs.map(|(dtype, shape)| {
            let inner = shape
                .dims()
                .and_then(|dims| dims.get(1..))
                .unwrap_or_default();
            let inner: Vec<i64> = inner.iter().map(|dim| (*dim).max(0)).collect();
            Tensor::new(*dtype, Shape::vector(0).concat(&inner)?)
        });
        empty.collect()
    }
}

impl Iterate for Joining {
    fn next(&mut self, waker: &Waker) -> Next {
        if self.ended {
            return Poll::Ready(Ok(None));
        }
        let size = self.sizes[self.turn];
        let mut had: usize = self.gathered.iter().map(|part| rows_of(part)).sum();
        while had < size {
            if self.current.is_none() {
                match ready!(self.input.next(waker))? {
                    Some(element) => {
                        check(&element)?;
                        self.current = Some((element, 0));
                    }
                    None => {
                        self.ended = true;
                        break;
                    }
                }
            }
            let before = had;
            self.take_rows(size - had)?;
            had = before + self.gathered.last().map_or(0, |part| rows_of(part));
        }
        self.turn = (self.turn + 1) % self.sizes.len();
        let gathered = std::mem::take(&mut self.gathered);
        if size == 0 {
            return Poll::Ready(self.nothing().map(Some));
        }
        if had == 0 || had < size && self.drop_remainder {
            self.ended = true;
            return Poll::Ready(Ok(None));
        }
        Poll::Ready(join(&*self.place.home.pool, gathered).map(Some))
    }
}

fn rows_of(element: &[Tensor]) -> usize {
    element.first().map_or(0, |first| first.shape().dim(0))
}

fn check(element: &[Tensor]) -> Result<()> {
    let rows = rows_of(element);
    for component in element {
        ensure!(
            component.rank() > 0,
            invalid_argument,
            "Input element must have a non-scalar value in each component."
        );
        ensure!(
            component.shape().dim(0) == rows,
            invalid_argument,
            "Input element must have the same batch size in each component."
        );
    }
    Ok(())
}

/// The rows of all parts, one behind the other.
fn join(par: &dyn Par, mut parts: Vec<Element>) -> Result<Element> {
    if parts.len() == 1 {
        return Ok(parts.pop().unwrap_or_default());
    }
    let first = parts.first().map_or(&[][..], Vec::as_slice);
    let components = first.iter().enumerate().map(|(component, first)| {
        let inner = first.shape().get(1..).unwrap_or_default();
        let mut rows = 0i64;
        let mut pieces = Vec::with_capacity(parts.len());
        for part in &parts {
            let piece = part.get(component).filter(|piece| {
                piece.dtype() == first.dtype() && piece.shape().get(1..) == Some(inner)
            });
            let piece = piece.ok_or_else(|| {
                invalid_argument!("elements of different shapes cannot be in one batch")
            })?;
            rows += piece.shape().dim(0) as i64;
            pieces.push((piece, piece.elements()));
        }
        let shape = Shape::new(&[rows])?.concat(inner)?;
        match shape.elements() {
            0 => Tensor::new(first.dtype(), shape),
            _ => {
                pieces.retain(|(piece, _)| !piece.is_empty());
                moves::concat(par, first.dtype(), &pieces, shape)
            }
        }
    });
    components.collect()
}
