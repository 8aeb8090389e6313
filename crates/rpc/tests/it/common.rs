//! Servers, clients and graphs for the tests.

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tensorfleet_cluster::{ClusterSpec, ServerSpec};
use tensorfleet_graph::{GraphBuilder, text};
use tensorfleet_proto as pb;
use tensorfleet_rpc::grpc::{CallOptions, Channel, Limits};
use tensorfleet_rpc::{ConnectOptions, MasterClient, Server, ServerOptions, Session, admin};
use tensorfleet_status::{Code, Result, Status};
use tensorfleet_tensor::Tensor;
use tokio::runtime::{Builder, Runtime};

/// Nothing here takes this long unless it hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A queue, and all that is done with it, on the second task.
pub(crate) fn remote_queue(name: &str) -> String {
    let mut text = String::new();
    for line in queue(name).lines() {
        text.push_str(line);
        // Literal constants have no device; they go where they are used.
        if line.contains('(') {
            text.push_str(" @/job:worker/task:1/device:CPU:0");
        }
        text.push('\n');
    }
    text
}

/// A queue and everything the tests do with it; the name is where its state lives.
pub(crate) fn queue(name: &str) -> String {
    format!(
        "q = FIFOQueueV2() {{component_types=[DT_FLOAT], shapes=[[]], shared_name='{name}'}}
         x = Placeholder() {{dtype=DT_FLOAT, shape=[]}}
         put = QueueEnqueueV2(q, [x])
         got = QueueDequeueV2(q) {{component_types=[DT_FLOAT]}}
         size = QueueSizeV2(q)
         v = VarHandleOp() {{dtype=DT_FLOAT, shape=[], shared_name='{name}/started'}}
         one = float[]{{1}}
         zero = float[]{{0}}
         init = AssignVariableOp(v, zero)
         started = AssignAddVariableOp(v, one)
         count = ReadVariableOp(v) {{dtype=DT_FLOAT}}"
    )
}

/// A variable of a name, its initializer, an update and its value.
pub(crate) fn variable(name: &str) -> String {
    format!(
        "v = VarHandleOp() {{dtype=DT_FLOAT, shape=[], shared_name='{name}'}}
         one = float[]{{1}}
         init = AssignVariableOp(v, one)
         more = AssignAddVariableOp(v, one)
         value = ReadVariableOp(v) {{dtype=DT_FLOAT}}"
    )
}

/// The graph of a text in the language of op scripts.
pub(crate) fn graph(text: &str) -> pb::GraphDef {
    let mut builder = GraphBuilder::new(tensorfleet_ops::registry().unwrap());
    text::parse_graph(&mut builder, text).unwrap();
    builder.finish().export().unwrap()
}

/// A server of its own: a cluster of one task on any free port, not started.
pub(crate) fn bound(config: pb::ConfigProto, options: ServerOptions) -> Server {
    let cluster = ClusterSpec::from_jobs([("local", ["localhost:0"])]).unwrap();
    let mut spec = ServerSpec::new(cluster, None, None).unwrap();
    spec.default_session_config = Some(config);
    Server::new(spec, options).unwrap()
}

/// A started server that does not wait when it stops.
pub(crate) fn server_with(options: ServerOptions) -> Server {
    let server = bound(pb::ConfigProto::default(), options);
    server.start().unwrap();
    server
}

/// A started server.
pub(crate) fn server() -> Server {
    server_with(ServerOptions::default())
}

/// A session with a graph.
pub(crate) fn session(target: &str, text: &str) -> Session {
    session_with(target, text, pb::ConfigProto::default())
}

/// A session with a config and a graph.
pub(crate) fn session_with(target: &str, text: &str, config: pb::ConfigProto) -> Session {
    let options = ConnectOptions {
        config,
        timeout: Some(PATIENCE),
        ..ConnectOptions::default()
    };
    let session = Session::connect_with(target, options).unwrap();
    session.extend(&graph(text)).unwrap();
    session
}

/// A session with a graph whose nodes have devices.
pub(crate) fn session_of(target: &str, def: &pb::GraphDef) -> Session {
    let session = session(target, "");
    session.extend(def).unwrap();
    session
}

pub(crate) fn float(value: f32) -> Tensor {
    Tensor::scalar(value)
}

/// Runs a node.
pub(crate) fn run(session: &Session, node: &str) -> Result<()> {
    session.run(&[], &[], &[node]).map(drop)
}

/// Fetches a float.
pub(crate) fn value(session: &Session, name: &str) -> Result<f32> {
    session.run(&[], &[name], &[])?[0].to_scalar()
}

/// Puts a float into the queue of [`queue`].
pub(crate) fn put(session: &Session, x: f32) -> Result<()> {
    session.run(&[("x:0", float(x))], &[], &["put"]).map(drop)
}

/// How many floats are in the queue of [`queue`].
pub(crate) fn size(session: &Session) -> i32 {
    session.run(&[], &["size:0"], &[]).unwrap()[0]
        .to_scalar()
        .unwrap()
}

/// Waits until something holds.
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < PATIENCE, "{what} did not come about");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Asserts a status by code and a part of its text.
#[track_caller]
pub(crate) fn assert_status<T>(result: Result<T>, code: Code, part: &str) {
    let Err(status) = result else {
        panic!("no {code:?} with '{part}': it went well");
    };
    assert!(
        status.code() == code && status.message().contains(part),
        "{code:?} with '{part}' was expected, not {status}"
    );
}

/// Calls as they go over the wire, from an event loop of its own. Dropping it drops its connection.
pub(crate) struct Raw {
    pub(crate) master: MasterClient,
    pub(crate) channel: Channel,
    pub(crate) runtime: Runtime,
}

impl Raw {
    pub(crate) fn new(target: &str) -> Raw {
        Raw::with_limits(target, Limits::default())
    }

    pub(crate) fn with_limits(target: &str, limits: Limits) -> Raw {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let address = target.strip_prefix("grpc://").unwrap();
        Raw {
            master: MasterClient::new(target, limits.clone(), None).unwrap(),
            channel: Channel::new(address, limits),
            runtime,
        }
    }

    /// Makes a call of the master.
    pub(crate) fn call<T, F>(&self, call: impl FnOnce(MasterClient, CallOptions) -> F) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        self.runtime
            .block_on(async { call(self.master.clone(), options()).await })
    }

    /// Makes a call of any service.
    pub(crate) fn unary<Q: prost::Message, A: prost::Message + Default>(
        &self,
        path: &'static str,
        request: &Q,
    ) -> Result<A> {
        self.runtime
            .block_on(async { self.channel.unary(path, request, &options()).await })
    }

    /// Opens a session with a graph; its handle.
    pub(crate) fn open(&self, def: pb::GraphDef) -> String {
        let request = pb::CreateSessionRequest {
            graph_def: Some(def),
            ..pb::CreateSessionRequest::default()
        };
        self.call(|master, options| async move { master.create_session(&request, &options).await })
            .unwrap()
            .session_handle
    }

    /// Runs a step; errors come as they would without the body.
    pub(crate) fn step(&self, request: pb::RunStepRequest) -> Result<pb::RunStepResponse> {
        let response =
            self.call(|master, options| async move { master.run_step(&request, &options).await })?;
        match response.status_code {
            0 => Ok(response),
            code => Err(Status::new(
                Code::from_number(code),
                response.status_error_message,
            )),
        }
    }

    /// What the server says of itself.
    pub(crate) fn status(&self) -> admin::StatusResponse {
        self.call(|master, options| async move {
            let request = admin::StatusRequest {};
            master.admin_status(&request, &options).await
        })
        .unwrap()
    }
}

fn options() -> CallOptions {
    CallOptions {
        deadline: Some(tokio::time::Instant::now() + PATIENCE),
        wait_for_ready: true,
    }
}

static NEXT: AtomicU64 = AtomicU64::new(0);

/// A request id that nobody else has.
pub(crate) fn request_id() -> i64 {
    0x7e57_0000_0000 + NEXT.fetch_add(1, Ordering::Relaxed) as i64
}

/// A step that takes from the queue of [`queue`] and says that it began.
pub(crate) fn taking(handle: &str) -> pb::RunStepRequest {
    pb::RunStepRequest {
        session_handle: handle.to_owned(),
        fetch: vec!["got:0".into()],
        target: vec!["started".into()],
        request_id: request_id(),
        store_errors_in_response_body: true,
        ..pb::RunStepRequest::default()
    }
}
