//! `RemoteCall`: a function called on a device of another task.

use tensorfleet_proto::{GraphDef, text};
use tensorfleet_rpc::{ServerOptions, Session};
use tensorfleet_status::{Code, Result};
use tensorfleet_tensor::Tensor;

use crate::cluster::cluster;
use crate::common::session_of;

/// `Scaled` multiplies by a variable of the task where it runs; `f` of the call is chosen by `{f}`, its target by `{target}`.
const GRAPH: &str = r#"
library {
  function {
    signature {
      name: "Scaled"
      input_arg { name: "x" type: DT_FLOAT }
      output_arg { name: "y" type: DT_FLOAT }
      is_stateful: true
    }
    node_def { name: "v" op: "VarHandleOp" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape { } } }
      attr { key: "shared_name" value { s: "scale" } } }
    node_def { name: "value" op: "ReadVariableOp" input: "v:resource:0" attr { key: "dtype" value { type: DT_FLOAT } } }
    node_def { name: "all" op: "Mul" input: "x" input: "value:value:0" attr { key: "T" value { type: DT_FLOAT } } }
    ret { key: "y" value: "all:z:0" }
  }
  function {
    signature { name: "Refuses" input_arg { name: "x" type: DT_FLOAT } output_arg { name: "y" type: DT_FLOAT } }
    node_def { name: "checked" op: "CheckNumerics" input: "x" attr { key: "T" value { type: DT_FLOAT } }
      attr { key: "message" value { s: "not here" } } }
    ret { key: "y" value: "checked:output:0" }
  }
}
node { name: "x" op: "Placeholder" device: "/job:worker/task:0" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "v" op: "VarHandleOp" device: "/job:worker/task:1" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { } } } attr { key: "shared_name" value { s: "scale" } } }
node { name: "three" op: "Const" device: "/job:worker/task:1" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: 3 } } } }
node { name: "init" op: "AssignVariableOp" device: "/job:worker/task:1" input: "v" input: "three"
  attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "target" op: "Const" device: "/job:worker/task:0" attr { key: "dtype" value { type: DT_STRING } }
  attr { key: "value" value { tensor { dtype: DT_STRING tensor_shape { } string_val: "{target}" } } } }
node { name: "y" op: "RemoteCall" device: "/job:worker/task:0" input: "target" input: "x"
  attr { key: "Tin" value { list { type: DT_FLOAT } } } attr { key: "Tout" value { list { type: DT_FLOAT } } }
  attr { key: "f" value { func { name: "{f}" } } } }
"#;

fn graph(function: &str, target: &str) -> GraphDef {
    text::parse(&GRAPH.replace("{f}", function).replace("{target}", target)).unwrap()
}

fn call(session: &Session, x: f32) -> Result<f32> {
    let fetched = session.run(&[("x:0", Tensor::scalar(x))], &["y:0"], &[])?;
    fetched[0].to_scalar()
}

#[test]
fn functions_run_where_the_call_says() {
    let servers = cluster(&[("worker", vec![ServerOptions::default(); 2])]);
    let target = servers[0].target();
    for device in ["/job:worker/replica:0/task:1/cpu:0", "/task:1"] {
        let session = session_of(target, &graph("Scaled", device));
        session.run(&[], &[], &["init"]).unwrap();
        for x in [1.0, 2.0] {
            assert_eq!(call(&session, x).unwrap(), 3.0 * x);
        }
    }
    // The own task has no such variable.
    let session = session_of(target, &graph("Scaled", "/job:worker/task:0"));
    assert_eq!(
        call(&session, 1.0).unwrap_err().code(),
        Code::FailedPrecondition
    );
}

#[test]
fn errors_come_back_from_there() {
    let servers = cluster(&[("worker", vec![ServerOptions::default(); 2])]);
    let target = servers[0].target();
    let session = session_of(target, &graph("Refuses", "/job:worker/task:1"));
    assert_eq!(call(&session, 1.0).unwrap(), 1.0);
    let error = call(&session, f32::NAN).unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    assert!(error.message().contains("not here"), "{error}");
    let session = session_of(target, &graph("Refuses", "/job:ps/task:1"));
    assert_eq!(
        call(&session, 1.0).unwrap_err().code(),
        Code::InvalidArgument
    );
}
