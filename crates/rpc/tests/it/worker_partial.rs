//! Partial steps on a worker, called by a master that is not ours.

use tensorfleet_proto as pb;
use tensorfleet_proto::services::worker as path;
use tensorfleet_rpc::Session;
use tensorfleet_status::{Code, Result};
use tensorfleet_tensor::Tensor;
use tokio::task::JoinHandle;

use crate::common::{assert_status, queue, server, session, value, wait_until};
use crate::worker::Foreign;

const CPU: &str = "/job:local/replica:0/task:0/device:CPU:0";

/// A step that says that it began and then takes from a queue, in several calls.
struct Taking<'a> {
    foreign: &'a Foreign,
    graph_handle: String,
    step_id: i64,
}

impl<'a> Taking<'a> {
    /// Its graph receives `x`, sends it back as `y`, and takes from the queue.
    fn new(foreign: &'a Foreign, name: &str, step_id: i64) -> Taking<'a> {
        let ends = format!(
            "send_device='{CPU}', send_device_incarnation={}, recv_device='{CPU}'",
            foreign.incarnation as i64
        );
        let text = format!(
            "q = FIFOQueueV2() {{component_types=[DT_FLOAT], shapes=[[]], shared_name='{name}'}}
             v = VarHandleOp() {{dtype=DT_FLOAT, shape=[], shared_name='{name}/started'}}
             one = float[]{{1}}
             started = AssignAddVariableOp(v, one)
             fed = _Recv(^started) {{tensor_type=DT_FLOAT, tensor_name='x', {ends}}}
             back = _Send(fed) {{tensor_name='y', {ends}}}
             got = QueueDequeueV2(q) {{component_types=[DT_FLOAT]}}
             taken = _Send(got) {{tensor_name='z', {ends}}}"
        );
        Taking {
            graph_handle: foreign.register_graph("theirs", &text),
            foreign,
            step_id,
        }
    }

    fn key(&self, name: &str) -> String {
        format!("{CPU};{:016x};{CPU};{name};0:0", self.foreign.incarnation)
    }

    fn request(&self, send: Option<f32>, recv: &str) -> pb::RunGraphRequest {
        let send = send.map(|x| pb::NamedTensorProto {
            name: self.key("x"),
            tensor: Some(Tensor::scalar(x).to_proto().unwrap()),
        });
        pb::RunGraphRequest {
            session_handle: "theirs".to_owned(),
            create_worker_session_called: true,
            graph_handle: self.graph_handle.clone(),
            step_id: self.step_id,
            is_partial: true,
            send: send.into_iter().collect(),
            recv_key: vec![self.key(recv)],
            ..pb::RunGraphRequest::default()
        }
    }

    /// The first call: feeds and fetches, and leaves the step waiting for the queue.
    fn begin(&self, watcher: &Session) {
        let before = value(watcher, "count:0").unwrap();
        let first: pb::RunGraphResponse = self
            .foreign
            .raw
            .unary(path::RUN_GRAPH, &self.request(Some(7.0), "y"))
            .unwrap();
        let tensor = Tensor::from_proto(first.recv[0].tensor.as_ref().unwrap()).unwrap();
        assert_eq!(tensor.to_scalar::<f32>().unwrap(), 7.0);
        assert_eq!(value(watcher, "count:0").unwrap(), before + 1.0);
    }

    fn take(&self) -> JoinHandle<Result<pb::RunGraphResponse>> {
        self.foreign.start(path::RUN_GRAPH, self.request(None, "z"))
    }
}

/// Whether what is put into the queue is still there: no step took it.
fn stays(watcher: &Session) -> bool {
    crate::common::put(watcher, 1.0).unwrap();
    let stays = crate::common::size(watcher) == 1;
    if stays {
        value(watcher, "got:0").unwrap();
    }
    stays
}

#[test]
fn given_up_cleaned_up_and_closed_partial_steps_end() {
    let server = server();
    let watcher = session(server.target(), &queue("partial"));
    crate::common::run(&watcher, "init").unwrap();
    let foreign = Foreign::new(&server);
    foreign.open("theirs");

    // The last call takes what the queue has.
    let whole = Taking::new(&foreign, "partial", 1 << 40);
    whole.begin(&watcher);
    let taken = whole.take();
    assert!(!stays(&watcher));
    let taken = foreign.raw.runtime.block_on(taken).unwrap().unwrap();
    let taken = Tensor::from_proto(taken.recv[0].tensor.as_ref().unwrap()).unwrap();
    assert_eq!(taken.to_scalar::<f32>().unwrap(), 1.0);
    foreign.clean_up(whole.step_id);

    let cleaned = Taking::new(&foreign, "partial", 2 << 40);
    cleaned.begin(&watcher);
    let waiting = cleaned.take();
    foreign.clean_up(cleaned.step_id);
    let ended = foreign.raw.runtime.block_on(waiting).unwrap();
    assert_status(ended, Code::Aborted, "Cleanup");
    wait_until("the end of the cleaned step", || stays(&watcher));
    let more: Result<pb::RunGraphResponse> = foreign
        .raw
        .unary(path::RUN_GRAPH, &cleaned.request(None, "z"));
    assert_status(more, Code::Aborted, "Cleanup");

    let given_up = Taking::new(&foreign, "partial", 3 << 40);
    given_up.begin(&watcher);
    let call = given_up.take();
    wait_until("the call", || foreign.raw.status().steps == 1);
    call.abort();
    wait_until("the end of the given up step", || {
        foreign.raw.status().steps == 0
    });
    assert!(stays(&watcher));

    let closed = Taking::new(&foreign, "partial", 4 << 40);
    closed.begin(&watcher);
    foreign.close("theirs");
    wait_until("the end of the session's step", || stays(&watcher));
    assert_eq!(foreign.raw.status().steps, 0);
}
