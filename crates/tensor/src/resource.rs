//! [`ResourceHandle`]: the name of an object that lives on a device, as it travels in tensors.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::dtype::DType;
use crate::shape::PartialShape;

/// Names a resource by device, container and name; may also carry the object itself.
#[derive(Clone, Default)]
pub struct ResourceHandle(Arc<HandleData>);

/// The fields of a [`ResourceHandle`].
#[derive(Clone, Default)]
pub struct HandleData {
    /// Full name of the device that owns the resource.
    pub device: String,
    /// The container, by default the job's name.
    pub container: String,
    /// The name within the container.
    pub name: String,
    /// The hash of the type's name, as TensorFlow peers expect it.
    pub hash_code: u64,
    /// The type's name; C++ servers send a mangled one.
    pub type_name: String,
    /// For variables: dtype and shape of the value.
    pub dtypes_and_shapes: Vec<(DType, PartialShape)>,
    /// The object itself for handles made in this process; anonymous resources have no other owner.
    pub object: Option<Arc<dyn Any + Send + Sync>>,
}

impl ResourceHandle {
    /// A handle with these fields.
    pub fn new(data: HandleData) -> ResourceHandle {
        ResourceHandle(Arc::new(data))
    }
}

impl std::ops::Deref for ResourceHandle {
    type Target = HandleData;
    fn deref(&self) -> &HandleData {
        &self.0
    }
}

impl fmt::Debug for ResourceHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "<resource {}/{}/{} on {}>",
            self.type_name, self.container, self.name, self.device
        )
    }
}
