//! [`StepEnv`]: what all kernels of one step share.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tensorfleet_math::par::{Pool, Watched};
use tensorfleet_status::{Result, internal, invalid_argument};
use tensorfleet_tensor::Tensor;

use crate::cancel::CancelToken;
use crate::clock::Clock;
use crate::device::Device;
use crate::function::FunctionRuntime;
use crate::rendezvous::Rendezvous;
use crate::resource::ResourceManager;

/// Which frame and iteration a node runs in: part of rendezvous keys. Top level is `0:0`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct FrameIter {
    /// Hash of the chain of frames, as TensorFlow computes it.
    pub frame_id: u64,
    /// The iteration within the frame.
    pub iteration: i64,
}

/// Arguments and results of a graph that is called: feeds and fetches, or a function's.
#[derive(Default)]
pub struct CallFrame {
    args: Vec<Tensor>,
    depth: usize,
    rets: Mutex<Vec<Option<Tensor>>>,
}

impl CallFrame {
    /// A call with these arguments that returns `results` values.
    pub fn new(args: Vec<Tensor>, results: usize) -> CallFrame {
        CallFrame {
            args,
            depth: 0,
            rets: Mutex::new(vec![None; results]),
        }
    }

    /// As [`CallFrame::new`], for a call from within this one.
    pub fn nested(&self, args: Vec<Tensor>, results: usize) -> CallFrame {
        CallFrame {
            depth: self.depth + 1,
            ..CallFrame::new(args, results)
        }
    }

    /// How many calls this one is within.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Argument `index`.
    pub fn arg(&self, index: usize) -> Result<&Tensor> {
        self.args.get(index).ok_or_else(|| {
            invalid_argument!(
                "argument {index} was not given, there are {}",
                self.args.len()
            )
        })
    }

    /// Stores result `index`.
    pub fn set_ret(&self, index: usize, tensor: Tensor) -> Result<()> {
        let mut rets = self.rets.lock().unwrap_or_else(PoisonError::into_inner);
        match rets.get_mut(index) {
            Some(slot) => *slot = Some(tensor),
            None => {
                return Err(internal!(
                    "result {index} does not exist, there are {}",
                    rets.len()
                ));
            }
        }
        Ok(())
    }

    /// All results so far; `None` where none was stored.
    pub fn take_rets(&self) -> Vec<Option<Tensor>> {
        std::mem::take(&mut *self.rets.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What all kernels of one step share.
pub struct StepEnv {
    /// The step's id, unique among running steps.
    pub step_id: u64,
    /// The device this part runs on.
    pub device: Arc<Device>,
    /// State that outlives the step: the device's, or the session's own.
    pub resources: Arc<ResourceManager>,
    /// State that dies with the step: TensorArrays, stacks.
    pub step_resources: Arc<ResourceManager>,
    /// Where tensors from and to other parts are exchanged.
    pub rendezvous: Arc<dyn Rendezvous>,
    /// Thrown when the step fails or is no longer wanted.
    pub cancel: CancelToken,
    /// Threads for kernels.
    pub pool: Arc<Pool>,
    /// The same for kernels without effects: what they compute is given up once the step is cancelled.
    pub par: Watched<CancelToken>,
    /// Calls functions of the graph's library.
    pub functions: Arc<dyn FunctionRuntime>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Arguments and results of this call.
    pub call_frame: Arc<CallFrame>,
}

impl StepEnv {
    /// The container that holds resources of this step only; they live in `step_resources`.
    pub const STEP_CONTAINER: &'static str = "__per_step";

    /// A copy of this environment with a switch of its own, whose computations are given up at this time of the clock.
    pub fn until(&self, end: Duration) -> StepEnv {
        let cancel = CancelToken::new();
        cancel.end_at(&self.clock, end);
        StepEnv {
            par: Watched::new(self.pool.clone(), cancel.clone()),
            cancel,
            ..self.for_call(self.call_frame.clone())
        }
    }

    /// A copy of this environment for a function called within the step.
    pub fn for_call(&self, call_frame: Arc<CallFrame>) -> StepEnv {
        StepEnv {
            step_id: self.step_id,
            device: self.device.clone(),
            resources: self.resources.clone(),
            step_resources: self.step_resources.clone(),
            rendezvous: self.rendezvous.clone(),
            cancel: self.cancel.clone(),
            pool: self.pool.clone(),
            par: Watched::new(self.pool.clone(), self.cancel.clone()),
            functions: self.functions.clone(),
            clock: self.clock.clone(),
            call_frame,
        }
    }
}
