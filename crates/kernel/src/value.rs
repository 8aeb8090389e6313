//! [`Value`], what flows along an edge, and [`RefVar`], the mutable tensor behind a ref edge.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use tensorfleet_status::{Result, failed_precondition};
use tensorfleet_tensor::{DType, Shape, Tensor};

/// A value on an edge.
#[derive(Clone, Default)]
pub enum Value {
    /// Nothing: not yet produced, already taken, or dead.
    #[default]
    Empty,
    /// A tensor.
    Tensor(Tensor),
    /// A reference to a mutable tensor.
    Ref(Arc<RefVar>),
}

impl From<Tensor> for Value {
    fn from(tensor: Tensor) -> Value {
        Value::Tensor(tensor)
    }
}

/// A mutable tensor shared by reference: the state of a `VariableV2`.
///
/// Readers clone the tensor under the lock and go on without it; a writer that finds such a clone
/// alive copies first. So no reader ever sees a half-written value.
pub struct RefVar {
    name: String,
    dtype: DType,
    declared: Shape,
    value: RwLock<Option<Tensor>>,
}

impl RefVar {
    /// An uninitialised variable.
    pub fn new(name: impl Into<String>, dtype: DType) -> RefVar {
        RefVar::declared(name, dtype, Shape::scalar())
    }

    /// An uninitialised variable that is to hold values of this shape.
    pub fn declared(name: impl Into<String>, dtype: DType, shape: Shape) -> RefVar {
        RefVar {
            name: name.into(),
            dtype,
            declared: shape,
            value: RwLock::new(None),
        }
    }

    /// The variable's name, for error texts.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The dtype.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The shape to expect before there is a value; scalar if none was declared, as in TensorFlow.
    pub fn declared_shape(&self) -> &Shape {
        &self.declared
    }

    /// The value; an error in TensorFlow's words if there is none yet.
    pub fn get(&self) -> Result<Tensor> {
        self.read().clone().ok_or_else(|| self.uninitialized())
    }

    /// Whether a value was assigned.
    pub fn is_initialized(&self) -> bool {
        self.read().is_some()
    }

    /// Shared access.
    pub fn read(&self) -> RwLockReadGuard<'_, Option<Tensor>> {
        self.value.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Exclusive access.
    pub fn write(&self) -> RwLockWriteGuard<'_, Option<Tensor>> {
        self.value.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the value in place under the lock; an error if there is none yet.
    pub fn update<R>(&self, change: impl FnOnce(&mut Tensor) -> Result<R>) -> Result<R> {
        match &mut *self.write() {
            Some(tensor) => change(tensor),
            None => Err(self.uninitialized()),
        }
    }

    #[cold]
    fn uninitialized(&self) -> tensorfleet_status::Status {
        failed_precondition!("Attempting to use uninitialized value {}", self.name)
    }
}
