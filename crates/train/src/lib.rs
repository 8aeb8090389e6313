//! Training: what stands between a graph and a trained model.
//!
//! | module | has |
//! |---|---|
//! | `global_step` | the counter of all updates |
//! | `saver` | variables into checkpoints and back |
//! | `scaffold`, `session_manager` | the nodes around a model, and sessions whose variables have values |
//! | `coordinator`, `queue_runner` | threads that stop together, threads that fill queues |
//! | [`hooks`] | what happens beside a step |
//! | `monitored` | sessions with hooks that outlive lost tasks |
//! | `writer` | event files |

mod coordinator;
mod global_step;
pub mod hooks;
mod monitored;
mod queue_runner;
mod saver;
mod scaffold;
mod session_manager;
mod writer;

pub use coordinator::Coordinator;
pub use global_step::{create_global_step, get_global_step, get_or_create_global_step};
pub use hooks::{
    CheckpointListener, CheckpointSaverHook, FeedFnHook, FinalOps, FinalOpsHook,
    GlobalStepWaiterHook, LoggingTensorHook, NanTensorHook, ProfilerHook, RunArgs, RunContext,
    RunValues, SecondOrStepTimer, SessionRunHook, StepCounterHook, StopAtStepHook,
    SummarySaverHook,
};
pub use monitored::{
    ChiefSessionCreator, MonitoredSession, MonitoredSessionOptions, MonitoredTrainingSession,
    SessionCreator, WorkerSessionCreator,
};
pub use queue_runner::{QueueRunner, queue_runners};
pub use saver::{Saver, SaverBuilder, latest_checkpoint};
pub use scaffold::{FinalScaffold, Scaffold, report_uninitialized};
pub use session_manager::{SessionManager, Start};
pub use writer::FileWriter;
