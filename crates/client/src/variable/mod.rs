//! [`Variable`]: state that outlives a step, and [`VariableBuilder`], which makes one.

mod builder;
mod near;
mod nodes;

use std::sync::Arc;

use tensorfleet_tensor::{DType, PartialShape};

use crate::graph::Graph;
use crate::operation::Operation;
use crate::output::{Operand, Output};
use near::Near;

pub use builder::VariableBuilder;

/// State on some device that steps read and change.
///
/// Wherever a tensor is wanted, a variable stands for its value, read at that place: after the
/// control dependencies that hold there.
///
/// ```
/// use tensorfleet_client::{Graph, Session};
///
/// let g = Graph::new();
/// let counter = g.variable("counter", &[]).build();
/// let increment = counter.assign_add(&g.constant(1.0f32));
/// let session = Session::new(&g)?;
/// session.run(&g.global_variables_initializer())?;
/// session.run(&increment)?;
/// session.run(&increment)?;
/// assert_eq!(session.run(&counter)?.to_scalar::<f32>()?, 2.0);
/// # Ok::<(), tensorfleet_client::Status>(())
/// ```
#[derive(Clone)]
pub struct Variable {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) name: String,
    pub(crate) dtype: DType,
    pub(crate) dims: Vec<i64>,
    /// The resource, or the reference.
    pub(crate) handle: Output,
    pub(crate) resource: bool,
    pub(crate) initial_value: Output,
    pub(crate) initializer: Operation,
    /// A read made with the variable: what is fetched for it.
    pub(crate) snapshot: Output,
    pub(crate) trainable: bool,
    pub(crate) part: Option<Part>,
}

/// Which part of a partitioned variable this is.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// The name of the whole, under which checkpoints have it.
    pub whole_name: String,
    /// The shape of the whole.
    pub whole_dims: Vec<i64>,
    /// Where the part begins in the whole.
    pub offset: Vec<i64>,
}

impl Part {
    /// The same part of a slot of this full name.
    fn of_slot(&self, slot: &str) -> Part {
        let last = slot.rsplit('/').next().unwrap_or(slot);
        Part {
            whole_name: format!("{}/{last}", self.whole_name),
            ..self.clone()
        }
    }
}

impl Variable {
    /// The name, without a port.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        self.inner.handle.graph()
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.inner.dtype
    }

    /// The shape.
    pub fn dims(&self) -> &[i64] {
        &self.inner.dims
    }

    /// The resource, or the reference: what update ops take.
    pub fn handle(&self) -> &Output {
        &self.inner.handle
    }

    /// Whether it is a resource, and not a reference as in early TensorFlow.
    pub fn is_resource(&self) -> bool {
        self.inner.resource
    }

    /// Whether optimizers change it.
    pub fn is_trainable(&self) -> bool {
        self.inner.trainable
    }

    /// The node that holds it.
    pub fn op(&self) -> Operation {
        self.inner.handle.op()
    }

    /// The device it is on.
    pub fn device(&self) -> String {
        self.op().device()
    }

    /// What the initializer assigns.
    pub fn initial_value(&self) -> &Output {
        &self.inner.initial_value
    }

    /// Assigns the initial value.
    pub fn initializer(&self) -> &Operation {
        &self.inner.initializer
    }

    /// A read that was made together with the variable.
    pub fn snapshot(&self) -> &Output {
        &self.inner.snapshot
    }

    /// Which part of a partitioned variable it is.
    pub fn part(&self) -> Option<&Part> {
        self.inner.part.as_ref()
    }

    /// Whether two handles mean the same variable.
    pub fn is(&self, other: &Variable) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    fn near(&self) -> Near<'_> {
        Near {
            handle: &self.inner.handle,
            resource: self.inner.resource,
            dtype: self.inner.dtype,
            dims: &self.inner.dims,
        }
    }

    /// The value, read here.
    #[track_caller]
    pub fn read(&self) -> Output {
        self.near().read()
    }

    /// Whether it has a value.
    #[track_caller]
    pub fn is_initialized(&self) -> Output {
        let g = self.graph();
        let _near = g.colocate_with(&self.op());
        if self.inner.resource {
            g.op("VarIsInitializedOp").input(self.handle()).output()
        } else {
            let node = g.op("IsVariableInitialized").input(self.handle());
            node.attr("dtype", self.dtype()).output()
        }
    }

    /// Replaces the value.
    #[track_caller]
    pub fn assign(&self, value: impl Operand) -> Operation {
        self.near().update("AssignVariableOp", "Assign", value)
    }

    /// Adds to the value.
    #[track_caller]
    pub fn assign_add(&self, value: impl Operand) -> Operation {
        self.near()
            .update("AssignAddVariableOp", "AssignAdd", value)
    }

    /// Subtracts from the value.
    #[track_caller]
    pub fn assign_sub(&self, value: impl Operand) -> Operation {
        self.near()
            .update("AssignSubVariableOp", "AssignSub", value)
    }

    /// Rows by index, read without reading the rest.
    #[track_caller]
    pub fn gather(&self, indices: impl Operand) -> Output {
        let g = self.graph();
        let _near = g.colocate_with(&self.op());
        let indices = indices.to_output();
        if !self.inner.resource {
            return self.read().gather(&indices);
        }
        let node = g.op("ResourceGather").input(self.handle()).input(&indices);
        let rows = node.attr("dtype", self.dtype()).output();
        if let (Some(which), Some((_, row))) = (indices.shape().dims(), self.dims().split_first()) {
            rows.set_shape(&[which, row].concat());
        }
        rows
    }
}

impl Operand for Variable {
    fn to_output(&self) -> Output {
        self.read()
    }
}

impl std::fmt::Debug for Variable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shape = PartialShape::new(self.dims());
        write!(f, "{}: {} {shape}", self.name(), self.dtype().name())
    }
}
