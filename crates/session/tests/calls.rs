//! Ops that call functions by name: For, RemoteCall, SymbolicGradient.

use tensorfleet_proto::{GraphDef, text};
use tensorfleet_session::{RunOptions, Session, SessionOptions};
use tensorfleet_tensor::Tensor;

const LIBRARY: &str = r#"
library {
  function {
    signature {
      name: "Double"
      input_arg { name: "x" type: DT_FLOAT }
      output_arg { name: "y" type: DT_FLOAT }
    }
    node_def { name: "sum" op: "AddV2" input: "x" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
    ret { key: "y" value: "sum:z:0" }
  }
  function {
    signature {
      name: "DoubleAgain"
      input_arg { name: "i" type: DT_INT32 }
      input_arg { name: "x" type: DT_FLOAT }
      output_arg { name: "y" type: DT_FLOAT }
    }
    node_def { name: "sum" op: "AddV2" input: "x" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
    ret { key: "y" value: "sum:z:0" }
  }
}
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
"#;

/// `y:0` with 3 fed to `x`, with and without rewrites.
fn run(nodes: &str) -> [f32; 2] {
    [true, false].map(|optimize| {
        let session = Session::new(SessionOptions {
            optimize,
            ..SessionOptions::default()
        })
        .unwrap();
        let graph: GraphDef = text::parse(&format!("{LIBRARY}{nodes}")).unwrap();
        session.extend(&graph).unwrap();
        let fed = [("x:0", Tensor::scalar(3.0f32))];
        let fetched = session.run(&fed, &["y:0"], &[]).unwrap();
        fetched[0].to_scalar().unwrap()
    })
}

fn int32(name: &str, value: i32) -> String {
    format!(
        r#"node {{ name: "{name}" op: "Const" attr {{ key: "dtype" value {{ type: DT_INT32 }} }}
           attr {{ key: "value" value {{ tensor {{ dtype: DT_INT32 tensor_shape {{ }} int_val: {value} }} }} }} }}"#
    )
}

#[test]
fn for_calls_its_body_once_per_step() {
    let nodes = format!(
        r#"{} {} {}
        node {{ name: "y" op: "For" input: "start" input: "limit" input: "delta" input: "x"
          attr {{ key: "T" value {{ list {{ type: DT_FLOAT }} }} }}
          attr {{ key: "body" value {{ func {{ name: "DoubleAgain" }} }} }} }}"#,
        int32("start", 0),
        int32("limit", 5),
        int32("delta", 2)
    );
    // Steps 0, 2 and 4.
    assert_eq!(run(&nodes), [24.0, 24.0]);
}

#[test]
fn remote_call_to_the_own_device_is_a_call() {
    let nodes = r#"
        node { name: "target" op: "Const" attr { key: "dtype" value { type: DT_STRING } }
          attr { key: "value" value { tensor { dtype: DT_STRING tensor_shape { }
            string_val: "/job:localhost/replica:0/task:0/device:CPU:0" } } } }
        node { name: "y" op: "RemoteCall" input: "target" input: "x"
          attr { key: "Tin" value { list { type: DT_FLOAT } } }
          attr { key: "Tout" value { list { type: DT_FLOAT } } }
          attr { key: "f" value { func { name: "Double" } } } }"#;
    assert_eq!(run(nodes), [6.0, 6.0]);
}

#[test]
fn symbolic_gradient_differentiates_a_function() {
    let nodes = r#"
        node { name: "y" op: "SymbolicGradient" input: "x" input: "x"
          attr { key: "Tin" value { list { type: DT_FLOAT type: DT_FLOAT } } }
          attr { key: "Tout" value { list { type: DT_FLOAT } } }
          attr { key: "f" value { func { name: "Double" } } } }"#;
    // Twice the gradient that comes in, which is x itself.
    assert_eq!(run(nodes), [6.0, 6.0]);
}

#[test]
fn functions_that_are_not_to_be_inlined_stay_calls() {
    let library = LIBRARY.replacen(
        "signature {",
        "attr { key: \"_noinline\" value { b: true } } signature {",
        1,
    );
    let nodes = r#"node { name: "y" op: "Double" input: "x" }"#;
    for (library, is_call) in [(LIBRARY, false), (library.as_str(), true)] {
        let session = Session::new(SessionOptions::default()).unwrap();
        let graph: GraphDef = text::parse(&format!("{library}{nodes}")).unwrap();
        session.extend(&graph).unwrap();
        let options = RunOptions {
            trace: true,
            ..RunOptions::default()
        };
        let fed = [("x:0", Tensor::scalar(3.0f32))];
        let (fetched, metadata) = session.run_with(&options, &fed, &["y:0"], &[]).unwrap();
        assert_eq!(fetched[0].to_scalar::<f32>().unwrap(), 6.0);
        let calls = metadata
            .nodes
            .iter()
            .filter(|node| node.op == "PartitionedCall");
        assert_eq!(calls.count() == 1, is_call);
    }
}

#[test]
fn a_call_has_its_effects_whatever_is_fetched() {
    const GRAPH: &str = r#"
library {
  function {
    signature {
      name: "Sets"
      input_arg { name: "x" type: DT_FLOAT }
      output_arg { name: "same" type: DT_FLOAT }
      is_stateful: true
    }
    node_def { name: "v" op: "VarHandleOp" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape { } } }
      attr { key: "shared_name" value { s: "v" } } }
    node_def { name: "set" op: "AssignVariableOp" input: "v:resource:0" input: "x" attr { key: "dtype" value { type: DT_FLOAT } } }
    ret { key: "same" value: "x" }
  }
  function {
    signature {
      name: "Outer"
      input_arg { name: "x" type: DT_FLOAT }
      output_arg { name: "same" type: DT_FLOAT }
      is_stateful: true
    }
    node_def { name: "inner" op: "StatefulPartitionedCall" input: "x" attr { key: "f" value { func { name: "Sets" } } }
      attr { key: "Tin" value { list { type: DT_FLOAT } } } attr { key: "Tout" value { list { type: DT_FLOAT } } } }
    ret { key: "same" value: "inner:output:0" }
  }
}
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "y" op: "StatefulPartitionedCall" input: "x" attr { key: "f" value { func { name: "Outer" } } }
  attr { key: "Tin" value { list { type: DT_FLOAT } } } attr { key: "Tout" value { list { type: DT_FLOAT } } } }
node { name: "v" op: "VarHandleOp" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape { } } }
  attr { key: "shared_name" value { s: "v" } } }
node { name: "value" op: "ReadVariableOp" input: "v" attr { key: "dtype" value { type: DT_FLOAT } } }
"#;
    for optimize in [true, false] {
        let session = Session::new(SessionOptions {
            optimize,
            ..SessionOptions::default()
        })
        .unwrap();
        let graph: GraphDef = text::parse(GRAPH).unwrap();
        session.extend(&graph).unwrap();
        let fed = [("x:0", Tensor::scalar(3.0f32))];
        session.run(&fed, &["y:0"], &[]).unwrap();
        let value = session.run(&[], &["value:0"], &[]).unwrap();
        assert_eq!(value[0].to_scalar::<f32>().unwrap(), 3.0);
    }
}
