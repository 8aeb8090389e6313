//! [`Session`]: a session on a server, with the surface of the in-process one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tensorfleet_cluster::ids;
use tensorfleet_proto as pb;
use tensorfleet_session::{CallableOptions, RunOptions};
use tensorfleet_status::{Code, Result, Status, failed_precondition, internal};
use tensorfleet_tensor::Tensor;
use tokio::time::Instant;

use crate::grpc::{CallOptions, Limits};
use crate::lanes::Lanes;
use crate::master_client::MasterClient;

/// How long closing in `drop` may take: the server forgets the session anyway once it is idle.
const DROP_TIMEOUT: Duration = Duration::from_secs(2);

/// What a session is opened with.
#[derive(Clone, Debug, Default)]
pub struct ConnectOptions {
    /// The session's config.
    pub config: pb::ConfigProto,
    /// Message sizes and windows.
    pub limits: Limits,
    /// How long opening may take; by default it waits for its server, and the server for its cluster.
    pub timeout: Option<Duration>,
    /// A bearer token for servers that want one.
    pub token: Option<String>,
}

/// A session on a server. All methods block and may be called from many threads at once.
///
/// ```
/// use tensorfleet_rpc::{Server, Session};
/// use tensorfleet_graph::GraphBuilder;
/// use tensorfleet_tensor::Tensor;
///
/// let server = Server::create_local(Default::default())?;
/// let mut g = GraphBuilder::new(tensorfleet_ops::registry()?);
/// let hello = g.constant(Tensor::string("Hello, distributed TensorFlow!"))?;
/// let name = g.graph().output_name(hello);
///
/// let session = Session::connect(server.target())?;
/// session.extend(&g.finish().export()?)?;
/// let fetched = session.run(&[], &[&name], &[])?;
/// assert_eq!(fetched[0].slice::<tensorfleet_tensor::TString>()?[0], "Hello, distributed TensorFlow!");
/// # Ok::<(), tensorfleet_status::Status>(())
/// ```
pub struct Session {
    lanes: Lanes,
    handle: String,
    timeout: Option<Duration>,
    /// Extending is exclusive: each version follows from the one before.
    version: Mutex<i64>,
    closed: AtomicBool,
}

/// A part of a session's graph prepared on the server, called with positional feeds.
#[derive(Clone, Debug)]
pub struct Callable {
    handle: i64,
}

/// A step on the server whose feeds come and whose fetches go in several calls.
#[derive(Clone, Debug)]
pub struct PartialRun {
    handle: String,
}

impl Session {
    /// Opens a session on the server at `grpc://host:port`. Waits for the server if it is not up yet.
    pub fn connect(target: &str) -> Result<Session> {
        Session::connect_with(target, ConnectOptions::default())
    }

    /// Like [`connect`](Self::connect), with options.
    pub fn connect_with(target: &str, options: ConnectOptions) -> Result<Session> {
        let lanes = Lanes::new(target, options.limits, options.token.as_deref())?;
        let operation = u64::try_from(options.config.operation_timeout_in_ms)
            .ok()
            .filter(|millis| *millis > 0)
            .map(Duration::from_millis);
        let request = pb::CreateSessionRequest {
            graph_def: Some(pb::GraphDef::default()),
            config: Some(options.config),
            target: target.to_owned(),
        };
        let call = call_options(options.timeout.or(operation));
        let response =
            lanes.call(|client| async move { client.create_session(&request, &call).await })?;
        Ok(Session {
            lanes,
            handle: response.session_handle,
            timeout: operation,
            version: Mutex::new(response.graph_version),
            closed: AtomicBool::new(false),
        })
    }

    /// Adds the nodes and functions of a GraphDef.
    pub fn extend(&self, def: &pb::GraphDef) -> Result<()> {
        let mut version = self.version.lock().unwrap_or_else(PoisonError::into_inner);
        let request = pb::ExtendSessionRequest {
            session_handle: self.handle.clone(),
            graph_def: Some(def.clone()),
            current_graph_version: *version,
        };
        let response = self.call(None, |client, options| async move {
            client.extend_session(&request, &options).await
        })?;
        *version = response.new_graph_version;
        Ok(())
    }

    /// Feeds, runs and fetches; the fetched tensors in order.
    pub fn run(
        &self,
        feeds: &[(&str, Tensor)],
        fetches: &[&str],
        targets: &[&str],
    ) -> Result<Vec<Tensor>> {
        self.run_with(&RunOptions::default(), feeds, fetches, targets)
            .map(|(tensors, _)| tensors)
    }

    /// Like [`run`](Self::run), with options; also the metadata the server sent.
    pub fn run_with(
        &self,
        options: &RunOptions,
        feeds: &[(&str, Tensor)],
        fetches: &[&str],
        targets: &[&str],
    ) -> Result<(Vec<Tensor>, pb::RunMetadata)> {
        let mut request = self.step(feeds, fetches, options)?;
        request.target = owned(targets);
        self.run_step(request, fetches, options.timeout)
    }

    /// Prepares a step with all the feeds, fetches and targets it will ever have.
    pub fn partial_run_setup(
        &self,
        feeds: &[&str],
        fetches: &[&str],
        targets: &[&str],
    ) -> Result<PartialRun> {
        let request = pb::PartialRunSetupRequest {
            session_handle: self.handle.clone(),
            feed: owned(feeds),
            fetch: owned(fetches),
            target: owned(targets),
            request_id: request_id(),
        };
        let response = self.call(None, |client, options| async move {
            client.partial_run_setup(&request, &options).await
        })?;
        Ok(PartialRun {
            handle: response.partial_run_handle,
        })
    }

    /// Gives some of the feeds, gets some of the fetches.
    pub fn partial_run(
        &self,
        run: &PartialRun,
        feeds: &[(&str, Tensor)],
        fetches: &[&str],
        timeout: Option<Duration>,
    ) -> Result<Vec<Tensor>> {
        let mut request = self.step(feeds, fetches, &RunOptions::default())?;
        request.partial_run_handle.clone_from(&run.handle);
        self.run_step(request, fetches, timeout)
            .map(|(tensors, _)| tensors)
    }

    /// Prepares a callable.
    pub fn make_callable(&self, options: CallableOptions) -> Result<Callable> {
        let request = pb::MakeCallableRequest {
            session_handle: self.handle.clone(),
            options: Some(pb::CallableOptions {
                feed: options.feeds,
                fetch: options.fetches,
                target: options.targets,
                run_options: Some(run_options(&options.run)),
                ..pb::CallableOptions::default()
            }),
            request_id: request_id(),
        };
        let response = self.call(None, |client, options| async move {
            client.make_callable(&request, &options).await
        })?;
        Ok(Callable {
            handle: response.handle,
        })
    }

    /// Calls with one tensor per feed.
    pub fn call_callable(&self, callable: &Callable, feeds: &[Tensor]) -> Result<Vec<Tensor>> {
        let feed: Result<Vec<_>> = feeds.iter().map(Tensor::to_proto).collect();
        let request = pb::RunCallableRequest {
            session_handle: self.handle.clone(),
            handle: callable.handle,
            feed: feed?,
            request_id: request_id(),
        };
        let response = self.call(None, |client, options| async move {
            client.run_callable(&request, &options).await
        })?;
        response.fetch.iter().map(Tensor::from_proto).collect()
    }

    /// Lets the server forget a callable.
    pub fn release_callable(&self, callable: &Callable) -> Result<()> {
        let request = pb::ReleaseCallableRequest {
            session_handle: self.handle.clone(),
            handle: callable.handle,
        };
        self.call(None, |client, options| async move {
            client.release_callable(&request, &options).await
        })
        .map(drop)
    }

    /// The devices the session sees.
    pub fn list_devices(&self) -> Result<Vec<pb::DeviceAttributes>> {
        let request = pb::ListDevicesRequest {
            session_handle: self.handle.clone(),
        };
        let response = self.call(None, |client, options| async move {
            client.list_devices(&request, &options).await
        })?;
        let mut devices = response.local_device;
        devices.extend(response.remote_device);
        Ok(devices)
    }

    /// Closes all sessions of a server and clears containers on its cluster; none for the default ones.
    pub fn reset(target: &str, containers: &[&str]) -> Result<()> {
        let lanes = Lanes::new(target, Limits::default(), None)?;
        let request = pb::ResetRequest {
            container: owned(containers),
            ..pb::ResetRequest::default()
        };
        lanes
            .call(|client| async move { client.reset(&request, &call_options(None)).await })
            .map(drop)
    }

    /// Closes the session: running steps are cancelled.
    pub fn close(&self) -> Result<()> {
        self.close_in(self.timeout)
    }

    /// Closes the session, waiting at most this long for the server.
    pub fn close_within(&self, timeout: Duration) -> Result<()> {
        self.close_in(Some(timeout))
    }

    fn close_in(&self, timeout: Option<Duration>) -> Result<()> {
        if self.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let request = pb::CloseSessionRequest {
            session_handle: self.handle.clone(),
        };
        let options = call_options(timeout);
        self.lanes
            .call(|client| async move { client.close_session(&request, &options).await })
            .map(drop)
    }

    fn step(
        &self,
        feeds: &[(&str, Tensor)],
        fetches: &[&str],
        options: &RunOptions,
    ) -> Result<pb::RunStepRequest> {
        let feed: Result<Vec<_>> = feeds
            .iter()
            .map(|(name, tensor)| {
                Ok(pb::NamedTensorProto {
                    name: (*name).to_owned(),
                    tensor: Some(tensor.to_proto()?),
                })
            })
            .collect();
        Ok(pb::RunStepRequest {
            session_handle: self.handle.clone(),
            feed: feed?,
            fetch: owned(fetches),
            options: Some(run_options(options)),
            store_errors_in_response_body: true,
            request_id: request_id(),
            ..pb::RunStepRequest::default()
        })
    }

    fn run_step(
        &self,
        request: pb::RunStepRequest,
        fetches: &[&str],
        timeout: Option<Duration>,
    ) -> Result<(Vec<Tensor>, pb::RunMetadata)> {
        let response = self.call(timeout, |client, options| async move {
            client.run_step(&request, &options).await
        })?;
        if response.status_code != 0 {
            return Err(Status::new(
                Code::from_number(response.status_code),
                response.status_error_message,
            ));
        }
        let mut tensors = Vec::with_capacity(fetches.len());
        for (index, name) in fetches.iter().enumerate() {
            // They come in order, but nobody promises it.
            let named = response
                .tensor
                .get(index)
                .filter(|named| named.name == *name)
                .or_else(|| response.tensor.iter().find(|named| named.name == *name));
            let proto = named.and_then(|named| named.tensor.as_ref());
            tensors.push(Tensor::from_proto(
                proto.ok_or_else(|| internal!("the server did not send {name}"))?,
            )?);
        }
        Ok((tensors, response.metadata.unwrap_or_default()))
    }

    fn call<T, F>(
        &self,
        timeout: Option<Duration>,
        call: impl FnOnce(MasterClient, CallOptions) -> F,
    ) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        if self.closed.load(Ordering::Acquire) {
            return Err(failed_precondition!("Session is closed."));
        }
        let options = call_options(timeout.or(self.timeout));
        self.lanes.call(|client| call(client, options))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // A server that cannot be reached has nothing to close.
        let _ = self.close_in(Some(DROP_TIMEOUT));
    }
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn run_options(options: &RunOptions) -> pb::RunOptions {
    let timeout = options.timeout.unwrap_or_default();
    pb::RunOptions {
        timeout_in_ms: i64::try_from(timeout.as_millis()).unwrap_or(i64::MAX),
        trace_level: if options.trace {
            pb::run_options::TraceLevel::FullTrace as i32
        } else {
            0
        },
        ..pb::RunOptions::default()
    }
}

fn call_options(timeout: Option<Duration>) -> CallOptions {
    CallOptions {
        deadline: timeout.and_then(|timeout| Instant::now().checked_add(timeout)),
        wait_for_ready: true,
    }
}

fn request_id() -> i64 {
    ids::random() as i64
}
