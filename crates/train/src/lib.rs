//! Training: what stands between a graph and a trained model.
//!
//! | module | has |
//! |---|---|
//! | `global_step` | the counter of all updates |
//! | `optimizer` | gradients into updates |
//! | `clip`, [`schedule`], `moving_average` | what is done to gradients, learning rates, variables |
//! | `device_setter`, `towers` | models over several tasks and devices |
//! | `sync_replicas` | workers that step together |
//! | `saver` | variables into checkpoints and back |
//! | `scaffold`, `session_manager` | the nodes around a model, and sessions whose variables have values |
//! | `coordinator`, `queue_runner` | threads that stop together, threads that fill queues |
//! | [`hooks`] | what happens beside a step |
//! | `monitored` | sessions with hooks that outlive lost tasks |
//! | `writer` | event files |

mod clip;
mod coordinator;
mod device_setter;
mod global_step;
pub mod hooks;
mod monitored;
mod moving_average;
mod optimizer;
mod queue_runner;
mod saver;
mod scaffold;
pub mod schedule;
mod session_manager;
mod sync_replicas;
mod towers;
mod writer;

pub use clip::{clip_by_global_norm, clip_by_norm, clip_by_this_norm, clip_by_value, global_norm};
pub use coordinator::Coordinator;
pub use device_setter::{
    GreedyLoadBalancing, PsStrategy, RandomByName, ReplicaDeviceSetter, ReplicaDevices, RoundRobin,
    STANDARD_PS_OPS, byte_size,
};
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
pub use moving_average::ExponentialMovingAverage;
pub use optimizer::{
    Adadelta, Adagrad, AdagradDA, Adam, Ftrl, GradAndVar, GradientDescent, Hyper, Minimize,
    Momentum, Optimizer, ProximalAdagrad, ProximalGradientDescent, RmsProp, RuleOptimizer,
};
pub use queue_runner::{QueueRunner, queue_runners};
pub use saver::{Saver, SaverBuilder, export_meta_graph, latest_checkpoint};
pub use scaffold::{FinalScaffold, Scaffold, report_uninitialized};
pub use session_manager::{SessionManager, Start};
pub use sync_replicas::{SyncReplicas, SyncReplicasHook};
pub use towers::{average_gradients, towers};
pub use writer::FileWriter;
