//! [`CheckpointSaverHook`]: saves checkpoints, and tells listeners.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tensorfleet_checkpoint::fs;
use tensorfleet_client::{Graph, Session};
use tensorfleet_proto::session_log::SessionStatus;
use tensorfleet_proto::text;
use tensorfleet_status::{Result, failed_precondition};

use super::{RunArgs, RunContext, RunValues, SecondOrStepTimer, SessionRunHook, StepReader};
use crate::coordinator::Coordinator;
use crate::saver::{Saver, latest_checkpoint};
use crate::scaffold::Scaffold;
use crate::writer::{FileWriter, not_writable};

/// Somebody who wants to know of checkpoints.
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use tensorfleet_client::{Graph, Result, Session};
/// use tensorfleet_train::{
///     CheckpointListener, MonitoredTrainingSession, StopAtStepHook, get_or_create_global_step,
/// };
///
/// /// Remembers what was saved.
/// struct Saved(Arc<Mutex<Vec<i64>>>);
///
/// impl CheckpointListener for Saved {
///     fn after_save(&mut self, _: &Session, step: i64, _path: &str) -> Result<bool> {
///         self.0.lock().unwrap().push(step);
///         Ok(false)
///     }
/// }
///
/// let dir = tempfile::tempdir().unwrap();
/// let g = Graph::new();
/// let count = get_or_create_global_step(&g)?.assign_add(&g.constant(1i64));
/// let saved = Arc::default();
/// let mut session = MonitoredTrainingSession::new(&g)
///     .checkpoint_dir(dir.path().to_str().unwrap())
///     .save_checkpoint_steps(10)
///     .checkpoint_listener(Saved(Arc::clone(&saved)))
///     .hook(StopAtStepHook::at(15))
///     .start()?;
/// while !session.should_stop() {
///     session.run(&count)?;
/// }
/// session.close()?;
/// assert_eq!(*saved.lock().unwrap(), [0, 10, 15]);
/// # Ok::<(), tensorfleet_client::Status>(())
/// ```
pub trait CheckpointListener: Send {
    /// Before a checkpoint is written.
    fn before_save(&mut self, _session: &Session, _step: i64) -> Result<()> {
        Ok(())
    }

    /// After it was written to `path`; whether training shall end.
    fn after_save(&mut self, _session: &Session, _step: i64, _path: &str) -> Result<bool> {
        Ok(false)
    }

    /// At the end.
    fn end(&mut self, _session: &Session, _step: i64) -> Result<()> {
        Ok(())
    }
}

/// Saves at the start (unless it just restored the newest), every so often, and at the end, into `<dir>/model.ckpt-<step>`. Writes the graph as
/// `graph.pbtxt` and into event files.
///
/// ```
/// use std::time::Duration;
/// use tensorfleet_client::Graph;
/// use tensorfleet_train::{
///     CheckpointSaverHook, MonitoredTrainingSession, Scaffold, get_or_create_global_step,
/// };
///
/// let dir = tempfile::tempdir().unwrap();
/// let g = Graph::new();
/// let count = get_or_create_global_step(&g)?.assign_add(&g.constant(1i64));
/// let scaffold = Scaffold::new();
/// // What `checkpoint_dir` adds by itself, under another name.
/// let hook = CheckpointSaverHook::every(dir.path().to_str().unwrap(), Duration::from_secs(60), &scaffold)
///     .base_name("line");
/// let mut session = MonitoredTrainingSession::new(&g).scaffold(scaffold).hook(hook).start()?;
/// session.run(&count)?;
/// session.close()?;
/// assert!(dir.path().join("line-1.index").exists());
/// # Ok::<(), tensorfleet_client::Status>(())
/// ```
pub struct CheckpointSaverHook {
    dir: String,
    timer: SecondOrStepTimer,
    saver: Arc<OnceLock<Saver>>,
    listeners: Vec<Box<dyn CheckpointListener>>,
    base_name: String,
    save_graph: bool,
    writer: Option<FileWriter>,
    step: StepReader,
}

impl CheckpointSaverHook {
    /// Every so much time, with the saver of this scaffold.
    pub fn every(dir: &str, time: Duration, scaffold: &Scaffold) -> CheckpointSaverHook {
        CheckpointSaverHook::with(dir, SecondOrStepTimer::every(time), scaffold)
    }

    /// Every so many steps, with the saver of this scaffold.
    pub fn every_steps(dir: &str, steps: i64, scaffold: &Scaffold) -> Result<CheckpointSaverHook> {
        let timer = SecondOrStepTimer::every_steps(steps)?;
        Ok(CheckpointSaverHook::with(dir, timer, scaffold))
    }

    fn with(dir: &str, timer: SecondOrStepTimer, scaffold: &Scaffold) -> CheckpointSaverHook {
        CheckpointSaverHook {
            dir: dir.to_owned(),
            timer,
            saver: scaffold.saver_slot(),
            listeners: Vec::new(),
            base_name: "model.ckpt".to_owned(),
            save_graph: true,
            writer: None,
            step: StepReader::default(),
        }
    }

    /// Tells this listener.
    #[must_use]
    pub fn listener(self, listener: impl CheckpointListener + 'static) -> Self {
        self.boxed_listener(Box::new(listener))
    }

    pub(crate) fn boxed_listener(mut self, listener: Box<dyn CheckpointListener>) -> Self {
        self.listeners.push(listener);
        self
    }

    /// The name before `-<step>`, instead of `model.ckpt`.
    #[must_use]
    pub fn base_name(mut self, name: &str) -> Self {
        name.clone_into(&mut self.base_name);
        self
    }

    /// Whether `graph.pbtxt` is written.
    #[must_use]
    pub fn save_graph_def(mut self, save: bool) -> Self {
        self.save_graph = save;
        self
    }

    fn saver(&self) -> Result<&Saver> {
        let saver = self.saver.get();
        saver.ok_or_else(|| {
            failed_precondition!("the scaffold has no saver: there is nothing to save")
        })
    }

    /// Saves; whether a listener wants training to end.
    fn save(&mut self, session: &Session, step: i64) -> Result<bool> {
        if let Some(last) = self.timer.last_step().filter(|last| step < *last) {
            return Err(failed_precondition!(
                "the global step went from {last} back to {step} while training: somebody initialised or restored the variables beside this chief (a second chief?); nothing was overwritten in {}",
                self.dir
            ));
        }
        for listener in &mut self.listeners {
            listener.before_save(session, step)?;
        }
        let prefix = fs::join(&self.dir, &self.base_name);
        tracing::info!("Saving checkpoints for {step} into {prefix}.");
        let path = self.saver()?.save(session, &prefix, Some(step))?;
        self.timer.triggered(step);
        if let Some(writer) = &self.writer {
            writer.add_session_log(SessionStatus::Checkpoint, &prefix, step)?;
            writer.flush()?;
        }
        let mut stop = false;
        for listener in &mut self.listeners {
            stop |= listener.after_save(session, step, &path)?;
        }
        Ok(stop)
    }

    /// Whether the newest checkpoint of the directory is the one of this step.
    fn is_latest(&self, step: i64) -> bool {
        let path = format!("{}-{step}", fs::join(&self.dir, &self.base_name));
        latest_checkpoint(&self.dir).is_ok_and(|latest| latest.is_some_and(|latest| latest == path))
    }

    fn write_graph(&self, step: i64) -> Result<()> {
        let meta = self.saver()?.meta_graph()?;
        // The MetaGraph has the whole graph: it is not exported a second time.
        let Some(def) = &meta.graph_def else {
            return Ok(());
        };
        if self.save_graph {
            let path = fs::join(&self.dir, "graph.pbtxt");
            fs::for_path(&path)?.write_atomic(&path, text::print(def).as_bytes())?;
        }
        if let Some(writer) = &self.writer {
            writer.add_graph(def)?;
            writer.add_meta_graph(&meta, step)?;
        }
        Ok(())
    }
}

impl SessionRunHook for CheckpointSaverHook {
    fn begin(&mut self, graph: &Graph) -> Result<()> {
        check_writable(&self.dir)?;
        self.writer = Some(FileWriter::open(&self.dir)?);
        self.step.begin(graph)
    }

    fn after_create_session(&mut self, session: &Session, _: &Coordinator) -> Result<()> {
        // A new session may have begun at an older checkpoint.
        self.timer.reset();
        let step = self.step.read(session)?;
        self.write_graph(step)?;
        if self.is_latest(step) {
            // Just restored: writing it again could only lose it, should a task be lost meanwhile.
            self.timer.triggered(step);
            return Ok(());
        }
        self.save(session, step).map(drop)
    }

    fn before_run(&mut self, _: &RunContext<'_>) -> Result<RunArgs> {
        self.step.fetch()
    }

    fn after_run(&mut self, context: &mut RunContext<'_>, values: &RunValues<'_>) -> Result<()> {
        // The fetched step may be from before this run's update: look again before saving.
        if !self.timer.should_trigger(StepReader::fetched(values)? + 1) {
            return Ok(());
        }
        let step = self.step.read(context.session())?;
        if self.timer.should_trigger(step) && self.save(context.session(), step)? {
            context.request_stop();
        }
        Ok(())
    }

    fn after_others(&self) -> bool {
        true
    }

    fn end(&mut self, session: &Session) -> Result<()> {
        let step = self.step.read(session)?;
        if self.timer.last_step() != Some(step) {
            self.save(session, step)?;
        }
        for listener in &mut self.listeners {
            listener.end(session, step)?;
        }
        Ok(())
    }
}

/// Finds out at the start, not after the first hour, that a directory cannot be written.
fn check_writable(dir: &str) -> Result<()> {
    let probe = fs::join(dir, ".writable");
    let written = fs::for_path(dir).and_then(|fs| {
        fs.create_dir_all(dir)?;
        fs.write_atomic(&probe, b"")?;
        fs.delete_file(&probe)
    });
    written.map_err(|status| not_writable(dir, status))
}
