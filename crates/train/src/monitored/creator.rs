//! How a chief and a worker open a session.

use std::time::Duration;

use tensorfleet_client::{Graph, Session, SessionOptions};
use tensorfleet_status::Result;

use crate::scaffold::Scaffold;
use crate::session_manager::{SessionManager, Start};

/// Opens sessions for a [`MonitoredSession`](super::MonitoredSession): the first one, and a new one whenever a
/// task was lost.
///
/// ```
/// use tensorfleet_client::{Graph, SessionOptions, init};
/// use tensorfleet_train::{
///     ChiefSessionCreator, MonitoredSession, MonitoredSessionOptions, Scaffold, Start,
/// };
///
/// let g = Graph::new();
/// let w = g.variable("w", &[]).initializer(init::ones()).build();
/// let creator =
///     ChiefSessionCreator::new(&g, Scaffold::new(), SessionOptions::default(), Start::default());
/// let mut session =
///     MonitoredSession::new(&g, creator, Vec::new(), MonitoredSessionOptions::default())?;
/// assert_eq!(session.run(&w)?.to_scalar::<f32>()?, 1.0);
/// session.close()?;
/// # Ok::<(), tensorfleet_client::Status>(())
/// ```
pub trait SessionCreator: Send {
    /// A session whose variables have values.
    fn create_session(&mut self) -> Result<Session>;
}

/// Restores or initialises.
pub struct ChiefSessionCreator {
    common: Common,
    start: Start,
}

/// Waits for the chief.
pub struct WorkerSessionCreator {
    common: Common,
    max_wait: Duration,
}

/// What both need. The scaffold is finished with the first session: hooks add nodes before.
struct Common {
    graph: Graph,
    scaffold: Scaffold,
    options: SessionOptions,
    manager: Option<SessionManager>,
}

impl Common {
    fn manager(&mut self) -> Result<&SessionManager> {
        let manager = match self.manager.take() {
            Some(manager) => manager,
            None => SessionManager::new(&self.graph, self.scaffold.finalize(&self.graph)?),
        };
        Ok(self.manager.insert(manager))
    }
}

impl ChiefSessionCreator {
    /// For a graph, on a target, beginning with the newest checkpoint of a directory if there is one.
    pub fn new(graph: &Graph, scaffold: Scaffold, options: SessionOptions, start: Start) -> Self {
        ChiefSessionCreator {
            common: Common {
                graph: graph.clone(),
                scaffold,
                options,
                manager: None,
            },
            start,
        }
    }
}

impl SessionCreator for ChiefSessionCreator {
    fn create_session(&mut self) -> Result<Session> {
        let options = self.common.options.clone();
        let start = self.start.clone();
        self.common.manager()?.prepare_session(&options, &start)
    }
}

impl WorkerSessionCreator {
    /// For a graph, on a target, waiting at most this long for the chief.
    pub fn new(
        graph: &Graph,
        scaffold: Scaffold,
        options: SessionOptions,
        max_wait: Duration,
    ) -> Self {
        WorkerSessionCreator {
            common: Common {
                graph: graph.clone(),
                scaffold,
                options,
                manager: None,
            },
            max_wait,
        }
    }
}

impl SessionCreator for WorkerSessionCreator {
    fn create_session(&mut self) -> Result<Session> {
        let options = self.common.options.clone();
        let max_wait = self.max_wait;
        self.common.manager()?.wait_for_session(&options, max_wait)
    }
}
