//! Handles of state, fetched and fed.

use tensorfleet_rpc::{ServerOptions, Session};
use tensorfleet_tensor::DType;

use crate::cluster::cluster;
use crate::common::{graph, run, session_of};

/// A variable that is 2, and a read of whatever a fed handle stands for.
pub(crate) const GRAPH: &str = "v = VarHandleOp() {dtype=DT_FLOAT, shape=[], shared_name='handles'}
     two = float[]{2}
     init = AssignVariableOp(v, two)
     h = Placeholder() {dtype=DT_RESOURCE}
     through = ReadVariableOp(h) {dtype=DT_FLOAT}";

/// Fetches the handle in [`GRAPH`], feeds it and reads the variable through it.
pub(crate) fn stand_for_their_state(session: &Session) {
    run(session, "init").unwrap();
    let handle = session.run(&[], &["v:0"], &[]).unwrap().remove(0);
    assert_eq!(handle.dtype(), DType::Resource);
    let value = session.run(&[("h:0", handle)], &["through:0"], &[]);
    assert_eq!(value.unwrap()[0].to_scalar::<f32>().unwrap(), 2.0);
}

#[test]
fn state_of_another_task_can_be_named() {
    let one = || vec![ServerOptions::default()];
    let servers = cluster(&[("ps", one()), ("worker", one())]);
    let mut def = graph(GRAPH);
    for node in &mut def.node {
        node.device = "/job:ps/task:0".into();
    }
    for server in &servers {
        stand_for_their_state(&session_of(server.target(), &def));
    }
}
