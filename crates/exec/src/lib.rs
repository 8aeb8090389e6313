//! Compiles graphs to plans and runs them.
//!
//! A [`Plan`] is a graph turned into dense tables once. A step of it is owned by one thread at a
//! time, the *driver*: pending counts, values and frames need no locks and no atomics, because only
//! the driver touches them. Cheap kernels run on the driver itself; expensive ones go to the pool
//! while it has other work; waiting ones hold no thread at all. Results of the latter two come back
//! through the step's inbox. `docs/decisions/0007-one-owner-executor.md` says why.
//!
//! Everything here is synchronous; pool and clock come in with the step's environment.

mod frames;
mod functions;
mod kernels;
mod plan;
mod run;
mod state;
mod stats;
mod step;

pub use functions::{Functions, Optimize};
pub use kernels::KernelCache;
pub use plan::{Plan, PlanOptions};
pub use stats::{NodeStat, StepReport};
pub use step::{StepDone, StepView, lend, resume_here, start};
