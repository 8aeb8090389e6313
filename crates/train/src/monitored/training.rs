//! [`MonitoredTrainingSession`]: a monitored session with the usual hooks.

use std::time::Duration;

use tensorfleet_client::{Graph, Result, SessionOptions};
use tensorfleet_proto::ConfigProto;

use super::creator::{ChiefSessionCreator, WorkerSessionCreator};
use super::lock::ChiefLock;
use super::session::{MonitoredSession, MonitoredSessionOptions};
use crate::hooks::{
    CheckpointListener, CheckpointSaverHook, SessionRunHook, StepCounterHook, SummarySaverHook,
};
use crate::scaffold::Scaffold;
use crate::session_manager::Start;

/// How often something is done.
#[derive(Clone, Copy, Debug)]
enum Every {
    Never,
    Time(Duration),
    Steps(i64),
}

/// A training session in the making: checkpoints, summaries and recovery with one call.
///
/// The chief restores or initialises, saves and writes summaries; workers wait for it. All of them come
/// back when a task was lost.
///
/// ```
/// use tensorfleet_client::{Graph, init};
/// use tensorfleet_train::{MonitoredTrainingSession, StopAtStepHook, get_or_create_global_step};
///
/// let dir = tempfile::tempdir().unwrap();
/// let g = Graph::new();
/// let step = get_or_create_global_step(&g)?;
/// let w = g.variable("w", &[]).initializer(init::zeros()).build();
/// let train = g.group("train", [
///     &step.assign_add(&g.constant(1i64)),
///     &w.assign_add(&g.constant(0.5f32)),
/// ]);
///
/// let mut session = MonitoredTrainingSession::new(&g)
///     .checkpoint_dir(dir.path().to_str().unwrap())
///     .hook(StopAtStepHook::at(10))
///     .start()?;
/// let mut last = 0.0;
/// while !session.should_stop() {
///     session.run(&train)?;
///     last = session.raw_session()?.run(&w)?.to_scalar::<f32>()?;
/// }
/// session.close()?;
/// assert_eq!(last, 5.0);
/// assert!(dir.path().join("model.ckpt-10.index").exists());
/// # Ok::<(), tensorfleet_client::Status>(())
/// ```
#[must_use = "nothing happens before `start`"]
pub struct MonitoredTrainingSession {
    graph: Graph,
    options: SessionOptions,
    is_chief: bool,
    checkpoint_dir: Option<String>,
    checkpoint_path: Option<String>,
    summary_dir: Option<String>,
    scaffold: Scaffold,
    hooks: Vec<Box<dyn SessionRunHook>>,
    chief_only_hooks: Vec<Box<dyn SessionRunHook>>,
    listeners: Vec<Box<dyn CheckpointListener>>,
    save_checkpoint: Every,
    save_summaries: Every,
    log_steps: Every,
    max_wait: Duration,
    monitored: MonitoredSessionOptions,
}

impl MonitoredTrainingSession {
    /// In this process, as the chief, without a directory.
    pub fn new(graph: &Graph) -> MonitoredTrainingSession {
        MonitoredTrainingSession {
            graph: graph.clone(),
            options: SessionOptions::default(),
            is_chief: true,
            checkpoint_dir: None,
            checkpoint_path: None,
            summary_dir: None,
            scaffold: Scaffold::new(),
            hooks: Vec::new(),
            chief_only_hooks: Vec::new(),
            listeners: Vec::new(),
            save_checkpoint: Every::Time(Duration::from_secs(600)),
            save_summaries: Every::Steps(100),
            log_steps: Every::Steps(100),
            max_wait: Duration::from_secs(7200),
            monitored: MonitoredSessionOptions::default(),
        }
    }

    /// The server to open the session on, `grpc://host:port`; usually the task's own.
    pub fn target(mut self, target: &str) -> Self {
        target.clone_into(&mut self.options.target);
        self
    }

    /// Whether this task restores, initialises and saves.
    pub fn is_chief(mut self, is_chief: bool) -> Self {
        self.is_chief = is_chief;
        self
    }

    /// Where checkpoints lie: the newest is restored, new ones are saved.
    pub fn checkpoint_dir(mut self, dir: &str) -> Self {
        self.checkpoint_dir = Some(dir.to_owned());
        self
    }

    /// Restores this checkpoint instead of the directory's newest.
    pub fn checkpoint_path(mut self, path: &str) -> Self {
        self.checkpoint_path = Some(path.to_owned());
        self
    }

    /// Where event files go, if not beside the checkpoints.
    pub fn summary_dir(mut self, dir: &str) -> Self {
        self.summary_dir = Some(dir.to_owned());
        self
    }

    /// The nodes around the model.
    pub fn scaffold(mut self, scaffold: Scaffold) -> Self {
        self.scaffold = scaffold;
        self
    }

    /// A hook.
    pub fn hook(mut self, hook: impl SessionRunHook + 'static) -> Self {
        self.hooks.push(Box::new(hook));
        self
    }

    /// A hook of the chief alone.
    pub fn chief_only_hook(mut self, hook: impl SessionRunHook + 'static) -> Self {
        self.chief_only_hooks.push(Box::new(hook));
        self
    }

    /// Somebody who wants to know of checkpoints.
    pub fn checkpoint_listener(mut self, listener: impl CheckpointListener + 'static) -> Self {
        self.listeners.push(Box::new(listener));
        self
    }

    /// Saves every so much time; ten minutes by default.
    pub fn save_checkpoint_every(mut self, time: Duration) -> Self {
        self.save_checkpoint = Every::Time(time);
        self
    }

    /// Saves every so many steps; 0 for never.
    pub fn save_checkpoint_steps(mut self, steps: i64) -> Self {
        self.save_checkpoint = every_steps(steps);
        self
    }

    /// Writes summaries every so much time.
    pub fn save_summaries_every(mut self, time: Duration) -> Self {
        self.save_summaries = Every::Time(time);
        self
    }

    /// Writes summaries every so many steps, 100 by default; 0 for never.
    pub fn save_summaries_steps(mut self, steps: i64) -> Self {
        self.save_summaries = every_steps(steps);
        self
    }

    /// Measures steps per second every so many steps, 100 by default; 0 for never.
    pub fn log_step_count_steps(mut self, steps: i64) -> Self {
        self.log_steps = every_steps(steps);
        self
    }

    /// The session's config.
    pub fn config(mut self, config: ConfigProto) -> Self {
        self.options.config = config;
        self
    }

    /// A bearer token for servers that want one.
    pub fn token(mut self, token: &str) -> Self {
        self.options.token = Some(token.to_owned());
        self
    }

    /// How long a session waits for the servers of its cluster, and a worker for its chief; two hours by default.
    pub fn max_wait(mut self, time: Duration) -> Self {
        self.max_wait = time;
        self
    }

    /// How long threads may take to stop at the end; ten seconds by default.
    pub fn stop_grace(mut self, time: Duration) -> Self {
        self.monitored.stop_grace = time;
        self
    }

    /// Whether a new session is opened when a task was lost; it is by default.
    pub fn recover(mut self, recover: bool) -> Self {
        self.monitored.recover = recover;
        self
    }

    /// Opens the session.
    pub fn start(mut self) -> Result<MonitoredSession> {
        if !self.is_chief {
            let creator =
                WorkerSessionCreator::new(&self.graph, self.scaffold, self.options, self.max_wait);
            return MonitoredSession::new(&self.graph, creator, self.hooks, self.monitored);
        }
        self.options.timeout = Some(self.max_wait);
        let mut hooks = std::mem::take(&mut self.chief_only_hooks);
        self.add_chief_hooks(&mut hooks)?;
        hooks.append(&mut self.hooks);
        let lock = match &self.checkpoint_dir {
            Some(dir) => {
                // Made first: the lock lies in it. Who cannot make it is told by the hook that saves.
                let _ = tensorfleet_checkpoint::fs::for_path(dir)?.create_dir_all(dir);
                ChiefLock::take(dir)?
            }
            None => None,
        };
        let start = Start {
            checkpoint_dir: self.checkpoint_dir,
            checkpoint_path: self.checkpoint_path,
        };
        let creator = ChiefSessionCreator::new(&self.graph, self.scaffold, self.options, start);
        let mut session = MonitoredSession::new(&self.graph, creator, hooks, self.monitored)?;
        session.lock = lock;
        Ok(session)
    }

    fn add_chief_hooks(&mut self, hooks: &mut Vec<Box<dyn SessionRunHook>>) -> Result<()> {
        let summary_dir = self
            .summary_dir
            .clone()
            .or_else(|| self.checkpoint_dir.clone());
        if let Some(dir) = &summary_dir {
            match self.log_steps {
                Every::Never => {}
                Every::Steps(steps) => {
                    hooks.push(Box::new(
                        StepCounterHook::every_steps(steps)?.output_dir(dir),
                    ));
                }
                Every::Time(time) => {
                    hooks.push(Box::new(StepCounterHook::every(time).output_dir(dir)));
                }
            }
            match self.save_summaries {
                Every::Never => {}
                Every::Steps(steps) => {
                    hooks.push(Box::new(SummarySaverHook::every_steps(dir, steps)?));
                }
                Every::Time(time) => hooks.push(Box::new(SummarySaverHook::every(dir, time))),
            }
        }
        if let Some(dir) = &self.checkpoint_dir {
            let mut hook = match self.save_checkpoint {
                Every::Never => return Ok(()),
                Every::Steps(steps) => {
                    CheckpointSaverHook::every_steps(dir, steps, &self.scaffold)?
                }
                Every::Time(time) => CheckpointSaverHook::every(dir, time, &self.scaffold),
            };
            for listener in self.listeners.drain(..) {
                hook = hook.boxed_listener(listener);
            }
            hooks.push(Box::new(hook));
        }
        Ok(())
    }
}

fn every_steps(steps: i64) -> Every {
    if steps == 0 {
        Every::Never
    } else {
        Every::Steps(steps)
    }
}
