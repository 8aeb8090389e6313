//! [`FunctionRuntime`]: how kernels such as `If`, `While` and `PartitionedCall` call functions.

use std::sync::Arc;

use tensorfleet_status::{Result, invalid_argument};
use tensorfleet_tensor::{DType, Tensor};

use crate::attr::FuncRef;
use crate::env::StepEnv;

/// Called once with the results of a function.
pub type CallDone = Box<dyn FnOnce(Result<Vec<Tensor>>) + Send>;

/// Runs functions of the library that came with the graph.
pub trait FunctionRuntime: Send + Sync {
    /// Calls `func` within the step of `env`; `done` may run on any thread, also before this returns.
    fn call(&self, func: &FuncRef, args: Vec<Tensor>, env: &Arc<StepEnv>, done: CallDone);

    /// Calls `func` on the device of another task, with results of these types.
    fn call_on(
        &self,
        device: &str,
        func: &FuncRef,
        _args: Vec<Tensor>,
        _results: &[DType],
        env: &Arc<StepEnv>,
        done: CallDone,
    ) {
        done(Err(invalid_argument!(
            "function {} cannot be called on {device} from {}: there are no other tasks",
            func.name,
            env.device.name
        )));
    }

    /// The same functions with kernels of their own: for what outlives the session whose graph they are in, such as an
    /// iterator.
    fn apart(&self) -> Arc<dyn FunctionRuntime>;
}
