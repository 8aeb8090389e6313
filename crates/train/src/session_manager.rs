//! [`SessionManager`]: opens sessions whose variables have values.

use std::time::{Duration, Instant};

use tensorfleet_checkpoint::state::{STATE_FILE, named_checkpoint, read_state};
use tensorfleet_client::{Graph, Output, Session, SessionOptions, Tensor};
use tensorfleet_status::{Code, Result, deadline_exceeded, failed_precondition};
use tensorfleet_tensor::TString;

use crate::scaffold::FinalScaffold;

/// A worker looks this often at first whether the chief has initialised the variables, then ever less often.
const FIRST_LOOK: Duration = Duration::from_millis(20);

/// The longest time between two looks.
const LAST_LOOK: Duration = Duration::from_secs(1);

/// After this time who waits says for whom, and again each time it has waited twice as long.
const FIRST_WORD: Duration = Duration::from_secs(5);

/// Where a session begins.
#[derive(Clone, Debug, Default)]
pub struct Start {
    /// The newest checkpoint of this directory, if there is one.
    pub checkpoint_dir: Option<String>,
    /// This very checkpoint.
    pub checkpoint_path: Option<String>,
}

impl Start {
    fn checkpoint(&self) -> Result<Option<String>> {
        match (&self.checkpoint_path, &self.checkpoint_dir) {
            (Some(path), _) => Ok(Some(path.clone())),
            // One that is named but gone is no reason to begin anew: whoever moved or deleted it should say so.
            (None, Some(dir)) => named_checkpoint(dir),
            (None, None) => Ok(None),
        }
    }
}

/// Opens sessions for chiefs, which initialise, and for workers, which wait.
///
/// ```
/// use tensorfleet_client::{Graph, SessionOptions, init};
/// use tensorfleet_train::{Scaffold, SessionManager, Start};
///
/// let g = Graph::new();
/// let w = g.variable("w", &[]).initializer(init::ones()).build();
/// let manager = SessionManager::new(&g, Scaffold::new().finalize(&g)?);
/// let session = manager.prepare_session(&SessionOptions::default(), &Start::default())?;
/// assert_eq!(session.run(&w)?.to_scalar::<f32>()?, 1.0);
/// # Ok::<(), tensorfleet_client::Status>(())
/// ```
pub struct SessionManager {
    graph: Graph,
    scaffold: FinalScaffold,
}

impl SessionManager {
    /// For a graph and its scaffold.
    pub fn new(graph: &Graph, scaffold: FinalScaffold) -> SessionManager {
        SessionManager {
            graph: graph.clone(),
            scaffold,
        }
    }

    /// The chief's way: restores the newest checkpoint, or initialises. What the checkpoint does not tell is an
    /// error, not a surprise later.
    pub fn prepare_session(&self, options: &SessionOptions, start: &Start) -> Result<Session> {
        let session = Session::with_options(&self.graph, options.clone())?;
        if !self.restore(&session, start)? {
            let feeds: Vec<(&Output, Tensor)> = self
                .scaffold
                .init_feed
                .iter()
                .map(|(tensor, value)| (tensor, value.clone()))
                .collect();
            session.run_fed(&feeds, &self.scaffold.init_op)?;
            if let Some(init) = &self.scaffold.init_fn {
                init(&session)?;
            }
        }
        if let Some(missing) = self.init_local(&session)? {
            return Err(failed_precondition!(
                "init operations did not make the model ready for local initialisation; not initialised: {missing}"
            ));
        }
        if let Some(missing) = self.missing(&session, &self.scaffold.ready_op)? {
            return Err(failed_precondition!(
                "init operations did not make the model ready; not initialised: {missing}"
            ));
        }
        Ok(session)
    }

    /// Restores and initialises nothing; the session, and whether it is ready.
    pub fn recover_session(
        &self,
        options: &SessionOptions,
        start: &Start,
    ) -> Result<(Session, bool)> {
        let session = Session::with_options(&self.graph, options.clone())?;
        let restored = self.restore(&session, start)?;
        let ready = restored
            && self.init_local(&session)?.is_none()
            && self.missing(&session, &self.scaffold.ready_op)?.is_none();
        Ok((session, ready))
    }

    /// The worker's way: waits until somebody else has initialised the variables. Looks often at first: a
    /// worker starts training within moments of its chief.
    pub fn wait_for_session(
        &self,
        options: &SessionOptions,
        max_wait: Duration,
    ) -> Result<Session> {
        let began = Instant::now();
        let mut pause = FIRST_LOOK;
        let mut next_word = FIRST_WORD;
        let mut session = None;
        loop {
            let open = match session.take() {
                Some(session) => session,
                None => {
                    let left = max_wait.saturating_sub(began.elapsed());
                    let options = SessionOptions {
                        timeout: options.timeout.or(Some(left)),
                        ..options.clone()
                    };
                    Session::with_options(&self.graph, options)?
                }
            };
            let why = match self.ready(&open) {
                Ok(None) => return Ok(open),
                Ok(Some(missing)) => {
                    // The same session can be asked again; only a failed one is left.
                    session = Some(open);
                    format!("not initialised yet: {missing}")
                }
                Err(status) if is_lost(status.code()) => status.message().to_owned(),
                Err(status) => return Err(status),
            };
            if began.elapsed() + pause > max_wait {
                return Err(deadline_exceeded!(
                    "Session was not ready after waiting {} secs: {why}; is the chief running?",
                    max_wait.as_secs()
                ));
            }
            if began.elapsed() >= next_word {
                tracing::warn!(
                    "waiting for the chief for {} s: {why}",
                    began.elapsed().as_secs()
                );
                next_word = began.elapsed() * 2;
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(LAST_LOOK);
        }
    }

    /// Initialises what is local if it can be, then tells what is missing.
    fn ready(&self, session: &Session) -> Result<Option<String>> {
        match self.init_local(session)? {
            None => self.missing(session, &self.scaffold.ready_op),
            missing => Ok(missing),
        }
    }

    /// What is missing before local variables can be initialised; they are if nothing is.
    fn init_local(&self, session: &Session) -> Result<Option<String>> {
        let missing = self.missing(session, &self.scaffold.ready_for_local_init_op)?;
        if missing.is_none() {
            session.run(&self.scaffold.local_init_op)?;
        }
        Ok(missing)
    }

    fn missing(&self, session: &Session, report: &Output) -> Result<Option<String>> {
        let names = match session.run(report) {
            Ok(names) => names,
            // A report that reads a variable itself fails instead of telling.
            Err(status)
                if status.code() == Code::FailedPrecondition
                    && status.message().contains("uninitialized") =>
            {
                return Ok(Some(status.message().to_owned()));
            }
            Err(status) => return Err(status),
        };
        let names = names.slice::<TString>()?;
        if names.is_empty() {
            return Ok(None);
        }
        let names: Vec<_> = names
            .iter()
            .map(|name| String::from_utf8_lossy(name))
            .collect();
        Ok(Some(names.join(", ")))
    }

    /// Restores the checkpoint to begin with; whether there was one.
    fn restore(&self, session: &Session, start: &Start) -> Result<bool> {
        let (Some(saver), Some(path)) = (&self.scaffold.saver, start.checkpoint()?) else {
            return Ok(false);
        };
        tracing::info!("Restoring parameters from {path}");
        saver.restore(session, &path)?;
        if let Some(dir) = &start.checkpoint_dir
            && let Some(state) = read_state(dir, STATE_FILE)?
        {
            saver.recover_last_checkpoints(&state.all_model_checkpoint_paths);
        }
        Ok(true)
    }
}

/// Whether a status means that a task was lost and may come back.
pub(crate) fn is_lost(code: Code) -> bool {
    matches!(code, Code::Aborted | Code::Unavailable)
}
