//! [`Dataset`]: the description of a pipeline, as a variant. It never changes and is cheap to clone; what moves is the
//! [`Iterate`] that it makes.
//!
//! Iterators are polled: one that waits for a function says so, is woken and asked again, and holds no thread meanwhile.
//! Whoever stops asking loses no element: what was begun goes on at the next call.

use std::any::Any;
use std::sync::Arc;
use std::task::{Poll, Waker};

use tensorfleet_kernel::{KernelCtx, NodeInfo};
use tensorfleet_status::{Result, ensure, invalid_argument, resource_exhausted};
use tensorfleet_tensor::{Bytes, DType, PartialShape, Shape, Tensor, Variant, VariantObject};

use super::home::{Home, Place};

/// The components of one element.
pub(super) type Element = Vec<Tensor>;
/// The next element, `None` at the end.
pub(super) type Next = Poll<Result<Option<Element>>>;

/// A number of elements that has no end.
pub(super) const INFINITE: i64 = -1;
/// A number of elements that nobody knows before they were counted.
pub(super) const UNKNOWN: i64 = -2;

/// Stages within stages before a pipeline is refused: each takes some of the stack when it is asked.
const DEEPEST: usize = 1000;

/// One stage of a pipeline.
pub(super) trait Stage: Send + Sync {
    /// An iterator from the beginning.
    fn iterate(&self, place: &Place) -> Result<Box<dyn Iterate>>;

    /// How many elements there are, as far as that is known without looking.
    fn cardinality(&self) -> i64 {
        UNKNOWN
    }

    /// The stages before this one.
    fn inputs(&self) -> &[Dataset] {
        &[]
    }
}

/// What gives elements one after the other. After the end it stays there.
pub(super) trait Iterate: Send {
    /// The next element; if that has to wait, `waker` is woken when it is worth asking again.
    fn next(&mut self, waker: &Waker) -> Next;
}

/// The end, over and over.
pub(super) struct AtEnd;

impl Iterate for AtEnd {
    fn next(&mut self, _: &Waker) -> Next {
        Poll::Ready(Ok(None))
    }
}

/// Types and shapes of the components.
#[derive(Clone, Debug, Default)]
pub(super) struct Spec {
    pub(super) types: Vec<DType>,
    pub(super) shapes: Vec<PartialShape>,
}

impl Spec {
    /// What the node's attributes say.
    pub(super) fn of(node: &NodeInfo) -> Result<Spec> {
        let types = match node.attrs.get("output_types") {
            Some(_) => node.attrs.dtypes("output_types")?,
            None => node.attrs.dtypes("Toutput_types")?,
        };
        Ok(Spec {
            types,
            shapes: node.attrs.shapes("output_shapes")?.to_vec(),
        })
    }

    /// One component.
    pub(super) fn single(dtype: DType, shape: PartialShape) -> Spec {
        Spec {
            types: vec![dtype],
            shapes: vec![shape],
        }
    }

    /// Whether what `found` describes may be taken for this.
    pub(super) fn check(&self, found: &Spec) -> Result<()> {
        self.check_types(&found.types)?;
        check_count("shapes", self.shapes.len(), found.shapes.len())?;
        for (index, (wanted, got)) in self.shapes.iter().zip(&found.shapes).enumerate() {
            if wanted.merge(got).is_err() {
                return Err(incompatible(index, wanted, got));
            }
        }
        Ok(())
    }

    /// Whether an element is what this describes.
    pub(super) fn check_element(&self, element: &[Tensor]) -> Result<()> {
        check_count("types", self.types.len(), element.len())?;
        for (index, (wanted, got)) in self.types.iter().zip(element).enumerate() {
            check_type(index, *wanted, got.dtype())?;
        }
        check_count("shapes", self.shapes.len(), element.len())?;
        for (index, (wanted, got)) in self.shapes.iter().zip(element).enumerate() {
            if !wanted.admits(got.shape()) {
                return Err(incompatible(index, wanted, got.shape()));
            }
        }
        Ok(())
    }

    fn check_types(&self, found: &[DType]) -> Result<()> {
        check_count("types", self.types.len(), found.len())?;
        let pairs = self.types.iter().zip(found).enumerate();
        let mut checks = pairs.map(|(index, (wanted, got))| check_type(index, *wanted, *got));
        checks.try_for_each(|check| check)
    }
}

fn check_count(what: &str, wanted: usize, got: usize) -> Result<()> {
    ensure!(
        wanted == got,
        invalid_argument,
        "Number of components does not match: expected {wanted} {what} but got {got}."
    );
    Ok(())
}

fn check_type(index: usize, wanted: DType, got: DType) -> Result<()> {
    ensure!(
        wanted == got,
        invalid_argument,
        "Data type mismatch at component {index}: expected {wanted} but got {got}."
    );
    Ok(())
}

fn incompatible(
    index: usize,
    wanted: &PartialShape,
    got: impl std::fmt::Display,
) -> tensorfleet_status::Status {
    invalid_argument!("Incompatible shapes at component {index}: expected {wanted} but got {got}.")
}

/// A pipeline.
#[derive(Clone)]
pub(super) struct Dataset(Arc<Inner>);

struct Inner {
    stage: Box<dyn Stage>,
    spec: Arc<Spec>,
    depth: usize,
}

impl Dataset {
    /// A pipeline that ends with this stage.
    pub(super) fn new(stage: impl Stage + 'static, spec: Arc<Spec>) -> Result<Dataset> {
        let inputs = stage.inputs().iter().map(|input| input.0.depth);
        let depth = inputs.max().unwrap_or(0) + 1;
        check_depth(depth)?;
        Ok(Dataset(Arc::new(Inner {
            stage: Box::new(stage),
            spec,
            depth,
        })))
    }

    /// The dataset of an input.
    pub(super) fn input(ctx: &KernelCtx<'_>, index: usize) -> Result<Dataset> {
        Dataset::of(ctx.input(index)?)
    }

    /// The dataset in a tensor.
    pub(super) fn of(tensor: &Tensor) -> Result<Dataset> {
        if tensor.dtype() != DType::Variant || tensor.rank() != 0 {
            return Err(invalid_argument!(
                "Dataset tensor must be a scalar of dtype DT_VARIANT."
            ));
        }
        let found = tensor.slice::<Variant>()?.first();
        match found.and_then(|variant| variant.downcast::<Dataset>()) {
            Some(dataset) => Ok(dataset.clone()),
            None => Err(invalid_argument!("Tensor must be a Dataset object.")),
        }
    }

    /// The dataset in a tensor.
    pub(super) fn to_tensor(&self) -> Tensor {
        Tensor::scalar(Variant::Object(Arc::new(self.clone())))
    }

    /// Types and shapes of its components.
    pub(super) fn spec(&self) -> &Arc<Spec> {
        &self.0.spec
    }

    /// How many elements there are.
    pub(super) fn cardinality(&self) -> i64 {
        self.0.stage.cardinality()
    }

    /// An iterator from the beginning, for the place after this one.
    pub(super) fn iterate(&self, place: &Place) -> Result<Box<dyn Iterate>> {
        let place = place.deeper();
        check_depth(place.depth())?;
        let iterator = self.0.stage.iterate(&place)?;
        Ok(match self.0.stage.inputs().is_empty() {
            true => Box::new(Source {
                iterator,
                home: place.home,
            }),
            false => iterator,
        })
    }
}

/// The beginning of a pipeline, which rests now and then: whatever goes on behind it can be stopped then.
struct Source {
    iterator: Box<dyn Iterate>,
    home: Arc<Home>,
}

impl Iterate for Source {
    fn next(&mut self, waker: &Waker) -> Next {
        if self.home.rests() {
            waker.wake_by_ref();
            return Poll::Pending;
        }
        self.iterator.next(waker)
    }
}

fn check_depth(depth: usize) -> Result<()> {
    if depth > DEEPEST {
        return Err(resource_exhausted!(
            "a dataset is made of more than {DEEPEST} others, each within the next"
        ));
    }
    Ok(())
}

impl VariantObject for Dataset {
    fn type_name(&self) -> &str {
        "tensorflow::DatasetVariantWrapper"
    }

    /// Datasets stay on the task where they are.
    fn encode(&self) -> Option<(Bytes, Vec<Tensor>)> {
        None
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The shape of one row of a tensor.
pub(super) fn row_shape(tensor: &Tensor) -> Result<Shape> {
    Shape::new(tensor.shape().get(1..).unwrap_or_default())
}

/// Row `row` of a tensor, without dimension 0.
pub(super) fn row(tensor: &Tensor, row: usize) -> Result<Tensor> {
    tensor.rows(row, 1)?.reshaped(row_shape(tensor)?)
}
