//! [`MonitoredSession`]: hooks beside each run, and recovery when a task is lost.

use std::time::Duration;

use tensorfleet_client::{
    Code, Fetch, FetchList, Fetched, Graph, Output, Result, RunOptions, Session, Status, Tensor,
};
use tensorfleet_status::{failed_precondition, invalid_argument};

use super::creator::SessionCreator;
use super::lock::ChiefLock;
use crate::coordinator::Coordinator;
use crate::hooks::{RunArgs, RunContext, RunValues, SessionRunHook};
use crate::queue_runner::queue_runners;
use crate::session_manager::is_lost;

/// The pause before a session is opened again, at first.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// The longest pause.
const LAST_PAUSE: Duration = Duration::from_secs(2);

/// What a monitored session is made with.
#[derive(Clone, Copy, Debug)]
pub struct MonitoredSessionOptions {
    /// How long threads may take to stop when the session closes.
    pub stop_grace: Duration,
    /// Whether a new session is opened when a task was lost.
    pub recover: bool,
}

impl Default for MonitoredSessionOptions {
    fn default() -> MonitoredSessionOptions {
        MonitoredSessionOptions {
            stop_grace: Duration::from_secs(10),
            recover: true,
        }
    }
}

/// A session with hooks. When a task is lost (ABORTED, UNAVAILABLE) it opens a new session, which begins at
/// the last checkpoint, and runs the step again.
///
/// ```
/// use tensorfleet_client::{Graph, init};
/// use tensorfleet_train::MonitoredTrainingSession;
///
/// let g = Graph::new();
/// let w = g.variable("w", &[]).initializer(init::ones()).build();
/// let double = w.assign(w.read() * 2.0);
/// let mut session = MonitoredTrainingSession::new(&g).start()?;
/// session.run(&double)?;
/// assert_eq!(session.run(&w)?.to_scalar::<f32>()?, 2.0);
/// assert_eq!(session.recoveries(), 0);
/// session.close()?;
/// # Ok::<(), tensorfleet_client::Status>(())
/// ```
pub struct MonitoredSession {
    graph: Graph,
    creator: Box<dyn SessionCreator>,
    hooks: Vec<Box<dyn SessionRunHook>>,
    options: MonitoredSessionOptions,
    live: Option<Live>,
    /// Ended by an error: hooks do not see the end.
    failed: bool,
    stopped: bool,
    /// Hooks have seen the end.
    ended: bool,
    recoveries: u32,
    pub(super) lock: Option<ChiefLock>,
}

/// The session that is open now.
struct Live {
    session: Session,
    coordinator: Coordinator,
}

impl Live {
    fn close(self, grace: Duration) -> Result<()> {
        self.coordinator.request_stop();
        // Closing cancels what threads wait for. A lost server has nothing to close.
        let _ = self.session.close_within(grace);
        self.coordinator.join(grace)
    }
}

impl MonitoredSession {
    /// Lets hooks begin, then opens the first session.
    pub fn new(
        graph: &Graph,
        creator: impl SessionCreator + 'static,
        hooks: Vec<Box<dyn SessionRunHook>>,
        options: MonitoredSessionOptions,
    ) -> Result<MonitoredSession> {
        let mut monitored = MonitoredSession {
            graph: graph.clone(),
            creator: Box::new(creator),
            hooks,
            options,
            live: None,
            failed: false,
            stopped: false,
            ended: false,
            recoveries: 0,
            lock: None,
        };
        for hook in &mut monitored.hooks {
            hook.begin(graph)?;
        }
        graph.check()?;
        monitored.open()?;
        Ok(monitored)
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The session that is open now, for runs without hooks and without recovery.
    pub fn raw_session(&self) -> Result<&Session> {
        self.live()
            .map(|live| &live.session)
            .ok_or_else(|| failed_precondition!("the session is closed"))
    }

    /// How often a session was opened again after a task was lost.
    pub fn recoveries(&self) -> u32 {
        self.recoveries
    }

    /// Whether a hook or an error asked to end training.
    pub fn should_stop(&mut self) -> bool {
        if self.stopped || self.failed {
            return true;
        }
        let Some(live) = &self.live else {
            return false;
        };
        if !live.coordinator.should_stop() {
            return false;
        }
        // A thread that lost its server is no reason to end: the next run opens a new session.
        match live.coordinator.take_error() {
            Some(status) if self.options.recover && is_lost(status.code()) => {
                self.abandon(&status);
                false
            }
            Some(status) => {
                live.coordinator.request_stop_with(status);
                true
            }
            None => true,
        }
    }

    /// Runs a step with all hooks.
    pub fn run<F: Fetch>(&mut self, fetch: F) -> Result<F::Value> {
        self.run_fed(&[], fetch)
    }

    /// Runs a step with these values in place of the tensors that they feed.
    pub fn run_fed<F: Fetch>(&mut self, feeds: &[(&Output, Tensor)], fetch: F) -> Result<F::Value> {
        let mut list = FetchList::default();
        fetch.add_to(&mut list);
        let feeds: Vec<(String, Tensor)> = feeds
            .iter()
            .map(|(tensor, value)| (tensor.name(), value.clone()))
            .collect();
        let values = self.run_list(&feeds, &list)?;
        fetch.value(&mut Fetched::new(values))
    }

    fn run_list(&mut self, feeds: &[(String, Tensor)], list: &FetchList) -> Result<Vec<Tensor>> {
        if self.failed {
            return Err(failed_precondition!("the session ended with an error"));
        }
        loop {
            if self.live.is_none() {
                self.open()?;
            }
            match self.run_once(feeds, list) {
                Ok(values) => return Ok(values),
                Err(status) if self.options.recover && is_lost(status.code()) => {
                    self.abandon(&status);
                }
                Err(status) => {
                    // The end of input ends training well: hooks see the end.
                    self.stopped = true;
                    self.failed = status.code() != Code::OutOfRange;
                    return Err(status);
                }
            }
        }
    }

    fn run_once(&mut self, feeds: &[(String, Tensor)], list: &FetchList) -> Result<Vec<Tensor>> {
        let Some(live) = &self.live else {
            return Err(failed_precondition!("the session is closed"));
        };
        if let Some(status) = live.coordinator.take_error() {
            return Err(status);
        }
        let mut context = RunContext::new(&live.session);
        let mut all = Joined::new(feeds, list);
        for hook in &mut self.hooks {
            all.add(hook.before_run(&context)?)?;
        }
        let ran = live.session.run_list(&all.options, &all.feeds, &all.list);
        // A thread that failed has closed the session: its error tells why.
        let (values, metadata) = ran.map_err(|status| match is_lost(status.code()) {
            true => status,
            false => live.coordinator.take_error().unwrap_or(status),
        })?;
        let mut values = values.into_iter();
        let own: Vec<Tensor> = values.by_ref().take(list.tensors.len()).collect();
        let theirs = all.counts.iter().map(|count| {
            let theirs = values.by_ref().take(*count).collect();
            RunValues::new(theirs, &metadata)
        });
        let theirs: Vec<RunValues<'_>> = theirs.collect();
        for last in [false, true] {
            let hooks = self.hooks.iter_mut().zip(&theirs);
            for (hook, values) in hooks.filter(|(hook, _)| hook.after_others() == last) {
                hook.after_run(&mut context, values)?;
            }
        }
        if context.stop_requested() {
            // The end belongs to the step that asked for it: a task lost before the last checkpoint is
            // written is recovered from like any other, and training goes on.
            for hook in &mut self.hooks {
                hook.stopping(&live.session)?;
            }
            end_all(&mut self.hooks, &live.session)?;
            self.ended = true;
            self.stopped = true;
            live.coordinator.request_stop();
        }
        Ok(own)
    }

    fn live(&self) -> Option<&Live> {
        self.live.as_ref()
    }

    /// Opens a session, again and again while tasks are lost.
    fn open(&mut self) -> Result<()> {
        let mut pause = FIRST_PAUSE;
        loop {
            match self.try_open() {
                Ok(live) => {
                    self.live = Some(live);
                    return Ok(());
                }
                Err(status) if self.options.recover && is_lost(status.code()) => {
                    tracing::warn!(
                        "no session yet, trying again in {pause:?}: {}",
                        status.message()
                    );
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(LAST_PAUSE);
                }
                Err(status) => {
                    self.failed = true;
                    return Err(status);
                }
            }
        }
    }

    fn try_open(&mut self) -> Result<Live> {
        let live = Live {
            session: self.creator.create_session()?,
            coordinator: Coordinator::new(),
        };
        let started = (|| {
            for runner in queue_runners(&self.graph)? {
                runner.start(&live.session, &live.coordinator)?;
            }
            for hook in &mut self.hooks {
                hook.after_create_session(&live.session, &live.coordinator)?;
            }
            for hook in &mut self.hooks {
                hook.before_first_run(&live.session, &live.coordinator)?;
            }
            Ok(())
        })();
        match started {
            Ok(()) => Ok(live),
            Err(status) => {
                // What it says is the echo of the first error.
                let _ = live.close(self.options.stop_grace);
                Err(status)
            }
        }
    }

    /// Leaves a session whose task was lost.
    fn abandon(&mut self, status: &Status) {
        tracing::warn!(
            "An error was raised. This may be due to a preemption in a connected worker or parameter server. The current session will be closed and a new session will be created. Error: {}",
            status.message()
        );
        self.recoveries += 1;
        if let Some(live) = self.live.take() {
            let _ = live.close(self.options.stop_grace);
        }
    }

    /// Ends training: hooks see the end, threads stop, the session closes. The first error of any of them.
    pub fn close(mut self) -> Result<()> {
        let ended = self.end();
        let closed = self
            .live
            .take()
            .map_or(Ok(()), |live| live.close(self.options.stop_grace));
        self.lock = None;
        ended.and(closed)
    }

    fn end(&mut self) -> Result<()> {
        match &self.live {
            Some(live) if !self.failed && !self.ended => end_all(&mut self.hooks, &live.session),
            _ => Ok(()),
        }
    }
}

/// Lets all hooks see the end; the first error of any of them.
fn end_all(hooks: &mut [Box<dyn SessionRunHook>], session: &Session) -> Result<()> {
    let mut first = Ok(());
    for hook in hooks {
        let ended = hook.end(session);
        first = first.and(ended);
    }
    first
}

impl Drop for MonitoredSession {
    fn drop(&mut self) {
        if let Some(live) = self.live.take() {
            // Nobody is there to be told.
            let _ = live.close(self.options.stop_grace);
        }
    }
}

/// The program's run and all hooks' additions as one.
struct Joined {
    list: FetchList,
    feeds: Vec<(String, Tensor)>,
    options: RunOptions,
    /// How many tensors each hook fetches.
    counts: Vec<usize>,
}

impl Joined {
    fn new(feeds: &[(String, Tensor)], list: &FetchList) -> Joined {
        Joined {
            list: list.clone(),
            feeds: feeds.to_vec(),
            options: RunOptions::default(),
            counts: Vec::new(),
        }
    }

    fn add(&mut self, args: RunArgs) -> Result<()> {
        self.counts.push(args.fetches.tensors.len());
        self.list.tensors.extend(args.fetches.tensors);
        self.list.targets.extend(args.fetches.targets);
        for (name, value) in args.feeds {
            if self.feeds.iter().any(|(known, _)| *known == name) {
                return Err(invalid_argument!(
                    "tensor {name} is fed twice, by a hook and by the program or another hook"
                ));
            }
            self.feeds.push((name, value));
        }
        self.options.trace |= args.options.trace;
        self.options.timeout = self.options.timeout.max(args.options.timeout);
        Ok(())
    }
}
