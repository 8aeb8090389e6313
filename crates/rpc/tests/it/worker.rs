//! A worker called by a master that is not ours.

use tensorfleet_proto as pb;
use tensorfleet_proto::services::worker as path;
use tensorfleet_rpc::Server;
use tensorfleet_rpc::grpc::CallOptions;
use tensorfleet_status::{Code, Result};
use tensorfleet_tensor::Tensor;
use tokio::task::JoinHandle;

use crate::common::{Raw, assert_status, graph, request_id, server, wait_until};

const CPU: &str = "/job:local/replica:0/task:0/device:CPU:0";
const CLIENT: &str = "/job:client/replica:0/task:0/device:CPU:0";

/// What a foreign master knows of a worker.
pub(crate) struct Foreign {
    pub(crate) raw: Raw,
    pub(crate) incarnation: u64,
}

impl Foreign {
    pub(crate) fn new(server: &Server) -> Foreign {
        let raw = Raw::new(server.target());
        let status: pb::GetStatusResponse = raw
            .unary(path::GET_STATUS, &pb::GetStatusRequest {})
            .unwrap();
        let device = &status.device_attributes[0];
        assert_eq!(device.name, CPU);
        let incarnation = device.incarnation;
        Foreign { raw, incarnation }
    }

    fn key(&self) -> String {
        format!("{CPU};{:016x};{CLIENT};edge;0:0", self.incarnation)
    }

    /// Registers a graph that sends -[1, 2]; its handle.
    fn register(&self, session: &str) -> String {
        let text = format!(
            "a = float[2]{{1, 2}}
             n = Neg(a)
             s = _Send(n) {{tensor_name='edge', send_device='{CPU}', send_device_incarnation={}, recv_device='{CLIENT}'}}",
            self.incarnation as i64
        );
        self.register_graph(session, &text)
    }

    /// Registers a graph; its handle.
    pub(crate) fn register_graph(&self, session: &str, text: &str) -> String {
        let mut def = graph(text);
        for node in &mut def.node {
            CPU.clone_into(&mut node.device);
        }
        let request = pb::RegisterGraphRequest {
            session_handle: session.to_owned(),
            create_worker_session_called: true,
            graph_def: Some(def),
            ..pb::RegisterGraphRequest::default()
        };
        let answer: pb::RegisterGraphResponse =
            self.raw.unary(path::REGISTER_GRAPH, &request).unwrap();
        answer.graph_handle
    }

    pub(crate) fn open(&self, session: &str) {
        let request = pb::CreateWorkerSessionRequest {
            session_handle: session.to_owned(),
            ..pb::CreateWorkerSessionRequest::default()
        };
        let _: pb::CreateWorkerSessionResponse = self
            .raw
            .unary(path::CREATE_WORKER_SESSION, &request)
            .unwrap();
    }

    pub(crate) fn close(&self, session: &str) {
        let request = pb::DeleteWorkerSessionRequest {
            session_handle: session.to_owned(),
        };
        let _: pb::DeleteWorkerSessionResponse = self
            .raw
            .unary(path::DELETE_WORKER_SESSION, &request)
            .unwrap();
    }

    pub(crate) fn clean_up(&self, step_id: i64) {
        let request = pb::CleanupGraphRequest { step_id };
        let _: pb::CleanupGraphResponse = self.raw.unary(path::CLEANUP_GRAPH, &request).unwrap();
    }

    /// Makes a call that nobody waits for yet; aborting it cancels the call.
    pub(crate) fn start<Q, A>(&self, path: &'static str, request: Q) -> JoinHandle<Result<A>>
    where
        Q: prost::Message + 'static,
        A: prost::Message + Default + 'static,
    {
        let channel = self.raw.channel.clone();
        let options = CallOptions::default();
        self.raw
            .runtime
            .spawn(async move { channel.unary(path, &request, &options).await })
    }

    fn receive(&self, step_id: i64) -> pb::RecvTensorRequest {
        pb::RecvTensorRequest {
            step_id,
            rendezvous_key: self.key(),
            request_id: request_id(),
            ..pb::RecvTensorRequest::default()
        }
    }
}

#[test]
fn a_foreign_master_runs_a_graph_and_receives_its_tensor() {
    let server = server();
    let foreign = Foreign::new(&server);
    foreign.open("theirs");
    let graph_handle = foreign.register("theirs");
    for step_id in [1 << 40, (1 << 40) + 1] {
        let run = pb::RunGraphRequest {
            session_handle: "theirs".to_owned(),
            create_worker_session_called: true,
            graph_handle: graph_handle.clone(),
            step_id,
            request_id: request_id(),
            ..pb::RunGraphRequest::default()
        };
        let wanted = foreign.receive(step_id);
        // One of the two receives comes before its step.
        let waiting = foreign.start::<_, pb::RecvTensorResponse>(path::RECV_TENSOR, wanted.clone());
        let _: pb::RunGraphResponse = foreign.raw.unary(path::RUN_GRAPH, &run).unwrap();
        let received = foreign.raw.runtime.block_on(waiting).unwrap().unwrap();
        let tensor = Tensor::from_proto(&received.tensor.unwrap()).unwrap();
        assert_eq!(tensor.slice::<f32>().unwrap(), [-1.0, -2.0]);
        assert!(!received.is_dead);
        let twice = foreign
            .raw
            .unary::<_, pb::RecvTensorResponse>(path::RECV_TENSOR, &wanted);
        assert_status(twice, Code::Aborted, "was received twice");
        foreign.clean_up(step_id);
    }
    let status = foreign.raw.status();
    assert_eq!((status.worker_sessions, status.steps), (1, 0));
    foreign.close("theirs");
    assert_eq!(foreign.raw.status().worker_sessions, 0);
}

#[test]
fn cleaning_up_ends_who_waits_for_a_tensor() {
    let server = server();
    let foreign = Foreign::new(&server);
    let step_id = 1 << 41;
    let waiting =
        foreign.start::<_, pb::RecvTensorResponse>(path::RECV_TENSOR, foreign.receive(step_id));
    wait_until("the receive", || foreign.raw.status().steps == 1);
    foreign.clean_up(step_id);
    let received = foreign.raw.runtime.block_on(waiting).unwrap();
    assert_status(received, Code::Aborted, "");
    assert_eq!(foreign.raw.status().steps, 0);
}

#[test]
fn receives_of_steps_that_never_come_leave_nothing() {
    let server = server();
    let foreign = Foreign::new(&server);
    let waiting: Vec<_> = (1..4)
        .map(|step| {
            let wanted = foreign.receive(step << 42);
            foreign.start::<_, pb::RecvTensorResponse>(path::RECV_TENSOR, wanted)
        })
        .collect();
    wait_until("the receives", || foreign.raw.status().steps == 3);
    for call in waiting {
        call.abort();
    }
    wait_until("the end of the receives", || {
        foreign.raw.status().steps == 0
    });
}

#[test]
fn what_comes_after_the_cleanup_is_refused_at_once() {
    let server = server();
    let foreign = Foreign::new(&server);
    foreign.open("theirs");
    let graph_handle = foreign.register("theirs");
    let step_id = 1 << 43;
    foreign.clean_up(step_id);
    let received: Result<pb::RecvTensorResponse> = foreign
        .raw
        .unary(path::RECV_TENSOR, &foreign.receive(step_id));
    assert_status(received, Code::Aborted, &format!("Cleanup {step_id}"));
    let run = pb::RunGraphRequest {
        session_handle: "theirs".to_owned(),
        create_worker_session_called: true,
        graph_handle,
        step_id,
        ..pb::RunGraphRequest::default()
    };
    let run: Result<pb::RunGraphResponse> = foreign.raw.unary(path::RUN_GRAPH, &run);
    assert_status(run, Code::Aborted, &format!("Cleanup {step_id}"));
    assert_eq!(foreign.raw.status().steps, 0);
}

#[test]
fn steps_that_nobody_cleans_up_go_with_their_session_or_their_caller() {
    let server = server();
    let foreign = Foreign::new(&server);
    foreign.open("theirs");
    let run = |graph_handle: String, step_id| pb::RunGraphRequest {
        session_handle: "theirs".to_owned(),
        create_worker_session_called: true,
        graph_handle,
        step_id,
        ..pb::RunGraphRequest::default()
    };
    let sends = foreign.register("theirs");
    let _: pb::RunGraphResponse = foreign
        .raw
        .unary(path::RUN_GRAPH, &run(sends, 1 << 44))
        .unwrap();
    assert_eq!(foreign.raw.status().steps, 1);
    // This one waits for what never comes until its caller gives up.
    let text = format!(
        "r = _Recv() {{tensor_type=DT_FLOAT, tensor_name='never', send_device='{CPU}', send_device_incarnation={}, recv_device='{CPU}'}}",
        foreign.incarnation as i64
    );
    let waits = foreign.register_graph("theirs", &text);
    let call = foreign.start::<_, pb::RunGraphResponse>(path::RUN_GRAPH, run(waits, 1 << 45));
    wait_until("the second step", || foreign.raw.status().steps == 2);
    call.abort();
    wait_until("the end of the second step", || {
        foreign.raw.status().steps == 1
    });
    foreign.close("theirs");
    assert_eq!(foreign.raw.status().steps, 0);
}

#[test]
fn wrong_keys_sessions_and_graphs() {
    let server = server();
    let foreign = Foreign::new(&server);
    let receive = |rendezvous_key: String| {
        let request = pb::RecvTensorRequest {
            step_id: 7,
            rendezvous_key,
            ..pb::RecvTensorRequest::default()
        };
        foreign
            .raw
            .unary::<_, pb::RecvTensorResponse>(path::RECV_TENSOR, &request)
    };
    let wrong = receive("no key".to_owned());
    assert_status(wrong, Code::InvalidArgument, "rendezvous key: no key");
    let wrong = foreign.key().replacen("CPU:0", "CPU:9", 1);
    assert_status(receive(wrong), Code::InvalidArgument, "unknown device");
    let other = format!("{CPU};{:016x};{CLIENT};edge;0:0", foreign.incarnation ^ 1);
    assert_status(receive(other), Code::Aborted, "device incarnation");
    let run = |session: &str| {
        let request = pb::RunGraphRequest {
            session_handle: session.to_owned(),
            create_worker_session_called: true,
            graph_handle: "no such graph".to_owned(),
            ..pb::RunGraphRequest::default()
        };
        foreign
            .raw
            .unary::<_, pb::RunGraphResponse>(path::RUN_GRAPH, &request)
    };
    assert_status(run("no such session"), Code::Aborted, "no such session");
    foreign.open("theirs");
    assert_status(run("theirs"), Code::Aborted, "no such graph");
}

#[test]
fn a_receiver_that_cannot_read_memory_asks_again_for_a_message() {
    let server = server();
    let foreign = Foreign::new(&server);
    foreign.open("direct");
    let text = format!(
        "shape = int32[1]{{100000}}
         one = float[]{{1}}
         ones = Fill(shape, one)
         s = _Send(ones) {{tensor_name='edge', send_device='{CPU}', send_device_incarnation={}, recv_device='{CLIENT}'}}",
        foreign.incarnation as i64
    );
    let graph_handle = foreign.register_graph("direct", &text);
    let run = pb::RunGraphRequest {
        session_handle: "direct".into(),
        create_worker_session_called: true,
        graph_handle,
        step_id: 77,
        ..pb::RunGraphRequest::default()
    };
    let _: pb::RunGraphResponse = foreign.raw.unary(path::RUN_GRAPH, &run).unwrap();
    let plain = foreign.receive(77);
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let pids = std::fs::read_link("/proc/self/ns/pid").unwrap();
    let host = format!("{} {}", boot.trim(), pids.display());
    // The first field, a string.
    let mut value = vec![0x0a, u8::try_from(host.len()).unwrap()];
    value.extend(host.as_bytes());
    let offering = pb::RecvTensorRequest {
        transport_options: Some(pb::google::protobuf::Any {
            type_url: "tensorfleet.Offer".into(),
            value: value.into(),
        }),
        ..plain.clone()
    };
    let lent: pb::RecvTensorResponse = foreign.raw.unary(path::RECV_TENSOR, &offering).unwrap();
    assert!(lent.require_ack && lent.transport_options.is_some());
    assert!(lent.tensor.unwrap().tensor_content.is_empty());
    assert_eq!(foreign.raw.status().lent_tensors, 1);

    let sent: pb::RecvTensorResponse = foreign.raw.unary(path::RECV_TENSOR, &plain).unwrap();
    let tensor = Tensor::from_proto(&sent.tensor.unwrap()).unwrap();
    assert_eq!(tensor.slice::<f32>().unwrap(), [1.0; 100_000]);
    assert_eq!(foreign.raw.status().lent_tensors, 0);
    let twice = foreign
        .raw
        .unary::<_, pb::RecvTensorResponse>(path::RECV_TENSOR, &plain);
    assert_status(twice, Code::Aborted, "received twice");
}
