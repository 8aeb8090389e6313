//! [`Spec`]: what kind of queue a node asks for, and what tuples go into it.

use tensorfleet_kernel::NodeInfo;
use tensorfleet_status::{Result, ensure};
use tensorfleet_tensor::{DType, PartialShape, Tensor};

/// A tuple of tensors: one element of a queue.
pub(super) type Tuple = Vec<Tensor>;

/// In which order elements leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Fifo,
    PaddingFifo,
    Priority,
    RandomShuffle,
}

impl Kind {
    /// The name in error texts.
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Fifo => "FIFOQueue",
            Kind::PaddingFifo => "PaddingFIFOQueue",
            Kind::Priority => "PriorityQueue",
            Kind::RandomShuffle => "RandomShuffleQueue",
        }
    }
}

/// What a queue is made of.
#[derive(Clone, Debug)]
pub(super) struct Spec {
    pub(super) kind: Kind,
    pub(super) dtypes: Vec<DType>,
    /// One per component, or none at all.
    pub(super) shapes: Vec<PartialShape>,
    /// At most so many elements; `i32::MAX` if the node says none.
    pub(super) capacity: usize,
    pub(super) min_after_dequeue: usize,
    pub(super) seeds: (i64, i64),
}

impl Spec {
    /// Reads the attributes of a node.
    pub(super) fn of(node: &NodeInfo, kind: Kind) -> Result<Spec> {
        let attrs = &node.attrs;
        let mut dtypes = attrs.dtypes("component_types")?;
        let mut shapes = attrs.shapes("shapes")?.to_vec();
        if kind == Kind::Priority {
            dtypes.insert(0, DType::I64);
            shapes.insert(0, PartialShape::scalar());
        }
        let capacity = attrs.int("capacity")?;
        let capacity = if capacity < 0 {
            i32::MAX.into()
        } else {
            capacity
        };
        for shape in &shapes {
            let known = match kind {
                Kind::PaddingFifo => shape.rank().is_some(),
                _ => shape.to_shape().is_some(),
            };
            ensure!(
                known,
                invalid_argument,
                "shape {shape} must {}",
                match kind {
                    Kind::PaddingFifo => "have known rank.",
                    _ => "be fully defined",
                }
            );
        }
        let shapes_needed = kind == Kind::PaddingFifo || !shapes.is_empty();
        ensure!(
            !shapes_needed || shapes.len() == dtypes.len(),
            invalid_argument,
            "Different number of component types.  Types: {}, Shapes: [{}]",
            list(&dtypes),
            list(&shapes)
        );
        let (mut min_after_dequeue, mut seeds) = (0, (0, 0));
        if kind == Kind::RandomShuffle {
            min_after_dequeue = attrs.int("min_after_dequeue")?;
            seeds = (attrs.int("seed")?, attrs.int("seed2")?);
            ensure!(
                min_after_dequeue >= 0,
                invalid_argument,
                "min_after_dequeue {min_after_dequeue} must be >= 0"
            );
            ensure!(
                min_after_dequeue < capacity,
                invalid_argument,
                "min_after_dequeue {min_after_dequeue} must be < capacity {capacity}"
            );
        }
        Ok(Spec {
            kind,
            dtypes,
            shapes,
            capacity: capacity as usize,
            min_after_dequeue: min_after_dequeue as usize,
            seeds,
        })
    }

    /// Whether a queue of this name that was there already is what a node asks for.
    pub(super) fn check_shared(&self, name: &str, wanted: &Spec, op: &str) -> Result<()> {
        ensure!(
            self.kind == wanted.kind,
            invalid_argument,
            "Expected {}, found {op}",
            self.kind.name()
        );
        ensure!(
            self.capacity == wanted.capacity,
            invalid_argument,
            "Shared queue '{name}' has capacity {} but requested capacity was {}",
            self.capacity,
            wanted.capacity
        );
        ensure!(
            self.dtypes == wanted.dtypes,
            invalid_argument,
            "Shared queue '{name}' has component types {} but requested component types were {}",
            list(&self.dtypes),
            list(&wanted.dtypes)
        );
        ensure!(
            self.shapes == wanted.shapes,
            invalid_argument,
            "Shared queue '{name}' has component shapes [{}] but requested component shapes were [{}]",
            list(&self.shapes),
            list(&wanted.shapes)
        );
        ensure!(
            self.min_after_dequeue == wanted.min_after_dequeue,
            invalid_argument,
            "Shared queue '{name}' has min_after_dequeue {} but requested min_after_dequeue was {}.",
            self.min_after_dequeue,
            wanted.min_after_dequeue
        );
        let unseeded = wanted.seeds == (0, 0);
        ensure!(
            unseeded || self.seeds == wanted.seeds,
            invalid_argument,
            "Shared queue '{name}' has random seeds ({}, {}) but requested seeds are ({}, {}).",
            self.seeds.0,
            self.seeds.1,
            wanted.seeds.0,
            wanted.seeds.1
        );
        Ok(())
    }

    /// Checks a tuple against dtypes and shapes; `batched` if every component holds many elements.
    pub(super) fn check(&self, tuple: &[Tensor], batched: bool) -> Result<()> {
        ensure!(
            tuple.len() == self.dtypes.len(),
            invalid_argument,
            "Wrong number of components in tuple. Expected {}, got {}",
            self.dtypes.len(),
            tuple.len()
        );
        for (index, (tensor, dtype)) in tuple.iter().zip(&self.dtypes).enumerate() {
            ensure!(
                tensor.dtype() == *dtype,
                invalid_argument,
                "Type mismatch in tuple component {index}. Expected {dtype}, got {}",
                tensor.dtype()
            );
        }
        if batched {
            return self.check_batch(tuple);
        }
        for (index, (tensor, shape)) in tuple.iter().zip(&self.shapes).enumerate() {
            ensure!(
                shape.admits(tensor.shape()),
                invalid_argument,
                "Shape mismatch in tuple component {index}. Expected {shape}, got {}",
                tensor.shape()
            );
        }
        Ok(())
    }

    fn check_batch(&self, tuple: &[Tensor]) -> Result<()> {
        let first = tuple.first().map_or(0, |tensor| tensor.shape().dim(0));
        for (index, tensor) in tuple.iter().enumerate() {
            ensure!(
                tensor.rank() > 0,
                invalid_argument,
                "All input tensors must be at least vectors: component {index} is a scalar"
            );
            if let Some(shape) = self.shapes.get(index) {
                let dims = [&[first as i64], shape.dims().unwrap_or_default()].concat();
                let expected = PartialShape::new(&dims);
                ensure!(
                    expected.admits(tensor.shape()),
                    invalid_argument,
                    "Shape mismatch in tuple component {index}. Expected {expected}, got {}",
                    tensor.shape()
                );
            }
            ensure!(
                tensor.shape().dim(0) == first,
                invalid_argument,
                "All input tensors must have the same size in the 0th dimension. Component {index} has {}, and should have {first}",
                tensor.shape().dim(0)
            );
        }
        Ok(())
    }
}

/// As TensorFlow writes lists: `a, b`.
pub(super) fn list<T: std::fmt::Display>(items: &[T]) -> String {
    let items: Vec<String> = items.iter().map(ToString::to_string).collect();
    items.join(", ")
}
