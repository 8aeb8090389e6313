//! [`Function`]: what a stage calls for its elements, and [`Call`], one that is under way.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use tensorfleet_kernel::{CancelGuard, CancelToken, FuncRef, KernelCtx, NodeInfo};
use tensorfleet_status::{Code, Result, Status, cancelled, invalid_argument};
use tensorfleet_tensor::{DType, Tensor};

use super::home::Home;
use super::value::{Dataset, Element};

/// A function and what it has from outside.
#[derive(Clone)]
pub(super) struct Function(Arc<Captured>);

struct Captured {
    func: FuncRef,
    captured: Vec<Tensor>,
}

/// Reads a function of a node: its attribute, and its captured tensors in the inputs `from..from + count`.
#[derive(Clone)]
pub(super) struct FunctionOf {
    func: FuncRef,
    count: usize,
}

impl FunctionOf {
    /// The function in `attr`, with as many captured tensors as `types` has.
    pub(super) fn attrs(node: &NodeInfo, attr: &str, types: &str) -> Result<FunctionOf> {
        Ok(FunctionOf {
            func: node.attrs.func(attr)?.clone(),
            count: node.attrs.port_types(types)?.len(),
        })
    }

    /// The captured tensors are the inputs from `from` on.
    pub(super) fn read(&self, ctx: &mut KernelCtx<'_>, from: usize) -> Result<Function> {
        let inputs = from..from + self.count;
        let captured: Result<Vec<Tensor>> = inputs.map(|index| ctx.take(index)).collect();
        Ok(Function(Arc::new(Captured {
            func: self.func.clone(),
            captured: captured?,
        })))
    }

    /// The first input behind the captured ones.
    pub(super) fn end(&self, from: usize) -> usize {
        from + self.count
    }
}

impl Function {
    /// Begins a call on this thread.
    pub(super) fn call(&self, home: &Arc<Home>, args: Element) -> Call {
        let (call, start) = self.prepare(home, args);
        start();
        call
    }

    /// Begins a call on another thread.
    pub(super) fn call_elsewhere(&self, home: &Arc<Home>, args: Element) -> Call {
        let (call, start) = self.prepare(home, args);
        home.pool.spawn(Box::new(start));
        call
    }

    fn prepare(
        &self,
        home: &Arc<Home>,
        mut args: Element,
    ) -> (Call, impl FnOnce() + Send + 'static) {
        let answer = Arc::new(Answer(Mutex::new(State::Waits(None))));
        let cancel = CancelToken::new();
        let guard = {
            let cancel = cancel.clone();
            let forward = move |reason: &Status| cancel.cancel(reason.clone());
            home.cancel.on_cancel(forward)
        };
        let call = Call {
            answer: answer.clone(),
            cancel: cancel.clone(),
            _guard: guard,
        };
        let (function, home) = (self.0.clone(), home.clone());
        let start = move || {
            let env = match home.step(cancel) {
                Ok(env) => env,
                Err(status) => return answer.give(Err(status)),
            };
            args.extend(function.captured.iter().cloned());
            let step_resources = env.step_resources.clone();
            let done = Box::new(move |result: Result<Vec<Tensor>>| {
                step_resources.clear();
                answer.give(result);
            });
            env.functions.call(&function.func, args, &env, done);
        };
        (call, start)
    }
}

struct Answer(Mutex<State>);

enum State {
    Waits(Option<Waker>),
    Came(Result<Vec<Tensor>>),
    Taken,
}

impl Answer {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn give(&self, result: Result<Vec<Tensor>>) {
        let before = std::mem::replace(&mut *self.lock(), State::Came(result));
        if let State::Waits(Some(waker)) = before {
            waker.wake();
        }
    }
}

/// A call under way; dropping it ends it.
pub(super) struct Call {
    answer: Arc<Answer>,
    cancel: CancelToken,
    _guard: CancelGuard,
}

impl Call {
    /// Its results once they are there, as a function gives them that returns what it is given.
    pub(super) fn poll(&mut self, waker: &Waker) -> Poll<Result<Vec<Tensor>>> {
        let mut state = self.answer.lock();
        match std::mem::replace(&mut *state, State::Taken) {
            State::Came(result) => Poll::Ready(result),
            State::Waits(_) => {
                *state = State::Waits(Some(waker.clone()));
                Poll::Pending
            }
            State::Taken => Poll::Ready(Err(cancelled!("the call has ended"))),
        }
    }

    /// Whether its results are there.
    pub(super) fn is_done(&self) -> bool {
        matches!(&*self.answer.lock(), State::Came(_))
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let before = std::mem::replace(&mut *self.answer.lock(), State::Taken);
        if let State::Waits(_) = before {
            self.cancel
                .cancel(cancelled!("the element is no longer wanted"));
        }
    }
}

/// What a function's results mean for a stage with one element for each of its input's: a function ends the sequence with
/// OUT_OF_RANGE, unless the number of elements is to be kept.
pub(super) fn mapped(result: Result<Element>, keeps_cardinality: bool) -> Result<Option<Element>> {
    match result {
        Ok(element) => Ok(Some(element)),
        Err(status) if status.code() == Code::OutOfRange && keeps_cardinality => {
            Err(invalid_argument!(
                "Function invocation produced OutOfRangeError: {}",
                status.message()
            ))
        }
        Err(status) if status.code() == Code::OutOfRange => Ok(None),
        Err(status) => Err(status),
    }
}

/// The truth that a predicate returned.
pub(super) fn truth(results: &[Tensor]) -> Option<bool> {
    match results {
        [one] if one.dtype() == DType::Bool => match one.slice::<bool>() {
            Ok([truth]) => Some(*truth),
            _ => None,
        },
        _ => None,
    }
}

/// The dataset that a function returned.
pub(super) fn returned_dataset(results: &[Tensor]) -> Result<Dataset> {
    match results {
        [one] if one.dtype() == DType::Variant && one.rank() == 0 => Dataset::of(one),
        _ => Err(invalid_argument!(
            "Function must return a single scalar of dtype DT_VARIANT."
        )),
    }
}
