//! [`Variant`]: elements of DT_VARIANT tensors. [`TensorList`] is the one that graphs use all the time.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::dtype::DType;
use crate::shape::PartialShape;
use crate::tensor::Tensor;

/// One element of a DT_VARIANT tensor.
#[derive(Clone, Default)]
pub enum Variant {
    /// No value.
    #[default]
    Empty,
    /// A list of tensors.
    List(Arc<TensorList>),
    /// A value of a type that only its kernels know.
    Object(Arc<dyn VariantObject>),
    /// A value received from elsewhere whose type is not known here; it can be passed on.
    Opaque(Arc<OpaqueVariant>),
}

/// A value that kernels put into a DT_VARIANT tensor.
pub trait VariantObject: Any + Send + Sync {
    /// The name under which it travels.
    fn type_name(&self) -> &str;
    /// Metadata and tensors from which a peer rebuilds it; `None` if it cannot travel.
    fn encode(&self) -> Option<(Bytes, Vec<Tensor>)>;
    /// For downcasts.
    fn as_any(&self) -> &dyn Any;
}

/// A variant value as it travels: type name, metadata, tensors.
#[derive(Clone, Debug)]
pub struct OpaqueVariant {
    /// The sender's type name.
    pub type_name: String,
    /// Bytes only the type understands.
    pub metadata: Bytes,
    /// The tensors inside.
    pub tensors: Vec<Tensor>,
}

/// TensorFlow's TensorList: tensors of one dtype whose shapes agree with `element_shape`.
#[derive(Clone, Debug)]
pub struct TensorList {
    /// The dtype of every element.
    pub element_dtype: DType,
    /// What is known of every element's shape.
    pub element_shape: PartialShape,
    /// At most this many elements; negative means no limit.
    pub max_num_elements: i64,
    /// The elements; `None` where reserved and not yet written.
    pub items: Vec<Option<Tensor>>,
}

impl TensorList {
    /// The name under which lists travel.
    pub const TYPE_NAME: &'static str = "tensorflow::TensorList";

    /// An empty list.
    pub fn new(element_dtype: DType, element_shape: PartialShape) -> TensorList {
        TensorList {
            element_dtype,
            element_shape,
            max_num_elements: -1,
            items: Vec::new(),
        }
    }
}

impl Variant {
    /// The list inside, if it is one.
    pub fn as_list(&self) -> Option<&Arc<TensorList>> {
        match self {
            Variant::List(list) => Some(list),
            _ => None,
        }
    }

    /// The object inside, if it is a `T`.
    pub fn downcast<T: Any>(&self) -> Option<&T> {
        match self {
            Variant::Object(object) => object.as_any().downcast_ref(),
            _ => None,
        }
    }

    /// The name of the value's type; empty for no value.
    pub fn type_name(&self) -> &str {
        match self {
            Variant::Empty => "",
            Variant::List(_) => TensorList::TYPE_NAME,
            Variant::Object(object) => object.type_name(),
            Variant::Opaque(opaque) => &opaque.type_name,
        }
    }
}

impl fmt::Debug for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Variant::List(list) => write!(
                f,
                "<list of {} {}{}>",
                list.items.len(),
                list.element_dtype,
                list.element_shape
            ),
            other => write!(f, "<variant {}>", other.type_name()),
        }
    }
}
