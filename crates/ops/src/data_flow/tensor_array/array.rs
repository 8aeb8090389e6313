//! [`TensorArray`]: the object behind a handle.
//!
//! An index is written once and, by default, read once: reading hands the tensor over and clears the
//! index, so that whoever reads may write into its memory. The array of gradients that belongs to an
//! array adds up what is written to one index, and reads zeros where nothing was written.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;
use tensorfleet_kernel::Resource;
use tensorfleet_math::par::Par;
use tensorfleet_status::{Result, ensure, invalid_argument};
use tensorfleet_tensor::{DType, PartialShape, Shape, Tensor};

use crate::math::add_n::add_items;

/// What C++ calls the type.
pub(super) const TYPE_NAME: &str = "N10tensorflow11TensorArrayE";

/// No array may have more elements: a wrong index must not take all memory.
const MAX_SIZE: usize = 1 << 26;

/// What is fixed when an array is made.
pub(super) struct Options {
    /// The name, unique within the step.
    pub(super) name: String,
    /// The dtype of every element.
    pub(super) dtype: DType,
    /// Whether the first write fixes the shape of all elements.
    pub(super) identical_element_shapes: bool,
    /// Whether a read takes the element away.
    pub(super) clear_after_read: bool,
    /// Whether this is an array of gradients.
    pub(super) is_grad: bool,
}

/// An array of tensors that lives as long as its handles.
pub(super) struct TensorArray {
    pub(super) options: Options,
    state: Mutex<State>,
}

struct State {
    closed: bool,
    dynamic_size: bool,
    element_shape: PartialShape,
    elements: Vec<Element>,
    /// How many elements `TensorArrayConcatV3` joins in an array of gradients.
    marked_size: usize,
    /// The arrays of gradients by source.
    grads: FxHashMap<String, Arc<TensorArray>>,
}

/// The state of one index.
#[derive(Clone, Default)]
enum Element {
    #[default]
    Unwritten,
    /// Written, if only in the array that this one has the gradients of: nothing was added yet.
    Zeros(Shape),
    Value(Tensor),
    /// Read and taken away.
    Cleared(Shape),
}

impl Element {
    /// The shape of what was written.
    fn shape(&self) -> Option<&Shape> {
        match self {
            Element::Unwritten => None,
            Element::Zeros(shape) | Element::Cleared(shape) => Some(shape),
            Element::Value(value) => Some(value.shape()),
        }
    }
}

impl Resource for TensorArray {
    fn type_name(&self) -> &'static str {
        TYPE_NAME
    }
}

impl TensorArray {
    /// An array of `size` elements that nobody wrote.
    pub(super) fn new(
        options: Options,
        size: usize,
        element_shape: PartialShape,
        dynamic_size: bool,
    ) -> Result<TensorArray> {
        check_size(size)?;
        Ok(TensorArray {
            options,
            state: Mutex::new(State {
                closed: false,
                dynamic_size,
                element_shape,
                elements: vec![Element::Unwritten; size],
                marked_size: 0,
                grads: FxHashMap::default(),
            }),
        })
    }

    /// The array of this source's gradients, made at the first call. It is as large as this one is now,
    /// which therefore grows no more.
    pub(super) fn grad(&self, source: &str, prepend: &Shape) -> Result<Arc<TensorArray>> {
        let mut state = self.open()?;
        state.dynamic_size = false;
        // Gradients were added up: they cannot be told apart any more.
        ensure!(
            !self.options.is_grad,
            invalid_argument,
            "Wrong input container. _tensor_array_grads{}",
            self.options.name
        );
        if let Some(grad) = state.grads.get(source) {
            return Ok(grad.clone());
        }
        let element_shape = match state.element_shape.dims() {
            Some(dims) => PartialShape::new(&[prepend.dims(), dims].concat()),
            None => PartialShape::unknown(),
        };
        let options = Options {
            name: format!("{}@{source}", self.options.name),
            dtype: self.options.dtype,
            identical_element_shapes: self.options.identical_element_shapes,
            clear_after_read: true,
            is_grad: true,
        };
        let grad = TensorArray::new(options, 0, element_shape, false)?;
        {
            let mut of_grad = grad.lock();
            of_grad.marked_size = state.marked_size;
            let elements = state.elements.iter().map(|element| match element.shape() {
                Some(shape) => prepend.concat(shape).map(Element::Zeros),
                None => Ok(Element::Unwritten),
            });
            of_grad.elements = elements.collect::<Result<_>>()?;
        }
        let grad = Arc::new(grad);
        state.grads.insert(source.to_owned(), grad.clone());
        Ok(grad)
    }

    /// The number of elements.
    pub(super) fn size(&self) -> Result<usize> {
        Ok(self.open()?.elements.len())
    }

    /// The number of elements that belong to a concatenation.
    pub(super) fn concat_size(&self) -> Result<usize> {
        let state = self.open()?;
        Ok(if self.options.is_grad {
            state.marked_size
        } else {
            state.elements.len()
        })
    }

    /// The number of elements that writes may reach: `wanted` if the array grows.
    pub(super) fn size_for(&self, wanted: usize) -> Result<usize> {
        let state = self.open()?;
        let size = state.elements.len();
        Ok(if state.dynamic_size {
            size.max(wanted)
        } else {
            size
        })
    }

    /// Remembers how many elements a split or concatenation has, for the gradients.
    pub(super) fn mark_size(&self, size: usize) {
        if !self.options.is_grad {
            self.lock().marked_size = size;
        }
    }

    /// Learns more of the elements' shape.
    pub(super) fn merge_element_shape(&self, shape: &PartialShape) -> Result<()> {
        let mut state = self.open()?;
        state.element_shape = state.element_shape.merge(shape)?;
        Ok(())
    }

    /// Writes elements, or adds to them in an array of gradients.
    pub(super) fn write(
        &self,
        par: &dyn Par,
        values: impl IntoIterator<Item = Result<(i64, Tensor)>>,
    ) -> Result<()> {
        let mut state = self.open()?;
        for value in values {
            let (index, value) = value?;
            self.write_one(&mut state, par, index, value)?;
        }
        Ok(())
    }

    fn write_one(&self, state: &mut State, par: &dyn Par, index: i64, value: Tensor) -> Result<()> {
        let name = &self.options.name;
        let size = state.elements.len();
        let position = usize::try_from(index).ok();
        let Some(position) = position.filter(|at| state.dynamic_size || *at < size) else {
            return Err(invalid_argument!(
                "TensorArray {name}: Tried to write to index {index} but array is not resizeable and size is: {size}"
            ));
        };
        ensure!(
            state.element_shape.admits(value.shape()),
            invalid_argument,
            "TensorArray {name}: Could not write to TensorArray index {index} because the value shape is {} which is incompatible with the TensorArray's inferred element shape: {} (consider setting infer_shape=False).",
            value.shape(),
            state.element_shape
        );
        if self.options.identical_element_shapes && state.element_shape.to_shape().is_none() {
            state.element_shape = PartialShape::from(value.shape());
        }
        if position >= size {
            check_size(position + 1)?;
            state.elements.resize(position + 1, Element::Unwritten);
        }
        let element = &mut state.elements[position];
        match std::mem::take(element) {
            Element::Unwritten => *element = Element::Value(value),
            Element::Cleared(_) => {
                return Err(invalid_argument!(
                    "TensorArray {name}: Could not write to TensorArray index {index} because it has already been read."
                ));
            }
            _ if !self.options.is_grad => {
                return Err(invalid_argument!(
                    "TensorArray {name}: Could not write to TensorArray index {index} because it has already been written to."
                ));
            }
            Element::Zeros(shape) => {
                self.check_sum(index, &shape, &value)?;
                *element = Element::Value(value);
            }
            Element::Value(sum) => {
                self.check_sum(index, sum.shape(), &value)?;
                *element = Element::Value(add_items(par, sum, value)?);
            }
        }
        Ok(())
    }

    fn check_sum(&self, index: i64, shape: &Shape, value: &Tensor) -> Result<()> {
        ensure!(
            shape == value.shape(),
            invalid_argument,
            "TensorArray {}: Could not aggregate to TensorArray index {index} because the existing shape is {shape} but the new input shape is {}.",
            self.options.name,
            value.shape()
        );
        Ok(())
    }

    /// Reads elements; takes them away if the array is cleared by reads.
    pub(super) fn read(&self, indices: impl IntoIterator<Item = i64>) -> Result<Vec<Tensor>> {
        let mut state = self.open()?;
        let read = indices.into_iter().map(|at| self.read_one(&mut state, at));
        read.collect()
    }

    fn read_one(&self, state: &mut State, index: i64) -> Result<Tensor> {
        let is_grad = self.options.is_grad;
        let size = state.elements.len();
        let position = usize::try_from(index).ok();
        let Some(position) = position.filter(|at| is_grad || *at < size) else {
            return Err(invalid_argument!(
                "Tried to read from index {index} but array size is: {size}"
            ));
        };
        if position >= size {
            // Only gradients: the forward array was not written that far.
            check_size(position + 1)?;
            let zeros = Element::Zeros(self.shape_of_unwritten(state, index)?);
            state.elements.resize(position + 1, zeros);
        }
        let value = match std::mem::take(&mut state.elements[position]) {
            Element::Value(value) => value,
            Element::Zeros(shape) => Tensor::zeros(self.options.dtype, shape)?,
            Element::Unwritten => {
                let shape = self.shape_of_unwritten(state, index)?;
                Tensor::zeros(self.options.dtype, shape)?
            }
            Element::Cleared(_) => {
                return Err(invalid_argument!(
                    "TensorArray {}: Could not read index {index} twice because it was cleared after a previous read (perhaps try setting clear_after_read = false?).",
                    self.options.name
                ));
            }
        };
        state.elements[position] = if self.options.clear_after_read {
            Element::Cleared(value.shape().clone())
        } else {
            Element::Value(value.clone())
        };
        Ok(value)
    }

    fn shape_of_unwritten(&self, state: &State, index: i64) -> Result<Shape> {
        state.element_shape.to_shape().ok_or_else(|| invalid_argument!(
            "TensorArray {}: Could not read from TensorArray index {index}.  Furthermore, the element shape is not fully defined: {}.  It is possible you are working with a resizeable TensorArray and stop_gradients is not allowing the gradients to be written.  If you set the full element_shape property on the forward TensorArray, the proper all-zeros tensor will be returned instead of incurring this error.",
            self.options.name,
            state.element_shape
        ))
    }

    /// Frees the elements and refuses everything from now on.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.elements = Vec::new();
    }

    fn open(&self) -> Result<MutexGuard<'_, State>> {
        let state = self.lock();
        ensure!(
            !state.closed,
            invalid_argument,
            "TensorArray {} has already been closed.",
            self.options.name
        );
        Ok(state)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn check_size(size: usize) -> Result<()> {
    ensure!(
        size <= MAX_SIZE,
        resource_exhausted,
        "a TensorArray of {size} elements exceeds the limit of {MAX_SIZE}"
    );
    Ok(())
}
