//! [`Session`]: runs a graph, in this process or on a server.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tensorfleet_proto as pb;
use tensorfleet_rpc as rpc;
use tensorfleet_session as local;
use tensorfleet_session::{CallableOptions, RunOptions};
use tensorfleet_status::Result;
use tensorfleet_tensor::Tensor;

use crate::fetch::{Fetch, FetchList, Fetched};
use crate::graph::Graph;
use crate::output::Output;

/// What a session is made with.
///
/// ```
/// use std::time::Duration;
/// use tensorfleet_client::{Graph, Session, SessionOptions};
///
/// let options = SessionOptions {
///     timeout: Some(Duration::from_millis(200)),
///     ..SessionOptions::target("grpc://localhost:1") // nobody is there
/// };
/// assert!(Session::with_options(&Graph::new(), options).is_err());
/// # Ok::<(), tensorfleet_client::Status>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct SessionOptions {
    /// `grpc://host:port` of any server of a cluster; empty to run in this process.
    pub target: String,
    /// The session's config.
    pub config: pb::ConfigProto,
    /// How long opening may take; by default it waits for its server, and the server for its cluster.
    pub timeout: Option<Duration>,
    /// A bearer token for servers that want one.
    pub token: Option<String>,
}

impl SessionOptions {
    /// A session on this target.
    pub fn target(target: &str) -> SessionOptions {
        SessionOptions {
            target: target.to_owned(),
            ..SessionOptions::default()
        }
    }
}

/// Runs a graph. Nodes added to the graph after the session was opened are sent before the next run.
///
/// Clones are handles of the same session; it closes when the last one is dropped. All methods block and
/// may be called from many threads at once.
///
/// ```
/// use tensorfleet_client::{Graph, Session};
/// use tensorfleet_rpc::Server;
///
/// let server = Server::create_local(Default::default())?;
/// let g = Graph::new();
/// let hello = g.constant("Hello, distributed TensorFlow!");
/// let session = Session::connect(&g, server.target())?;
/// let said = session.run(&hello)?;
/// assert_eq!(said.slice::<tensorfleet_tensor::TString>()?[0], "Hello, distributed TensorFlow!");
/// # Ok::<(), tensorfleet_client::Status>(())
/// ```
#[derive(Clone)]
pub struct Session {
    shared: Arc<Shared>,
}

struct Shared {
    graph: Graph,
    /// How many nodes of the graph the other side has.
    sent: Mutex<usize>,
    place: Place,
}

enum Place {
    Here(Box<local::Session>),
    There(rpc::Session),
}

impl Session {
    /// A session in this process.
    pub fn new(graph: &Graph) -> Result<Session> {
        Session::with_options(graph, SessionOptions::default())
    }

    /// A session on the server at `grpc://host:port`. Waits for the server if it is not up yet.
    pub fn connect(graph: &Graph, target: &str) -> Result<Session> {
        Session::with_options(graph, SessionOptions::target(target))
    }

    /// A session made with options.
    pub fn with_options(graph: &Graph, options: SessionOptions) -> Result<Session> {
        let place = if options.target.is_empty() {
            let threads = options.config.intra_op_parallelism_threads;
            Place::Here(Box::new(local::Session::new(local::SessionOptions {
                threads: usize::try_from(threads).unwrap_or(0),
                ..local::SessionOptions::default()
            })?))
        } else {
            let connect = rpc::ConnectOptions {
                config: options.config,
                timeout: options.timeout,
                token: options.token,
                ..rpc::ConnectOptions::default()
            };
            Place::There(rpc::Session::connect_with(&options.target, connect)?)
        };
        Ok(Session {
            shared: Arc::new(Shared {
                graph: graph.clone(),
                sent: Mutex::new(0),
                place,
            }),
        })
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        &self.shared.graph
    }

    /// Runs what is needed for these fetches.
    pub fn run<F: Fetch>(&self, fetch: F) -> Result<F::Value> {
        self.run_fed(&[], fetch)
    }

    /// Runs with these values in place of the tensors that they feed.
    pub fn run_fed<F: Fetch>(&self, feeds: &[(&Output, Tensor)], fetch: F) -> Result<F::Value> {
        self.run_with(&RunOptions::default(), feeds, fetch)
            .map(|(value, _)| value)
    }

    /// Like [`run_fed`](Self::run_fed), with options; also what the run told if it was traced.
    pub fn run_with<F: Fetch>(
        &self,
        options: &RunOptions,
        feeds: &[(&Output, Tensor)],
        fetch: F,
    ) -> Result<(F::Value, pb::RunMetadata)> {
        let mut list = FetchList::default();
        fetch.add_to(&mut list);
        let feeds: Vec<(String, Tensor)> = feeds
            .iter()
            .map(|(output, value)| (output.name(), value.clone()))
            .collect();
        let (values, metadata) = self.run_list(options, &feeds, &list)?;
        Ok((fetch.value(&mut Fetched::new(values))?, metadata))
    }

    /// Runs by names.
    pub fn run_list(
        &self,
        options: &RunOptions,
        feeds: &[(String, Tensor)],
        list: &FetchList,
    ) -> Result<(Vec<Tensor>, pb::RunMetadata)> {
        self.send_graph()?;
        let feeds: Vec<(&str, Tensor)> = feeds
            .iter()
            .map(|(name, value)| (name.as_str(), value.clone()))
            .collect();
        let unique = unique(&list.tensors);
        let targets = self::unique(&list.targets);
        let (values, metadata) = match &self.shared.place {
            Place::Here(session) => {
                let (values, told) = session.run_with(options, &feeds, &unique, &targets)?;
                let metadata = pb::RunMetadata {
                    step_stats: options.trace.then(|| told.to_step_stats()),
                    ..pb::RunMetadata::default()
                };
                (values, metadata)
            }
            Place::There(session) => session.run_with(options, &feeds, &unique, &targets)?,
        };
        Ok((in_order(&list.tensors, &unique, values), metadata))
    }

    /// Prepares a run that will be made many times with the same feeds and fetches.
    ///
    /// ```
    /// use tensorfleet_client::{DType, Graph, Session, Tensor};
    ///
    /// let g = Graph::new();
    /// let x = g.placeholder(DType::F32, &[]);
    /// let y = &x * 2.0;
    /// let session = Session::new(&g)?;
    /// let double = session.callable(&[&x], &y)?;
    /// assert_eq!(double.call(&[Tensor::scalar(4.0f32)])?.to_scalar::<f32>()?, 8.0);
    /// # Ok::<(), tensorfleet_client::Status>(())
    /// ```
    pub fn callable<F: Fetch>(&self, feeds: &[&Output], fetch: F) -> Result<Callable<F>> {
        self.send_graph()?;
        let mut list = FetchList::default();
        fetch.add_to(&mut list);
        let unique: Vec<String> = unique(&list.tensors)
            .into_iter()
            .map(str::to_owned)
            .collect();
        let options = CallableOptions {
            feeds: feeds.iter().map(|feed| feed.name()).collect(),
            fetches: unique.clone(),
            targets: list.targets.clone(),
            ..CallableOptions::default()
        };
        let prepared = match &self.shared.place {
            Place::Here(session) => Prepared::Here(session.make_callable(options)?),
            Place::There(session) => Prepared::There(session.make_callable(options)?),
        };
        Ok(Callable {
            session: self.clone(),
            fetch,
            wanted: list.tensors,
            unique,
            prepared,
        })
    }

    /// The devices the session sees; none are told in this process.
    pub fn list_devices(&self) -> Result<Vec<pb::DeviceAttributes>> {
        match &self.shared.place {
            Place::Here(_) => Ok(Vec::new()),
            Place::There(session) => session.list_devices(),
        }
    }

    /// Closes the session: running steps are cancelled.
    pub fn close(&self) -> Result<()> {
        match &self.shared.place {
            Place::Here(session) => {
                session.close();
                Ok(())
            }
            Place::There(session) => session.close(),
        }
    }

    /// Closes the session, waiting at most this long for the server.
    pub fn close_within(&self, timeout: Duration) -> Result<()> {
        match &self.shared.place {
            Place::Here(_) => self.close(),
            Place::There(session) => session.close_within(timeout),
        }
    }

    /// Sends what the graph has and the other side has not.
    fn send_graph(&self) -> Result<()> {
        let mut sent = self
            .shared
            .sent
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let graph = &self.shared.graph;
        let len = graph.len();
        if *sent == len {
            return graph.check();
        }
        let def = graph.graph_def_from(*sent)?;
        *sent += def.node.len();
        graph.lock().builder.fix(*sent);
        match &self.shared.place {
            Place::Here(session) => session.extend(&def),
            Place::There(session) => session.extend(&def),
        }
    }
}

/// A prepared run. Made by [`Session::callable`].
pub struct Callable<F> {
    session: Session,
    fetch: F,
    wanted: Vec<String>,
    unique: Vec<String>,
    prepared: Prepared,
}

enum Prepared {
    Here(local::Callable),
    There(rpc::Callable),
}

impl<F: Fetch> Callable<F> {
    /// Runs with one value per feed.
    pub fn call(&self, feeds: &[Tensor]) -> Result<F::Value> {
        let values = match (&self.session.shared.place, &self.prepared) {
            (Place::Here(session), Prepared::Here(callable)) => session.call(callable, feeds)?,
            (Place::There(session), Prepared::There(callable)) => {
                session.call_callable(callable, feeds)?
            }
            _ => Vec::new(),
        };
        let unique: Vec<&str> = self.unique.iter().map(String::as_str).collect();
        let values = in_order(&self.wanted, &unique, values);
        self.fetch.value(&mut Fetched::new(values))
    }
}

impl<F> Drop for Callable<F> {
    fn drop(&mut self) {
        if let (Place::There(session), Prepared::There(callable)) =
            (&self.session.shared.place, &self.prepared)
        {
            // A server that cannot be reached has nothing to forget.
            let _ = session.release_callable(callable);
        }
    }
}

/// Each name once, in order of appearance.
fn unique(names: &[String]) -> Vec<&str> {
    let mut found: Vec<&str> = Vec::with_capacity(names.len());
    for name in names {
        if !found.contains(&name.as_str()) {
            found.push(name);
        }
    }
    found
}

/// The values of `unique` in the order of `wanted`.
fn in_order(wanted: &[String], unique: &[&str], values: Vec<Tensor>) -> Vec<Tensor> {
    if wanted.len() == unique.len() {
        return values;
    }
    let position = |name: &String| unique.iter().position(|known| known == name);
    wanted
        .iter()
        .filter_map(|name| values.get(position(name)?).cloned())
        .collect()
}
