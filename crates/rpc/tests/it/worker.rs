//! A worker called by a master that is not ours.

use tensorfleet_proto as pb;
use tensorfleet_proto::services::worker as path;
use tensorfleet_rpc::Server;
use tensorfleet_status::Code;
use tensorfleet_tensor::Tensor;

use crate::common::{Raw, assert_status, graph, request_id, server};

const CPU: &str = "/job:local/replica:0/task:0/device:CPU:0";
const CLIENT: &str = "/job:client/replica:0/task:0/device:CPU:0";

/// What a foreign master knows of a worker.
struct Foreign {
    raw: Raw,
    incarnation: u64,
}

impl Foreign {
    fn new(server: &Server) -> Foreign {
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
        let mut def = graph(&text);
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

    fn open(&self, session: &str) {
        let request = pb::CreateWorkerSessionRequest {
            session_handle: session.to_owned(),
            ..pb::CreateWorkerSessionRequest::default()
        };
        let _: pb::CreateWorkerSessionResponse = self
            .raw
            .unary(path::CREATE_WORKER_SESSION, &request)
            .unwrap();
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
        let waiting = foreign.raw.runtime.spawn({
            let (channel, wanted) = (foreign.raw.channel.clone(), wanted.clone());
            async move {
                channel
                    .unary::<_, pb::RecvTensorResponse>(
                        path::RECV_TENSOR,
                        &wanted,
                        &Default::default(),
                    )
                    .await
            }
        });
        let _: pb::RunGraphResponse = foreign.raw.unary(path::RUN_GRAPH, &run).unwrap();
        let received = foreign.raw.runtime.block_on(waiting).unwrap().unwrap();
        let tensor = Tensor::from_proto(&received.tensor.unwrap()).unwrap();
        assert_eq!(tensor.slice::<f32>().unwrap(), [-1.0, -2.0]);
        assert!(!received.is_dead);
        let twice = foreign
            .raw
            .unary::<_, pb::RecvTensorResponse>(path::RECV_TENSOR, &wanted);
        assert_status(twice, Code::Aborted, "was received twice");
        let clean = pb::CleanupGraphRequest { step_id };
        let _: pb::CleanupGraphResponse = foreign.raw.unary(path::CLEANUP_GRAPH, &clean).unwrap();
    }
    let status = foreign.raw.status();
    assert_eq!((status.worker_sessions, status.steps), (1, 0));
    let delete = pb::DeleteWorkerSessionRequest {
        session_handle: "theirs".to_owned(),
    };
    let _: pb::DeleteWorkerSessionResponse = foreign
        .raw
        .unary(path::DELETE_WORKER_SESSION, &delete)
        .unwrap();
    assert_eq!(foreign.raw.status().worker_sessions, 0);
}

#[test]
fn cleaning_up_ends_who_waits_for_a_tensor() {
    let server = server();
    let foreign = Foreign::new(&server);
    let step_id = 1 << 41;
    let wanted = foreign.receive(step_id);
    let channel = foreign.raw.channel.clone();
    let waiting = foreign.raw.runtime.spawn(async move {
        channel
            .unary::<_, pb::RecvTensorResponse>(path::RECV_TENSOR, &wanted, &Default::default())
            .await
    });
    crate::common::wait_until("the receive", || foreign.raw.status().steps == 1);
    let clean = pb::CleanupGraphRequest { step_id };
    let _: pb::CleanupGraphResponse = foreign.raw.unary(path::CLEANUP_GRAPH, &clean).unwrap();
    let received = foreign.raw.runtime.block_on(waiting).unwrap();
    assert_status(received, Code::Aborted, "");
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
