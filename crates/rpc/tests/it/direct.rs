//! Large tensors between tasks on one machine.

use tensorfleet_rpc::{Server, ServerOptions, Session};
use tensorfleet_status::Code;

use crate::cluster;
use crate::common::{Raw, assert_status, graph, run, session_of, value, wait_until};

/// Half a million ones on the ps, added up on the worker.
const PULL: &str = "v = VarHandleOp() {dtype=DT_FLOAT, shape=[500000], shared_name='v'}
     shape = int32[1]{500000}
     one = float[]{1}
     ones = Fill(shape, one)
     init = AssignVariableOp(v, ones)
     more = AssignAddVariableOp(v, ones)
     value = ReadVariableOp(v) {dtype=DT_FLOAT}
     axis = int32[1]{0}
     sum = Sum(value, axis)";

const BYTES: u64 = 4 * 500_000;

/// A ps and a worker.
fn cluster(direct: [bool; 2]) -> [Server; 2] {
    let options = direct.map(|direct_transfers| ServerOptions {
        direct_transfers,
        ..ServerOptions::default()
    });
    let [ps, worker] = options;
    let servers = cluster::cluster(&[("ps", vec![ps]), ("worker", vec![worker])]);
    servers.try_into().ok().unwrap()
}

fn pulling(worker: &Server) -> Session {
    let mut def = graph(PULL);
    for node in &mut def.node {
        let job = if node.name == "sum" { "worker" } else { "ps" };
        node.device = format!("/job:{job}/task:0");
    }
    session_of(worker.target(), &def)
}

#[test]
fn tensors_are_read_where_they_are() {
    let [ps, worker] = cluster([true, true]);
    let session = pulling(&worker);
    run(&session, "init").unwrap();
    for round in 1..=5 {
        assert_eq!(value(&session, "sum:0").unwrap(), 500_000.0 * round as f32);
        run(&session, "more").unwrap();
    }
    let ps = Raw::new(ps.target());
    assert_eq!(ps.status().lent_bytes, 5 * BYTES);
    wait_until("the end of all leases", || ps.status().lent_tensors == 0);
}

#[test]
fn either_task_may_want_messages() {
    for direct in [[false, true], [true, false], [false, false]] {
        let [ps, worker] = cluster(direct);
        let session = pulling(&worker);
        run(&session, "init").unwrap();
        assert_eq!(value(&session, "sum:0").unwrap(), 500_000.0);
        assert_eq!(Raw::new(ps.target()).status().lent_bytes, 0);
    }
}

#[test]
fn an_answer_that_is_too_large_fails_its_step() {
    let sender = ServerOptions {
        direct_transfers: false,
        ..ServerOptions::default()
    };
    let mut receiver = sender.clone();
    receiver.limits.max_message_bytes = 1_000_000;
    let servers = cluster::cluster(&[("ps", vec![sender]), ("worker", vec![receiver])]);
    let session = pulling(&servers[1]);
    run(&session, "init").unwrap();
    let sum = value(&session, "sum:0");
    assert_status(sum, Code::ResourceExhausted, "larger than max");
}
