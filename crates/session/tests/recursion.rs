//! Functions that call functions, deeply and without end: no stack is deep enough for them.

use tensorfleet_proto::{GraphDef, text};
use tensorfleet_session::{Session, SessionOptions};
use tensorfleet_status::{Code, Result};
use tensorfleet_tensor::Tensor;

const NODES: &str = r#"
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "y" op: "PartitionedCall" input: "x"
  attr { key: "Tin" value { list { type: DT_FLOAT } } } attr { key: "Tout" value { list { type: DT_FLOAT } } }
  attr { key: "f" value { func { name: "f0" } } } }
"#;

/// A function of a float that returns the output `ret` of its nodes.
fn function(name: &str, nodes: &str, ret: &str) -> String {
    format!(
        r#"function {{
             signature {{ name: "{name}" input_arg {{ name: "x" type: DT_FLOAT }} output_arg {{ name: "y" type: DT_FLOAT }} }}
             {nodes}
             ret {{ key: "y" value: "{ret}" }} }}"#
    )
}

/// A node that calls one function where `x` is positive, else another.
fn branch(positive: &str, other: &str) -> String {
    format!(
        r#"node_def {{ name: "zero" op: "Const" attr {{ key: "dtype" value {{ type: DT_FLOAT }} }}
             attr {{ key: "value" value {{ tensor {{ dtype: DT_FLOAT tensor_shape {{ }} float_val: 0 }} }} }} }}
           node_def {{ name: "is" op: "Greater" input: "x" input: "zero:output:0" attr {{ key: "T" value {{ type: DT_FLOAT }} }} }}
           node_def {{ name: "if" op: "If" input: "is:z:0" input: "x"
             attr {{ key: "Tcond" value {{ type: DT_BOOL }} }}
             attr {{ key: "Tin" value {{ list {{ type: DT_FLOAT }} }} }} attr {{ key: "Tout" value {{ list {{ type: DT_FLOAT }} }} }}
             attr {{ key: "then_branch" value {{ func {{ name: "{positive}" }} }} }}
             attr {{ key: "else_branch" value {{ func {{ name: "{other}" }} }} }} }}"#
    )
}

fn same() -> String {
    let nodes = r#"node_def { name: "same" op: "Identity" input: "x" attr { key: "T" value { type: DT_FLOAT } } }"#;
    function("same", nodes, "same:output:0")
}

/// `y:0` of [`NODES`] with `x` fed, with and without rewrites.
fn run(library: &str, x: f32) -> [Result<f32>; 2] {
    let graph: GraphDef = text::parse(&format!("{NODES} library {{ {library} }}")).unwrap();
    [true, false].map(|optimize| {
        let session = Session::new(SessionOptions {
            optimize,
            ..SessionOptions::default()
        })?;
        session.extend(&graph)?;
        let fetched = session.run(&[("x:0", Tensor::scalar(x))], &["y:0"], &[])?;
        fetched[0].to_scalar()
    })
}

#[test]
fn recursion_ends_where_the_graph_says() {
    let one = r#"
      node_def { name: "one" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
        attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: 1 } } } }
      node_def { name: "less" op: "Sub" input: "x" input: "one:output:0" attr { key: "T" value { type: DT_FLOAT } } }
      node_def { name: "call" op: "StatefulPartitionedCall" input: "less:z:0"
        attr { key: "Tin" value { list { type: DT_FLOAT } } } attr { key: "Tout" value { list { type: DT_FLOAT } } }
        attr { key: "f" value { func { name: "f0" } } } }
      node_def { name: "sum" op: "AddV2" input: "x" input: "call:output:0" attr { key: "T" value { type: DT_FLOAT } } }"#;
    let library = [
        function("f0", &branch("more", "same"), "if:output:0"),
        function("more", one, "sum:z:0"),
        same(),
    ];
    for result in run(&library.concat(), 1500.0) {
        assert_eq!(result.unwrap(), 1500.0 * 1501.0 / 2.0);
    }
}

#[test]
fn branches_may_be_nested_deeply() {
    const DEPTH: usize = 600;
    let mut library = same();
    for at in 0..DEPTH {
        let next = if at + 1 == DEPTH {
            "same".to_owned()
        } else {
            format!("f{}", at + 1)
        };
        library += &function(&format!("f{at}"), &branch(&next, "same"), "if:output:0");
    }
    for result in run(&library, 7.0) {
        assert_eq!(result.unwrap(), 7.0);
    }
}

#[test]
fn recursion_without_end_is_refused() {
    let call = r#"node_def { name: "call" op: "PartitionedCall" input: "x"
      attr { key: "Tin" value { list { type: DT_FLOAT } } } attr { key: "Tout" value { list { type: DT_FLOAT } } }
      attr { key: "f" value { func { name: "f0" } } } }"#;
    for result in run(&function("f0", call, "call:output:0"), 1.0) {
        let error = result.unwrap_err();
        assert_eq!(error.code(), Code::ResourceExhausted, "{error}");
        assert!(error.message().contains("function f0"), "{error}");
    }
}
