//! Conditional accumulators: gradients are summed until enough came, then taken all at once.
//!
//! An accumulator has a step. A gradient whose `local_step` is behind it is stale and silently dropped. Taking waits
//! until `num_required` gradients came, then gives their mean (or sum), starts afresh and moves the step on by one.

mod gathered;
pub(crate) mod ops;
pub(crate) mod sparse;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use smallvec::SmallVec;
use tensorfleet_kernel::{AsyncCtx, Resource};
use tensorfleet_status::{Result, cancelled, invalid_argument};
use tensorfleet_tensor::{DType, PartialShape, Tensor};

use self::gathered::Gathered;

/// How gradients are put together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reduction {
    Mean,
    Sum,
}

/// A conditional accumulator.
pub(crate) struct Accumulator {
    is_sparse: bool,
    dtype: DType,
    shape: PartialShape,
    reduction: Reduction,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    step: i64,
    count: i64,
    sum: Option<Gathered>,
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
    fn new(
        is_sparse: bool,
        dtype: DType,
        shape: PartialShape,
        reduction: Reduction,
    ) -> Accumulator {
        Accumulator {
            is_sparse,
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
    fn apply(&self, local_step: i64, gradient: impl FnOnce() -> Result<Gathered>) -> Result<()> {
        let served = {
            let mut state = self.lock();
            if local_step < state.step {
                return Ok(());
            }
            let gradient = gradient()?;
            if gradient.dtype() != self.dtype {
                return Err(invalid_argument!(
                    "the accumulator holds {}, got a gradient of {}",
                    self.dtype,
                    gradient.dtype()
                ));
            }
            gradient.check(&self.shape, state.sum.as_ref())?;
            state.sum = Some(match state.sum.take() {
                Some(sum) => sum.plus(gradient)?,
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
    fn serve(&self, state: &mut State) -> Result<Vec<Served>> {
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
                Reduction::Mean => sum.mean(state.count)?,
                Reduction::Sum => sum,
            };
            state.count = 0;
            state.step += 1;
            served.push((take.ctx, value.outputs(&self.shape)));
        }
        Ok(served)
    }

    fn accumulated(&self) -> i64 {
        self.lock().count
    }

    /// Sets the step, also backwards, as TensorFlow does.
    fn set_step(&self, step: i64) {
        self.lock().step = step;
    }
}

/// A take that is answered, and its outputs.
type Served = (AsyncCtx, SmallVec<[Tensor; 3]>);

/// Answers outside of the lock: an answer may run other kernels.
fn finish(served: Vec<Served>) {
    for (ctx, values) in served {
        ctx.finish_with(values);
    }
}
