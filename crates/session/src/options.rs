//! What a session and a run can be told.

use std::sync::Arc;
use std::time::Duration;

use tensorfleet_kernel::{Clock, Device, SystemClock};
use tensorfleet_math::par::Pool;

/// What a session is made with.
#[derive(Clone)]
pub struct SessionOptions {
    /// Threads for kernels; 0 for as many as there are cores.
    pub threads: usize,
    /// Whether graphs are rewritten before they run.
    pub optimize: bool,
    /// The device to run on; by default a CPU of its own that nobody shares.
    pub device: Option<Arc<Device>>,
    /// Threads shared with others, instead of `threads` of its own.
    pub pool: Option<Arc<Pool>>,
    /// The time.
    pub clock: Arc<dyn Clock>,
}

impl Default for SessionOptions {
    fn default() -> SessionOptions {
        SessionOptions {
            threads: 0,
            optimize: true,
            device: None,
            pool: None,
            clock: Arc::new(SystemClock::default()),
        }
    }
}

/// What one run is made with.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// After this time the step is cancelled and fails with DEADLINE_EXCEEDED.
    pub timeout: Option<Duration>,
    /// Whether to record times and outputs of every node.
    pub trace: bool,
}
