//! Hooks: what happens beside a training step.
//!
//! | hook | does |
//! |---|---|
//! | [`StopAtStepHook`] | ends training at a global step |
//! | [`CheckpointSaverHook`] | saves checkpoints, and tells listeners |
//! | [`StepCounterHook`] | measures steps per second |
//! | [`SummarySaverHook`] | writes summaries to event files |
//! | [`LoggingTensorHook`] | logs the values of tensors |
//! | [`NanTensorHook`] | ends training when the loss is not a number |
//! | [`GlobalStepWaiterHook`] | starts a worker later than others |
//! | [`FinalOpsHook`] | evaluates tensors at the end |
//! | [`FeedFnHook`] | feeds values that a function makes |
//! | [`ProfilerHook`] | records the timeline of a step now and then |

mod checkpoint_saver;
mod feed;
mod final_ops;
mod logging_tensor;
mod nan_tensor;
mod profiler;
mod step;
mod step_counter;
mod stop_at_step;
mod summary_saver;
mod timer;
mod waiter;

pub use checkpoint_saver::{CheckpointListener, CheckpointSaverHook};
pub use feed::FeedFnHook;
pub use final_ops::{FinalOps, FinalOpsHook};
pub use logging_tensor::LoggingTensorHook;
pub use nan_tensor::NanTensorHook;
pub use profiler::ProfilerHook;
pub use step_counter::StepCounterHook;
pub use stop_at_step::StopAtStepHook;
pub use summary_saver::SummarySaverHook;
pub use timer::SecondOrStepTimer;
pub use waiter::GlobalStepWaiterHook;

use step::StepReader;

use tensorfleet_client::{Fetch, FetchList, Fetched, Graph, Output, RunOptions, Session, Tensor};
use tensorfleet_proto as pb;
use tensorfleet_status::Result;

use crate::coordinator::Coordinator;

/// Something that happens beside each run of a monitored session. All methods do nothing by default.
///
/// ```
/// use tensorfleet_train::{RunContext, RunValues, SessionRunHook};
/// use tensorfleet_client::Result;
///
/// /// Counts runs and stops after three.
/// struct Three(u32);
///
/// impl SessionRunHook for Three {
///     fn after_run(&mut self, context: &mut RunContext<'_>, _: &RunValues<'_>) -> Result<()> {
///         self.0 += 1;
///         if self.0 == 3 {
///             context.request_stop();
///         }
///         Ok(())
///     }
/// }
/// ```
pub trait SessionRunHook: Send {
    /// Once, while nodes can still be added to the graph.
    fn begin(&mut self, _graph: &Graph) -> Result<()> {
        Ok(())
    }

    /// After a session was opened and its variables have values; again after each recovery.
    fn after_create_session(
        &mut self,
        _session: &Session,
        _coordinator: &Coordinator,
    ) -> Result<()> {
        Ok(())
    }

    /// After every hook has seen the new session, and has waited for what it waits for.
    fn before_first_run(&mut self, _session: &Session, _coordinator: &Coordinator) -> Result<()> {
        Ok(())
    }

    /// Before each run: what to fetch and feed besides what the program asks for.
    fn before_run(&mut self, _context: &RunContext<'_>) -> Result<RunArgs> {
        Ok(RunArgs::default())
    }

    /// After each run that succeeded, with what this hook asked for.
    fn after_run(&mut self, _context: &mut RunContext<'_>, _values: &RunValues<'_>) -> Result<()> {
        Ok(())
    }

    /// Whether [`after_run`](Self::after_run) waits for that of other hooks: what one of them refuses is not saved.
    fn after_others(&self) -> bool {
        false
    }

    /// After a run with which a hook asked to stop. A lost task (ABORTED, UNAVAILABLE) lets training go on instead.
    fn stopping(&mut self, _session: &Session) -> Result<()> {
        Ok(())
    }

    /// At the end, unless training ended with an error: with the run that asked to stop, or when the session is
    /// closed before. Again if a task was lost meanwhile.
    fn end(&mut self, _session: &Session) -> Result<()> {
        Ok(())
    }
}

/// What a hook adds to a run.
#[derive(Clone, Debug, Default)]
pub struct RunArgs {
    pub(crate) fetches: FetchList,
    pub(crate) feeds: Vec<(String, Tensor)>,
    pub(crate) options: RunOptions,
}

impl RunArgs {
    /// Fetches this too.
    pub fn fetch(fetch: impl Fetch) -> RunArgs {
        RunArgs::default().and_fetch(fetch)
    }

    /// Fetches this after what it fetches already.
    #[must_use]
    pub fn and_fetch(mut self, fetch: impl Fetch) -> RunArgs {
        fetch.add_to(&mut self.fetches);
        self
    }

    /// Feeds this too.
    #[must_use]
    pub fn feed(mut self, tensor: &Output, value: Tensor) -> RunArgs {
        self.feeds.push((tensor.name(), value));
        self
    }

    /// Records the timeline of the run.
    #[must_use]
    pub fn trace(mut self) -> RunArgs {
        self.options.trace = true;
        self
    }
}

/// The run a hook is called for.
pub struct RunContext<'a> {
    session: &'a Session,
    stop: bool,
}

impl<'a> RunContext<'a> {
    pub(crate) fn new(session: &'a Session) -> RunContext<'a> {
        RunContext {
            session,
            stop: false,
        }
    }

    /// The session underneath, for runs of the hook's own.
    pub fn session(&self) -> &'a Session {
        self.session
    }

    /// Ends training after this run.
    pub fn request_stop(&mut self) {
        self.stop = true;
    }

    pub(crate) fn stop_requested(&self) -> bool {
        self.stop
    }
}

/// What a run gave to one hook.
pub struct RunValues<'a> {
    values: Vec<Tensor>,
    metadata: &'a pb::RunMetadata,
}

impl<'a> RunValues<'a> {
    pub(crate) fn new(values: Vec<Tensor>, metadata: &'a pb::RunMetadata) -> RunValues<'a> {
        RunValues { values, metadata }
    }

    /// The fetched values, in the order of the request.
    pub fn tensors(&self) -> &[Tensor] {
        &self.values
    }

    /// The fetched values in the form of what was fetched.
    pub fn of<F: Fetch>(&self, fetch: F) -> Result<F::Value> {
        fetch.value(&mut Fetched::new(self.values.clone()))
    }

    /// What the run told, if some hook let it be traced.
    pub fn metadata(&self) -> &'a pb::RunMetadata {
        self.metadata
    }
}
