//! Conditional accumulators: gradients are summed until enough came, then taken all at once.
//!
//! An accumulator has a step. A gradient whose `local_step` is behind it is stale and silently dropped. Taking waits
//! until `num_required` gradients came, then gives their mean (or sum), starts afresh and moves the step on by one.

pub(crate) mod ops;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tensorfleet_kernel::{AsyncCtx, Resource};
use tensorfleet_status::{Result, cancelled, internal, invalid_argument};
use tensorfleet_tensor::{DType, Element, PartialShape, Tensor, f16};

/// How gradients are put together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reduction {
    Mean,
    Sum,
}

/// A conditional accumulator.
pub(crate) struct Accumulator {
    dtype: DType,
    shape: PartialShape,
    reduction: Reduction,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    step: i64,
    count: i64,
    sum: Option<Tensor>,
    /// Takes that wait, first come first served.
    waiting: VecDeque<Take>,
    next_ticket: u64,
}

struct Take {
    ticket: u64,
    required: i64,
    ctx: AsyncCtx,
}

impl Resource for Accumulator {
    fn type_name(&self) -> &'static str {
        "ConditionalAccumulator"
    }
}

impl Accumulator {
    fn new(dtype: DType, shape: PartialShape, reduction: Reduction) -> Accumulator {
        Accumulator {
            dtype,
            shape,
            reduction,
            state: Mutex::new(State::default()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a gradient unless it is stale; whoever waited for it is served.
    fn apply(&self, local_step: i64, gradient: Tensor) -> Result<()> {
        let served = {
            let mut state = self.lock();
            if local_step < state.step {
                return Ok(());
            }
            if gradient.dtype() != self.dtype {
                return Err(invalid_argument!(
                    "the accumulator holds {}, got a gradient of {}",
                    self.dtype,
                    gradient.dtype()
                ));
            }
            if !self.shape.admits(gradient.shape()) {
                return Err(invalid_argument!(
                    "Shape mismatch: expected {}, got {}",
                    self.shape,
                    gradient.shape()
                ));
            }
            state.sum = Some(match state.sum.take() {
                Some(sum) => add(sum, &gradient)?,
                None => gradient,
            });
            state.count += 1;
            self.serve(&mut state)?
        };
        finish(served);
        Ok(())
    }

    /// Takes the mean or sum once `required` gradients came.
    fn take(self: &Arc<Accumulator>, required: i64, ctx: AsyncCtx) {
        let cancel = ctx.env().cancel.clone();
        let served = {
            let mut state = self.lock();
            let ticket = state.next_ticket;
            state.next_ticket += 1;
            state.waiting.push_back(Take {
                ticket,
                required,
                ctx,
            });
            match self.serve(&mut state) {
                Ok(served) if served.is_empty() => Err(ticket),
                other => Ok(other),
            }
        };
        match served {
            Ok(Ok(served)) => finish(served),
            Ok(Err(status)) => drop(status),
            Err(ticket) => {
                let accumulator = Arc::downgrade(self);
                // It finds nothing once the take was served.
                let guard = cancel.on_cancel(move |_| {
                    let Some(accumulator) = accumulator.upgrade() else {
                        return;
                    };
                    let taken = {
                        let mut state = accumulator.lock();
                        let position = state.waiting.iter().position(|take| take.ticket == ticket);
                        position.and_then(|position| state.waiting.remove(position))
                    };
                    if let Some(take) = taken {
                        take.ctx
                            .fail(cancelled!("TakeGrad operation was cancelled"));
                    }
                });
                guard.detach();
            }
        }
    }

    /// Serves the first waiting take if it can be: what to finish, once the lock is gone.
    fn serve(&self, state: &mut State) -> Result<Vec<(AsyncCtx, Tensor)>> {
        let mut served = Vec::new();
        while state
            .waiting
            .front()
            .is_some_and(|take| state.count >= take.required && state.count > 0)
        {
            let (Some(take), Some(sum)) = (state.waiting.pop_front(), state.sum.take()) else {
                break;
            };
            let value = match self.reduction {
                Reduction::Mean => divide(sum, state.count)?,
                Reduction::Sum => sum,
            };
            state.count = 0;
            state.step += 1;
            served.push((take.ctx, value));
        }
        Ok(served)
    }

    fn accumulated(&self) -> i64 {
        self.lock().count
    }

    /// Moves the step on; going backwards is ignored, as in TensorFlow.
    fn set_step(&self, step: i64) {
        let mut state = self.lock();
        state.step = state.step.max(step);
    }
}

/// Answers outside of the lock: an answer may run other kernels.
fn finish(served: Vec<(AsyncCtx, Tensor)>) {
    for (ctx, value) in served {
        ctx.finish_with([value]);
    }
}

fn add(mut sum: Tensor, gradient: &Tensor) -> Result<Tensor> {
    if sum.shape() != gradient.shape() {
        return Err(invalid_argument!(
            "Shape mismatch: expected {}, got {}",
            sum.shape(),
            gradient.shape()
        ));
    }
    fn run<T: Element + Copy + std::ops::Add<Output = T>>(
        sum: &mut Tensor,
        gradient: &Tensor,
    ) -> Result<()> {
        for (slot, value) in sum.slice_mut::<T>()?.iter_mut().zip(gradient.slice::<T>()?) {
            *slot = *slot + *value;
        }
        Ok(())
    }
    match sum.dtype() {
        DType::F32 => run::<f32>(&mut sum, gradient)?,
        DType::F64 => run::<f64>(&mut sum, gradient)?,
        DType::F16 => run::<f16>(&mut sum, gradient)?,
        other => return Err(internal!("gradients of {other} are not accumulated")),
    }
    Ok(sum)
}

fn divide(mut sum: Tensor, count: i64) -> Result<Tensor> {
    match sum.dtype() {
        DType::F32 => sum
            .slice_mut::<f32>()?
            .iter_mut()
            .for_each(|value| *value /= count as f32),
        DType::F64 => sum
            .slice_mut::<f64>()?
            .iter_mut()
            .for_each(|value| *value /= count as f64),
        DType::F16 => {
            let divisor = f16::from_f64(count as f64);
            sum.slice_mut::<f16>()?
                .iter_mut()
                .for_each(|value| *value /= divisor);
        }
        other => return Err(internal!("gradients of {other} are not accumulated")),
    }
    Ok(sum)
}
