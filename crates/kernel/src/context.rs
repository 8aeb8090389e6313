//! [`KernelCtx`] and [`AsyncCtx`]: inputs, outputs and surroundings of one kernel run.

use std::sync::Arc;

use smallvec::SmallVec;
use tensorfleet_math::par::Par;
use tensorfleet_status::{Result, Status, internal, invalid_argument};
use tensorfleet_tensor::{DType, Element, ResourceHandle, Shape, Tensor};

use crate::env::{FrameIter, StepEnv};
use crate::kernel::NodeInfo;
use crate::resource::Resource;
use crate::value::{RefVar, Value};

/// The outputs of one run.
pub type Outputs = SmallVec<[Value; 2]>;

/// What one kernel run sees.
///
/// Inputs belong to the run: [`take`](Self::take) moves one out, and if nobody else holds it, its
/// memory may be written and handed on as output.
pub struct KernelCtx<'a> {
    node: &'a NodeInfo,
    env: &'a Arc<StepEnv>,
    inputs: &'a mut [Value],
    outputs: &'a mut [Value],
    frame: FrameIter,
    input_is_dead: bool,
    watched: bool,
}

impl<'a> KernelCtx<'a> {
    /// A context over these inputs and (empty) outputs.
    #[inline]
    pub fn new(
        node: &'a NodeInfo,
        env: &'a Arc<StepEnv>,
        inputs: &'a mut [Value],
        outputs: &'a mut [Value],
    ) -> KernelCtx<'a> {
        KernelCtx {
            node,
            env,
            inputs,
            outputs,
            frame: FrameIter::default(),
            input_is_dead: false,
            watched: false,
        }
    }

    /// The same for a kernel whose loops are given up when the step is cancelled: one without effects, which is known before
    /// it runs.
    #[must_use]
    #[inline]
    pub fn watched(mut self, watched: bool) -> KernelCtx<'a> {
        self.watched = watched;
        self
    }

    /// The same in a frame and iteration; `input_is_dead` only for ops that run dead, such as `_Send`.
    #[must_use]
    #[inline]
    pub fn in_frame(mut self, frame: FrameIter, input_is_dead: bool) -> KernelCtx<'a> {
        self.frame = frame;
        self.input_is_dead = input_is_dead;
        self
    }

    /// The node.
    pub fn node(&self) -> &'a NodeInfo {
        self.node
    }

    /// The step.
    pub fn env(&self) -> &'a Arc<StepEnv> {
        self.env
    }

    /// Frame and iteration.
    pub fn frame(&self) -> FrameIter {
        self.frame
    }

    /// Whether a data input is dead (only ops that run dead ever see `true`).
    pub fn input_is_dead(&self) -> bool {
        self.input_is_dead
    }

    /// Threads for this kernel. Its loops are given up when the step is cancelled, unless somebody could see what is half
    /// done: then they run to their end.
    #[inline]
    pub fn par(&self) -> &'a dyn Par {
        if self.watched {
            &self.env.par
        } else {
            &*self.env.pool
        }
    }

    /// A point in a long loop of a kernel's own at which it is given up if the step was cancelled, as those of
    /// [`par`](Self::par) are.
    pub fn poll(&self) {
        self.par().poll();
    }

    /// The number of data inputs.
    pub fn num_inputs(&self) -> usize {
        self.inputs.len()
    }

    /// The number of outputs.
    pub fn num_outputs(&self) -> usize {
        self.outputs.len()
    }

    /// Input `index`.
    #[inline]
    pub fn input(&self, index: usize) -> Result<&Tensor> {
        match self.inputs.get(index) {
            Some(Value::Tensor(tensor)) => Ok(tensor),
            other => Err(missing(index, self.inputs.len(), other)),
        }
    }

    /// Input `index` by reference: for ops with ref inputs.
    pub fn input_ref(&self, index: usize) -> Result<&Arc<RefVar>> {
        match self.inputs.get(index) {
            Some(Value::Ref(var)) => Ok(var),
            other => Err(missing(index, self.inputs.len(), other)),
        }
    }

    /// Input `index` as it came, moved out: a tensor or a reference.
    pub fn take_value(&mut self, index: usize) -> Result<Value> {
        let count = self.inputs.len();
        match self.inputs.get_mut(index) {
            Some(slot) if !matches!(slot, Value::Empty) => Ok(std::mem::take(slot)),
            other => Err(missing(index, count, other.as_deref())),
        }
    }

    /// Input `index`, moved out of the run.
    #[inline]
    pub fn take(&mut self, index: usize) -> Result<Tensor> {
        match self.inputs.get_mut(index) {
            Some(slot @ Value::Tensor(_)) => match std::mem::take(slot) {
                Value::Tensor(tensor) => Ok(tensor),
                _ => Err(internal!("input {index} changed while it was taken")),
            },
            other => {
                let other = other.as_deref();
                Err(missing(index, 0, other))
            }
        }
    }

    /// The one element of input `index`, which must have just one.
    #[inline]
    pub fn scalar<T: Element>(&self, index: usize) -> Result<T> {
        self.input(index)?.to_scalar::<T>()
    }

    /// Input `index`, an int32 or int64 tensor such as a shape or axes, as `i64`s.
    pub fn ints(&self, index: usize) -> Result<SmallVec<[i64; 8]>> {
        let tensor = self.input(index)?;
        match tensor.dtype() {
            DType::I32 => Ok(tensor
                .slice::<i32>()?
                .iter()
                .map(|value| i64::from(*value))
                .collect()),
            DType::I64 => Ok(tensor.slice::<i64>()?.iter().copied().collect()),
            DType::I16 => Ok(tensor
                .slice::<i16>()?
                .iter()
                .map(|value| i64::from(*value))
                .collect()),
            DType::U16 => Ok(tensor
                .slice::<u16>()?
                .iter()
                .map(|value| i64::from(*value))
                .collect()),
            other => Err(invalid_argument!(
                "input {index} must be int32 or int64, got {other}"
            )),
        }
    }

    /// The one integer of input `index`.
    pub fn int(&self, index: usize) -> Result<i64> {
        match self.ints(index)?.as_slice() {
            [value] => Ok(*value),
            _ => Err(invalid_argument!(
                "input {index} must be a scalar, got shape {}",
                self.input(index)?.shape()
            )),
        }
    }

    /// A new tensor for an output that will be written whole.
    pub fn allocate(&self, dtype: DType, shape: Shape) -> Result<Tensor> {
        Tensor::new(dtype, shape)
    }

    /// Sets output `index`.
    #[inline]
    pub fn set(&mut self, index: usize, tensor: Tensor) {
        self.set_value(index, Value::Tensor(tensor));
    }

    /// Sets output `index` to a tensor or a reference. Outputs the node does not have are ignored.
    #[inline]
    pub fn set_value(&mut self, index: usize, value: Value) {
        if let Some(slot) = self.outputs.get_mut(index) {
            *slot = value;
        }
    }

    /// The handle in input `index`.
    pub fn handle(&self, index: usize) -> Result<&ResourceHandle> {
        match self.input(index)?.slice::<ResourceHandle>()? {
            [handle] => Ok(handle),
            other => Err(invalid_argument!(
                "input {index} must hold one resource handle, got {}",
                other.len()
            )),
        }
    }

    /// The resource that the handle in input `index` names.
    pub fn resource<T: Resource>(&self, index: usize) -> Result<Arc<T>> {
        self.env.resources.lookup_handle(self.handle(index)?)
    }

    /// Whether the step is no longer wanted.
    pub fn is_cancelled(&self) -> bool {
        self.env.cancel.is_cancelled()
    }
}

#[cold]
fn missing(index: usize, count: usize, found: Option<&Value>) -> Status {
    match found {
        None => internal!("input {index} does not exist, the node has {count}"),
        Some(Value::Empty) => internal!("input {index} has no value"),
        Some(Value::Ref(var)) => internal!(
            "input {index} is a reference to {}, a value was expected",
            var.name()
        ),
        Some(Value::Tensor(_)) => {
            invalid_argument!("input {index} must be a reference to a variable")
        }
    }
}

/// How an asynchronous kernel ended.
#[allow(clippy::large_enum_variant)] // the large variant is the rule, boxing it would allocate per run
pub enum Outcome {
    /// With these outputs.
    Outputs(Outputs),
    /// With dead outputs: a receive of a dead tensor.
    Dead,
}

type Done = Box<dyn FnOnce(Result<Outcome>) + Send>;

/// What one run of an asynchronous kernel owns. Must be finished; a dropped one fails the step.
pub struct AsyncCtx {
    node: Arc<NodeInfo>,
    env: Arc<StepEnv>,
    inputs: SmallVec<[Value; 4]>,
    frame: FrameIter,
    done: Option<Done>,
}

impl AsyncCtx {
    /// A context over these inputs; `done` is called exactly once.
    pub fn new(
        node: Arc<NodeInfo>,
        env: Arc<StepEnv>,
        inputs: SmallVec<[Value; 4]>,
        frame: FrameIter,
        done: Done,
    ) -> AsyncCtx {
        AsyncCtx {
            node,
            env,
            inputs,
            frame,
            done: Some(done),
        }
    }

    /// The node.
    pub fn node(&self) -> &NodeInfo {
        &self.node
    }

    /// The step.
    pub fn env(&self) -> &Arc<StepEnv> {
        &self.env
    }

    /// Frame and iteration.
    pub fn frame(&self) -> FrameIter {
        self.frame
    }

    /// Reads inputs with the conveniences of [`KernelCtx`]; outputs cannot be set through it.
    pub fn view<R>(&mut self, read: impl FnOnce(&mut KernelCtx<'_>) -> R) -> R {
        let mut ctx = KernelCtx::new(&self.node, &self.env, &mut self.inputs, &mut [])
            .in_frame(self.frame, false)
            .watched(!self.node.has_effects());
        read(&mut ctx)
    }

    /// A context for a part of this run that another resource answers, such as the next element of a queue: the same
    /// node and step, no inputs. [`then`](Self::then) says who hears of its end.
    pub fn part(&self) -> AsyncCtx {
        AsyncCtx {
            node: self.node.clone(),
            env: self.env.clone(),
            inputs: SmallVec::new(),
            frame: self.frame,
            done: None,
        }
    }

    /// The same context with `done` to be called exactly once.
    #[must_use]
    pub fn then(mut self, done: impl FnOnce(Result<Outcome>) + Send + 'static) -> AsyncCtx {
        self.done = Some(Box::new(done));
        self
    }

    /// All inputs, moved out.
    pub fn take_inputs(&mut self) -> SmallVec<[Value; 4]> {
        std::mem::take(&mut self.inputs)
    }

    /// Finishes with outputs or an error.
    pub fn finish(mut self, result: Result<Outputs>) {
        self.complete(result.map(Outcome::Outputs));
    }

    /// Finishes with these tensors as outputs.
    pub fn finish_with(self, tensors: impl IntoIterator<Item = Tensor>) {
        let outputs = tensors.into_iter().map(Value::Tensor).collect();
        self.finish(Ok(outputs));
    }

    /// Finishes with dead outputs.
    pub fn finish_dead(mut self) {
        self.complete(Ok(Outcome::Dead));
    }

    /// Finishes with an error.
    pub fn fail(self, status: Status) {
        self.finish(Err(status));
    }

    fn complete(&mut self, result: Result<Outcome>) {
        if let Some(done) = self.done.take() {
            done(result);
        }
    }
}

impl Drop for AsyncCtx {
    fn drop(&mut self) {
        if self.done.is_some() {
            let status = internal!(
                "the kernel of {} was dropped before it finished",
                self.node.op
            );
            self.complete(Err(status));
        }
    }
}
