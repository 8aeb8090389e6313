//! DType, Shape, Tensor, aligned shared buffers, and their protocol buffer forms.
//!
//! A [`Tensor`] is cheap to clone and copies on write. Elements are reached by type
//! ([`Tensor::slice`]) or, for code that only moves them, by size ([`Tensor::words`], [`by_word!`]).
//! Everything that comes from a proto is checked before memory is taken for it.

mod buffer;
mod counting;
mod display;
mod dtype;
mod element;
mod proto;
mod resource;
mod segments;
mod shape;
mod storage;
mod tensor;
mod trim;
mod tstring;
mod variant;

pub use buffer::{ALIGNMENT, Buffer, memory_usage, release_recycled, set_recycle_limit};
pub use bytes::Bytes;
pub use counting::CountingAllocator;
pub use display::{summarize, write_element};
pub use dtype::{DType, PortType};
pub use element::{Element, Word};
pub use half::{bf16, f16};
pub use num_complex::{Complex32, Complex64};
pub use resource::{HandleData, ResourceHandle};
pub use segments::Segments;
pub use shape::{Dims, MAX_RANK, PartialShape, Shape, UNKNOWN_DIM};
pub use storage::Storage;
pub use tensor::Tensor;
pub use tensorfleet_status::{Result, Status};
pub use trim::{keep_freed_memory, trim_memory};
pub use tstring::TString;
pub use variant::{OpaqueVariant, TensorList, Variant, VariantObject};
