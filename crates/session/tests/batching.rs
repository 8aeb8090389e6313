//! Steps that meet in batches: what scripts of one step at a time cannot show.

use std::sync::Arc;
use std::thread::{JoinHandle, spawn};
use std::time::{Duration, Instant};

use tensorfleet_proto::{GraphDef, text};
use tensorfleet_session::{RunOptions, Session, SessionOptions};
use tensorfleet_status::{Code, Result};
use tensorfleet_tensor::Tensor;

/// `Counted` adds to each row how many rows there are; `Pair` wants more than it is given.
const LIBRARY: &str = r#"
library {
  function {
    signature {
      name: "Counted"
      input_arg { name: "x" type: DT_INT32 }
      input_arg { name: "more" type: DT_INT32 }
      output_arg { name: "y" type: DT_INT32 }
    }
    node_def { name: "rows" op: "Size" input: "x" attr { key: "T" value { type: DT_INT32 } } attr { key: "out_type" value { type: DT_INT32 } } }
    node_def { name: "sum" op: "AddV2" input: "x" input: "rows:output:0" attr { key: "T" value { type: DT_INT32 } } }
    node_def { name: "all" op: "AddV2" input: "sum:z:0" input: "more" attr { key: "T" value { type: DT_INT32 } } }
    ret { key: "y" value: "all:z:0" }
  }
  function {
    signature {
      name: "Pair"
      input_arg { name: "x" type: DT_INT32 }
      input_arg { name: "y" type: DT_INT32 }
      output_arg { name: "z" type: DT_INT32 }
    }
    node_def { name: "sum" op: "AddV2" input: "x" input: "y" attr { key: "T" value { type: DT_INT32 } } }
    ret { key: "z" value: "sum:z:0" }
  }
  function {
    signature { name: "Whole" input_arg { name: "x" type: DT_INT32 } output_arg { name: "y" type: DT_INT32 } }
    node_def { name: "size" op: "Size" input: "x" attr { key: "T" value { type: DT_INT32 } } attr { key: "out_type" value { type: DT_INT32 } } }
    ret { key: "y" value: "size:output:0" }
  }
}
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_INT32 } } }
node { name: "more" op: "Placeholder" attr { key: "dtype" value { type: DT_INT32 } } }
"#;

/// A call of a function in batches; `attrs` are ints.
fn call(function: &str, captured: &[&str], attrs: &[(&str, &str)]) -> String {
    let inputs: String = captured
        .iter()
        .map(|name| format!("input: \"{name}\" "))
        .collect();
    let types = "type: DT_INT32 ".repeat(captured.len());
    let attrs = attrs
        .iter()
        .map(|(name, value)| format!("attr {{ key: \"{name}\" value {{ {value} }} }} "));
    format!(
        r#"node {{ name: "y" op: "BatchFunction" input: "x" {inputs}
             attr {{ key: "f" value {{ func {{ name: "{function}" }} }} }}
             attr {{ key: "Tin" value {{ list {{ type: DT_INT32 }} }} }}
             attr {{ key: "Tcaptured" value {{ list {{ {types} }} }} }}
             attr {{ key: "Tout" value {{ list {{ type: DT_INT32 }} }} }}
             {} }}"#,
        attrs.collect::<String>()
    )
}

const SECONDS: (&str, &str) = ("batch_timeout_micros", "i: 60000000");
const SOON: (&str, &str) = ("batch_timeout_micros", "i: 20000");
const ONE_THREAD: (&str, &str) = ("num_batch_threads", "i: 1");

#[derive(Clone)]
struct Steps(Arc<Session>);

impl Steps {
    fn new(nodes: &str) -> Steps {
        let session = Session::new(SessionOptions::default()).unwrap();
        let graph: GraphDef = text::parse(&format!("{LIBRARY}{nodes}")).unwrap();
        session.extend(&graph).unwrap();
        Steps(Arc::new(session))
    }

    fn run(&self, x: &[i32]) -> Result<Vec<i32>> {
        let fed = [("x:0", Tensor::vector(x)), ("more:0", Tensor::scalar(100))];
        let fetched = self.0.run(&fed, &["y:0"], &[])?;
        Ok(fetched[0].slice::<i32>()?.to_vec())
    }

    fn later(&self, x: &'static [i32]) -> JoinHandle<Result<Vec<i32>>> {
        let steps = self.clone();
        spawn(move || steps.run(x))
    }
}

#[test]
fn steps_meet_in_a_full_batch_and_get_their_own_rows() {
    let steps = Steps::new(&call(
        "Counted",
        &["more"],
        &[ONE_THREAD, SECONDS, ("max_batch_size", "i: 3")],
    ));
    for _ in 0..3 {
        let other = steps.later(&[10, 20]);
        assert_eq!(steps.run(&[1]).unwrap(), [104]);
        assert_eq!(other.join().unwrap().unwrap(), [113, 123]);
    }
}

#[test]
fn a_batch_that_is_not_full_is_padded_when_its_time_has_come() {
    let sizes = ("allowed_batch_sizes", "list { i: 2 i: 4 }");
    let steps = Steps::new(&call(
        "Counted",
        &["more"],
        &[ONE_THREAD, SOON, ("max_batch_size", "i: 4"), sizes],
    ));
    assert_eq!(steps.run(&[1, 2, 3]).unwrap(), [105, 106, 107]);
    assert_eq!(steps.run(&[1]).unwrap(), [103]);
    assert_eq!(steps.run(&[]).unwrap(), [0; 0]);
}

#[test]
fn rows_beyond_an_allowed_size_wait_for_the_next_batch() {
    let sizes = ("allowed_batch_sizes", "list { i: 1 i: 4 }");
    let policy = ("batch_padding_policy", "s: 'BATCH_DOWN'");
    let steps = Steps::new(&call(
        "Counted",
        &["more"],
        &[ONE_THREAD, SOON, ("max_batch_size", "i: 4"), sizes, policy],
    ));
    let others = [steps.later(&[0]), steps.later(&[0])];
    assert_eq!(steps.run(&[0]).unwrap(), [101]);
    for other in others {
        assert_eq!(other.join().unwrap().unwrap(), [101]);
    }
}

#[test]
fn what_is_too_large_is_split_and_put_together_again() {
    for threads in [2, 0] {
        let steps = Steps::new(&call(
            "Counted",
            &["more"],
            &[
                ("num_batch_threads", &format!("i: {threads}")),
                SOON,
                ("max_batch_size", "i: 5"),
                ("allowed_batch_sizes", "list { i: 1 i: 2 }"),
                ("enable_large_batch_splitting", "b: true"),
            ],
        ));
        // Batches of two, two and one row.
        assert_eq!(
            steps.run(&[1, 2, 3, 4, 5]).unwrap(),
            [103, 104, 105, 106, 106]
        );
        let large = steps.run(&[0; 6]).unwrap_err();
        assert_eq!(large.code(), Code::InvalidArgument);
    }
}

#[test]
fn errors_of_the_function_reach_every_step() {
    let size = ("max_batch_size", "i: 2");
    let steps = Steps::new(&call("Pair", &[], &[ONE_THREAD, SECONDS, size]));
    let other = steps.later(&[1]);
    let here = steps.run(&[2]).unwrap_err();
    for error in [here, other.join().unwrap().unwrap_err()] {
        assert_eq!(error.code(), Code::InvalidArgument);
        let text = "Function takes 2 argument(s) but 1 argument(s) were passed";
        assert!(error.message().contains(text), "{error}");
    }
    let steps = Steps::new(&call("Whole", &[], &[ONE_THREAD, SOON, size]));
    let error = steps.run(&[1, 2]).unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition);
}

#[test]
fn a_step_that_is_cancelled_leaves_the_batch_to_the_others() {
    let steps = Steps::new(&call(
        "Counted",
        &["more"],
        &[ONE_THREAD, SECONDS, ("max_batch_size", "i: 2")],
    ));
    let options = RunOptions {
        timeout: Some(Duration::from_millis(50)),
        ..RunOptions::default()
    };
    let fed = [("x:0", Tensor::vector(&[7])), ("more:0", Tensor::scalar(0))];
    let began = Instant::now();
    let gone = steps.0.run_with(&options, &fed, &["y:0"], &[]);
    assert_eq!(gone.err().unwrap().code(), Code::DeadlineExceeded);
    assert!(began.elapsed() < Duration::from_secs(20));
    let other = steps.later(&[10]);
    assert_eq!(steps.run(&[1]).unwrap(), [103]);
    assert_eq!(other.join().unwrap().unwrap(), [112]);
}
