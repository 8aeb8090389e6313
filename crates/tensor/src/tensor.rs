//! [`Tensor`]: a dtype, a shape and shared elements.

use std::fmt;

use bytes::Bytes;
use tensorfleet_status::{Result, internal, invalid_argument, resource_exhausted};

use crate::buffer::Buffer;
use crate::dtype::DType;
use crate::element::{Element, Word};
use crate::shape::Shape;
use crate::storage::Storage;
use crate::tstring::TString;

/// No tensor may be larger than this many bytes; larger requests are RESOURCE_EXHAUSTED, not an abort.
const MAX_BYTES: usize = 1 << 40;

/// A dense tensor. Clones share the elements; writing to a shared one copies first.
///
/// ```
/// use tensorfleet_tensor::{Shape, Tensor};
///
/// let mut a = Tensor::from_slice(Shape::new(&[2, 2])?, &[1.0f32, 2.0, 3.0, 4.0])?;
/// let b = a.clone();
/// a.slice_mut::<f32>()?[0] = 9.0;
/// assert_eq!(a.slice::<f32>()?[0], 9.0);
/// assert_eq!(b.slice::<f32>()?[0], 1.0);
/// # Ok::<(), tensorfleet_tensor::Status>(())
/// ```
#[derive(Clone)]
pub struct Tensor {
    shape: Shape,
    storage: Storage,
    dtype: DType,
}

impl Tensor {
    /// A tensor whose elements are initialised but unspecified: for outputs that are written whole.
    /// Strings are empty, resources and variants unset.
    pub fn new(dtype: DType, shape: Shape) -> Result<Tensor> {
        Tensor::build(dtype, shape, Storage::plain_uninit)
    }

    /// A tensor of zeros, `false`, empty strings or empty variants.
    pub fn zeros(dtype: DType, shape: Shape) -> Result<Tensor> {
        Tensor::build(dtype, shape, Storage::plain_zeroed)
    }

    fn build(dtype: DType, shape: Shape, plain: fn(usize) -> Option<Storage>) -> Result<Tensor> {
        let elements = shape.elements();
        check_size(dtype, &shape)?;
        let storage = match dtype {
            DType::String => repeated(TString::new(), elements),
            DType::Resource => repeated(crate::ResourceHandle::default(), elements),
            DType::Variant => repeated(crate::Variant::default(), elements),
            // A recycled buffer may hold bytes that are no bools.
            DType::Bool => Storage::plain_zeroed(elements),
            _ => plain(elements * dtype.size().unwrap_or(0)),
        };
        let Some(storage) = storage else {
            return Err(out_of_memory(dtype, &shape));
        };
        Ok(Tensor {
            shape,
            storage,
            dtype,
        })
    }

    /// A rank-0 tensor.
    #[inline]
    pub fn scalar<T: Element>(value: T) -> Tensor {
        Tensor {
            shape: Shape::scalar(),
            storage: T::store_slice(std::slice::from_ref(&value)),
            dtype: T::DTYPE,
        }
    }

    /// A rank-1 tensor of these values.
    pub fn vector<T: Element>(values: &[T]) -> Tensor {
        Tensor {
            shape: Shape::vector(values.len()),
            storage: T::store_slice(values),
            dtype: T::DTYPE,
        }
    }

    /// A rank-0 string tensor.
    pub fn string(value: impl Into<TString>) -> Tensor {
        Tensor::scalar::<TString>(value.into())
    }

    /// A tensor of these values in row-major order; their number must be the shape's.
    pub fn from_slice<T: Element>(shape: Shape, values: &[T]) -> Result<Tensor> {
        check_count(&shape, values.len())?;
        Ok(Tensor {
            shape,
            storage: T::store_slice(values),
            dtype: T::DTYPE,
        })
    }

    /// Like [`from_slice`](Self::from_slice), keeping the vector where no copy is needed.
    pub fn from_vec<T: Element>(shape: Shape, values: Vec<T>) -> Result<Tensor> {
        check_count(&shape, values.len())?;
        Ok(Tensor {
            shape,
            storage: T::store(values),
            dtype: T::DTYPE,
        })
    }

    /// A tensor of a plain dtype over little-endian row-major bytes, shared where alignment allows.
    pub fn from_bytes(dtype: DType, shape: Shape, bytes: Bytes) -> Result<Tensor> {
        let Some(size) = dtype.size() else {
            return Err(invalid_argument!("elements of {dtype} are not plain bytes"));
        };
        let expected = check_size(dtype, &shape)?;
        if bytes.len() != expected {
            return Err(invalid_argument!(
                "{} bytes given for a {dtype} tensor of shape {shape}, which takes {expected}",
                bytes.len()
            ));
        }
        let storage = if dtype == DType::Bool && bytes.iter().any(|byte| *byte > 1) {
            let normal: Vec<u8> = bytes.iter().map(|byte| u8::from(*byte != 0)).collect();
            Storage::from_plain(&normal)
        } else {
            Storage::from_shared(bytes, size)
        };
        Ok(Tensor {
            shape,
            storage,
            dtype,
        })
    }

    /// The element type.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The dimensions.
    #[inline]
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The number of dimensions.
    #[inline]
    pub fn rank(&self) -> usize {
        self.shape.rank()
    }

    /// The number of elements.
    pub fn elements(&self) -> usize {
        self.shape.elements()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }

    /// Memory taken by the elements; strings count their bytes.
    pub fn byte_size(&self) -> usize {
        match &self.storage {
            Storage::String(values) => values
                .iter()
                .map(|value| value.len() + size_of::<TString>())
                .sum(),
            storage => storage.plain().map_or(0, <[u8]>::len),
        }
    }

    /// The elements, if they are of type `T`.
    #[inline]
    pub fn slice<T: Element>(&self) -> Result<&[T]> {
        if T::DTYPE != self.dtype {
            return Err(self.wrong_type(T::DTYPE));
        }
        T::view(&self.storage).ok_or_else(|| broken(self.dtype))
    }

    /// The elements for writing; copies them first if they are shared.
    #[inline]
    pub fn slice_mut<T: Element>(&mut self) -> Result<&mut [T]> {
        if T::DTYPE != self.dtype {
            return Err(self.wrong_type(T::DTYPE));
        }
        let dtype = self.dtype;
        T::view_mut(&mut self.storage).ok_or_else(|| broken(dtype))
    }

    /// The one element of a tensor with one element, of whatever rank.
    #[inline]
    pub fn to_scalar<T: Element>(&self) -> Result<T> {
        match self.slice::<T>()? {
            [value] => Ok(value.clone()),
            _ => Err(invalid_argument!(
                "a scalar was expected, got shape {}",
                self.shape
            )),
        }
    }

    /// The elements as words of their size, for moving them about (see [`by_word!`](crate::by_word)).
    pub fn words<W: Word>(&self) -> Result<&[W]> {
        if !W::holds(self.dtype) {
            return Err(internal!(
                "words of the wrong width for dtype {}",
                self.dtype
            ));
        }
        W::words(&self.storage).ok_or_else(|| broken(self.dtype))
    }

    /// The elements as words for writing; copies them first if they are shared.
    pub fn words_mut<W: Word>(&mut self) -> Result<&mut [W]> {
        if !W::holds(self.dtype) {
            return Err(internal!(
                "words of the wrong width for dtype {}",
                self.dtype
            ));
        }
        let dtype = self.dtype;
        W::words_mut(&mut self.storage).ok_or_else(|| broken(dtype))
    }

    /// The raw bytes of a plain dtype.
    pub fn bytes(&self) -> Option<&[u8]> {
        self.storage.plain()
    }

    /// The raw bytes of a plain dtype as shared bytes; copies only what lives inside the tensor.
    pub fn to_shared_bytes(&self) -> Option<Bytes> {
        match &self.storage {
            Storage::Heap(buffer) => Some(buffer.to_shared()),
            storage => storage.plain().map(Bytes::copy_from_slice),
        }
    }

    /// The raw bytes for writing, for readers that fill a tensor from a file; `None` for bool and non-plain types.
    pub fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        if self.dtype == DType::Bool {
            return None;
        }
        self.storage.plain_mut()
    }

    /// Whether this is the only holder, so that writing copies nothing.
    pub fn is_unique(&mut self) -> bool {
        self.storage.is_unique()
    }

    /// Whether both tensors are backed by the same memory.
    pub fn shares_memory_with(&self, other: &Tensor) -> bool {
        match (&self.storage, &other.storage) {
            (Storage::Heap(a), Storage::Heap(b)) => {
                !a.is_empty() && a.bytes().as_ptr() == b.bytes().as_ptr()
            }
            _ => false,
        }
    }

    /// The same elements under another shape of equal size.
    pub fn reshaped(mut self, shape: Shape) -> Result<Tensor> {
        if shape.elements() != self.shape.elements() {
            return Err(invalid_argument!(
                "a tensor with {} values cannot take shape {shape}",
                self.shape.elements()
            ));
        }
        self.shape = shape;
        Ok(self)
    }

    /// The same bytes as another plain dtype of the same element size (neither may be bool).
    pub fn reinterpreted(mut self, dtype: DType) -> Result<Tensor> {
        let plain = dtype.is_plain() && dtype != DType::Bool && self.dtype != DType::Bool;
        if !plain || dtype.size() != self.dtype.size() {
            return Err(invalid_argument!(
                "cannot see {} elements as {dtype}",
                self.dtype
            ));
        }
        self.dtype = dtype;
        Ok(self)
    }

    /// Rows `start .. start + count` along dimension 0, sharing memory where the dtype is plain.
    pub fn rows(&self, start: usize, count: usize) -> Result<Tensor> {
        let rows = self.shape.dim(0);
        if self.rank() == 0 || start.checked_add(count).is_none_or(|end| end > rows) {
            return Err(invalid_argument!(
                "rows {start}..{start}+{count} are out of range for shape {}",
                self.shape
            ));
        }
        let shape = self.shape.with_dim(0, count as i64)?;
        let row = self.shape.elements_in(1..self.rank());
        let (from, len) = (start * row, count * row);
        if let (Storage::Heap(buffer), Some(size)) = (&self.storage, self.dtype.size())
            && len * size > crate::storage::INLINE_BYTES
        {
            let part = buffer
                .slice(from * size, len * size)
                .ok_or_else(|| broken(self.dtype))?;
            return Ok(Tensor {
                shape,
                storage: Storage::Heap(part),
                dtype: self.dtype,
            });
        }
        let storage = match &self.storage {
            Storage::String(values) => TString::store(values[from..from + len].to_vec()),
            Storage::Resource(values) => Element::store(values[from..from + len].to_vec()),
            Storage::Variant(values) => Element::store(values[from..from + len].to_vec()),
            storage => {
                let size = self.dtype.size().unwrap_or(1);
                let bytes = storage.plain().ok_or_else(|| broken(self.dtype))?;
                Storage::from_plain(&bytes[from * size..(from + len) * size])
            }
        };
        Ok(Tensor {
            shape,
            storage,
            dtype: self.dtype,
        })
    }

    /// A copy that shares nothing with `self`.
    pub fn deep_copy(&self) -> Tensor {
        let storage = match &self.storage {
            Storage::Heap(buffer) => Storage::Heap(Buffer::copy_of(buffer.bytes())),
            Storage::String(values) => TString::store(values.to_vec()),
            storage => storage.clone(),
        };
        Tensor {
            shape: self.shape.clone(),
            storage,
            dtype: self.dtype,
        }
    }

    #[cold]
    fn wrong_type(&self, wanted: DType) -> tensorfleet_status::Status {
        invalid_argument!(
            "a tensor of {wanted} was expected, got {} of shape {}",
            self.dtype,
            self.shape
        )
    }
}

#[cold]
fn broken(dtype: DType) -> tensorfleet_status::Status {
    internal!("storage of a {dtype} tensor does not fit its dtype")
}

/// So many times this value; `None` without memory for it.
fn repeated<T: Element>(value: T, count: usize) -> Option<Storage> {
    let mut values = Vec::new();
    values.try_reserve_exact(count).ok()?;
    values.resize(count, value);
    Some(T::store(values))
}

#[cold]
fn out_of_memory(dtype: DType, shape: &Shape) -> tensorfleet_status::Status {
    resource_exhausted!(
        "OOM when allocating tensor with shape{shape} and type {dtype}: the system does not give that much memory"
    )
}

/// The byte size of such a tensor, if it may exist.
fn check_size(dtype: DType, shape: &Shape) -> Result<usize> {
    let element = dtype.size().unwrap_or(size_of::<TString>());
    match shape
        .elements()
        .checked_mul(element)
        .filter(|bytes| *bytes <= MAX_BYTES)
    {
        Some(bytes) => Ok(bytes),
        None => Err(resource_exhausted!(
            "a {dtype} tensor of shape {shape} exceeds the limit of {MAX_BYTES} bytes"
        )),
    }
}

fn check_count(shape: &Shape, count: usize) -> Result<()> {
    if shape.elements() != count {
        return Err(invalid_argument!(
            "{count} values given for shape {shape}, which has {}",
            shape.elements()
        ));
    }
    Ok(())
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor<{}{} ", self.dtype, self.shape)?;
        crate::display::summarize(self, 8, f)?;
        f.write_str(">")
    }
}

#[cfg(test)]
mod tests;
