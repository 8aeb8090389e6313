//! Monitored sessions: sessions with hooks that outlive lost tasks.
//!
//! | file | has |
//! |---|---|
//! | `creator` | how a chief and a worker open a session |
//! | `session` | [`MonitoredSession`]: hooks beside each run, recovery |
//! | `training` | [`MonitoredTrainingSession`]: all of it with the usual hooks |
//! | `lock` | one chief per checkpoint directory |

mod creator;
mod lock;
mod session;
mod training;

pub use creator::{ChiefSessionCreator, SessionCreator, WorkerSessionCreator};
pub use session::{MonitoredSession, MonitoredSessionOptions};
pub use training::MonitoredTrainingSession;
