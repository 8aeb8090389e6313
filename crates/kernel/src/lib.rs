//! What a kernel sees: attributes, inputs and outputs, resources, rendezvous, device, cancellation.
//!
//! A [`Kernel`] computes on the thread that calls it; an [`AsyncKernel`] may answer later and holds no
//! thread while it waits. Both are built once per node from a [`NodeInfo`] and run many times. All
//! they know of the step around them is a [`StepEnv`]. Nothing here knows graphs or executors.

pub mod attr;
pub mod cancel;
mod clock;
mod context;
mod device;
mod device_name;
mod env;
mod function;
mod kernel;
mod rendezvous;
mod resource;
mod value;

pub use attr::{AttrList, AttrValue, Attrs, FuncRef};
pub use cancel::{CancelGuard, CancelToken};
pub use clock::{Clock, SystemClock};
pub use context::{AsyncCtx, KernelCtx, Outcome, Outputs};
pub use device::{Device, DeviceType};
pub use device_name::DeviceName;
pub use env::{CallFrame, FrameIter, StepEnv};
pub use function::{CallDone, FunctionRuntime};
pub use kernel::{AnyKernel, AsyncKernel, Kernel, NodeInfo};
pub use rendezvous::{LocalRendezvous, Received, RecvDone, Rendezvous};
pub use resource::{Resource, ResourceManager};
pub use value::{RefVar, Value};
