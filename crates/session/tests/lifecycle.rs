//! Partial runs, callables, timeouts, traces, closing, and state by container.

use std::sync::Arc;
use std::time::Duration;

use tensorfleet_graph::{GraphBuilder, text};
use tensorfleet_session::{CallableOptions, RunOptions, Session, SessionOptions};
use tensorfleet_status::Code;
use tensorfleet_tensor::{DType, Tensor};

const SUMS: &str = "a = Placeholder() {dtype=float}
     b = Placeholder() {dtype=float}
     first = Neg(a)
     second = AddV2(first, b)";

const WAITS: &str = "q = FIFOQueueV2() {component_types=[float], shared_name='never filled'}
     d = QueueDequeueV2(q) {component_types=[float]}";

fn session(graph: &str) -> Session {
    let session = Session::new(SessionOptions {
        threads: 2,
        ..SessionOptions::default()
    })
    .unwrap();
    let mut builder = GraphBuilder::new(session.registry().clone());
    text::parse_graph(&mut builder, graph).unwrap();
    session.extend(&builder.finish().export().unwrap()).unwrap();
    session
}

fn float(value: f32) -> Tensor {
    Tensor::scalar(value)
}

#[test]
fn a_partial_run_takes_feeds_and_gives_fetches_as_they_come() {
    let session = session(SUMS);
    let run = session
        .partial_run_setup(&["a:0", "b:0"], &["first:0", "second:0"], &[])
        .unwrap();
    let timeout = Some(Duration::from_secs(10));
    let early = session
        .partial_run(&run, &[], &["first:0"], timeout)
        .unwrap_err();
    assert!(
        early.code() == Code::InvalidArgument && early.message().contains("a:0"),
        "{early}"
    );
    let first = session
        .partial_run(&run, &[("a:0", float(2.0))], &["first:0"], timeout)
        .unwrap();
    assert_eq!(first[0].to_scalar::<f32>().unwrap(), -2.0);
    let twice = session
        .partial_run(&run, &[("a:0", float(2.0))], &[], timeout)
        .unwrap_err();
    assert!(twice.message().contains("already been fed"), "{twice}");
    let unknown = session
        .partial_run(&run, &[("x:0", float(2.0))], &[], timeout)
        .unwrap_err();
    assert_eq!(unknown.code(), Code::InvalidArgument);
    let second = session
        .partial_run(&run, &[("b:0", float(5.0))], &["second:0"], timeout)
        .unwrap();
    assert_eq!(second[0].to_scalar::<f32>().unwrap(), 3.0);
}

#[test]
fn callables_take_feeds_by_position() {
    let session = session(SUMS);
    let options = CallableOptions {
        feeds: vec!["b:0".into(), "a:0".into()],
        fetches: vec!["second:0".into()],
        ..CallableOptions::default()
    };
    let callable = session.make_callable(options).unwrap();
    for value in 0..3 {
        let out = session
            .call(&callable, &[float(10.0), float(value as f32)])
            .unwrap();
        assert_eq!(out[0].to_scalar::<f32>().unwrap(), 10.0 - value as f32);
    }
    assert_eq!(
        session.call(&callable, &[float(1.0)]).unwrap_err().code(),
        Code::InvalidArgument
    );
    let missing = CallableOptions {
        fetches: vec!["gone:0".into()],
        ..CallableOptions::default()
    };
    assert_eq!(
        session.make_callable(missing).err().unwrap().code(),
        Code::NotFound
    );
}

#[test]
fn a_step_that_waits_too_long_is_ended() {
    let session = session(WAITS);
    let options = RunOptions {
        timeout: Some(Duration::from_millis(50)),
        trace: false,
    };
    let status = session.run_with(&options, &[], &["d:0"], &[]).unwrap_err();
    assert_eq!(status.code(), Code::DeadlineExceeded, "{status}");
}

#[test]
fn closing_cancels_what_waits() {
    let session = Arc::new(session(WAITS));
    let waiting = std::thread::spawn({
        let session = session.clone();
        move || session.run(&[], &["d:0"], &[])
    });
    std::thread::sleep(Duration::from_millis(50));
    session.close();
    let status = waiting.join().unwrap().unwrap_err();
    assert_eq!(status.code(), Code::Cancelled, "{status}");
    assert_eq!(
        session.run(&[], &["d:0"], &[]).unwrap_err().code(),
        Code::FailedPrecondition
    );
}

#[test]
fn a_trace_has_times_of_every_node() {
    let session = session(SUMS);
    let options = RunOptions {
        timeout: None,
        trace: true,
    };
    let feeds = [("a:0", float(1.0)), ("b:0", float(2.0))];
    let (_, metadata) = session
        .run_with(&options, &feeds, &["second:0"], &[])
        .unwrap();
    for name in ["first", "second"] {
        let node = metadata
            .nodes
            .iter()
            .find(|timing| timing.node == name)
            .unwrap();
        assert!(node.start <= node.end);
        assert_eq!(node.outputs[0].1, DType::F32);
    }
    let stats = metadata.to_step_stats();
    // TensorFlow's steps begin with a node of their own.
    let first = &stats.dev_stats[0].node_stats[0];
    assert_eq!(first.node_name, "_SOURCE");
    assert_eq!(
        stats.dev_stats[0].node_stats.len(),
        metadata.nodes.len() + 1
    );
    assert!(
        stats.dev_stats[0]
            .node_stats
            .iter()
            .all(|node| node.all_start_micros > 1_000_000_000_000_000)
    );
}

#[test]
fn state_outlives_a_step_and_ends_with_its_container() {
    let session = session(
        "v = VariableV2() {dtype=float, shape=[]}
         one = float[]{1}
         init = Assign(v, one)
         more = AssignAdd(v, one)",
    );
    session.run(&[], &[], &["init"]).unwrap();
    session.run(&[], &[], &["more"]).unwrap();
    assert_eq!(
        session.run(&[], &["v:0"], &[]).unwrap()[0]
            .to_scalar::<f32>()
            .unwrap(),
        2.0
    );
    session.reset(&[]);
    assert_eq!(
        session.run(&[], &["v:0"], &[]).unwrap_err().code(),
        Code::FailedPrecondition
    );
}

#[test]
fn users_behind_an_update_see_it_and_others_the_value_before() {
    let session = session(
        "v = VariableV2() {dtype=float, shape=[]}
         one = float[]{1}
         init = Assign(v, one) {T=float}
         read = Identity(v)
         ten = float[]{10}
         update = AssignAdd(v, ten) {T=float}
         late = Neg(read, ^update)
         updated = AssignAdd(v, read, ^late) {T=float}",
    );
    session.run(&[], &[], &["init"]).unwrap();
    let fetched = session.run(&[], &["late:0", "updated:0"], &[]).unwrap();
    let value = |index: usize| fetched[index].to_scalar::<f32>().unwrap();
    // In TensorFlow the early read shares the variable's memory: behind the update it is 11.
    assert_eq!(value(0), -11.0);
    assert_eq!(value(1), 22.0);
}

#[test]
fn an_endless_loop_ends_with_its_deadline() {
    let looping = Session::new(SessionOptions::default()).unwrap();
    let mut g = GraphBuilder::new(looping.registry().clone());
    let yes = g.constant(Tensor::scalar(true)).unwrap();
    let start = g.constant(Tensor::scalar(0i32)).unwrap();
    let frame = |g: &mut GraphBuilder, input, constant: bool| {
        g.op("Enter")
            .input(input)
            .attr("frame_name", "endless")
            .attr("is_constant", constant)
            .output()
            .unwrap()
    };
    let (enter, always) = (frame(&mut g, start, false), frame(&mut g, yes, true));
    let merge = g.op("Merge").list(&[enter, enter]).build().unwrap();
    let go_on = g.op("LoopCond").input(always).output().unwrap();
    let switch = g
        .op("Switch")
        .input(merge.output(0))
        .input(go_on)
        .build()
        .unwrap();
    let next = g
        .op("NextIteration")
        .input(switch.output(1))
        .output()
        .unwrap();
    g.graph_mut().set_input(merge, 1, next).unwrap();
    g.op("Exit")
        .name("end")
        .input(switch.output(0))
        .build()
        .unwrap();
    looping.extend(&g.finish().export().unwrap()).unwrap();
    let options = RunOptions {
        timeout: Some(Duration::from_millis(100)),
        trace: false,
    };
    let error = looping.run_with(&options, &[], &[], &["end"]).unwrap_err();
    assert_eq!(error.code(), Code::DeadlineExceeded, "{error}");
}

#[test]
fn what_nobody_reads_is_waited_for_but_not_computed() {
    let graph = "v = VariableV2() {dtype=float, shape=[2]}
         two = float[2]{1, 2}
         init = Assign(v, two) {T=float}
         x = Placeholder() {dtype=float}
         unread = MatMul(x, x)
         wait = NoOp(^unread)
         y = Neg(v, ^wait)";
    let run = |optimize: bool| {
        let session = Session::new(SessionOptions {
            optimize,
            ..SessionOptions::default()
        })
        .unwrap();
        let mut builder = GraphBuilder::new(session.registry().clone());
        text::parse_graph(&mut builder, graph).unwrap();
        session.extend(&builder.finish().export().unwrap()).unwrap();
        session.run(&[], &[], &["init"]).unwrap();
        // No matrix: only a run that computes the product notices.
        session.run(&[("x:0", float(1.0))], &["y:0"], &[])
    };
    assert_eq!(run(true).unwrap()[0].slice::<f32>().unwrap(), [-1.0, -2.0]);
    assert_eq!(run(false).unwrap_err().code(), Code::InvalidArgument);
}

#[test]
fn a_variable_can_be_fed() {
    let session = session(
        "v = VariableV2() {dtype=float, shape=[]}
         one = float[]{1}
         init = Assign(v, one) {T=float}
         read = Identity(v)
         y = Neg(read)",
    );
    let fetched = session.run(&[("v:0", float(5.0))], &["y:0"], &[]).unwrap();
    assert_eq!(fetched[0].to_scalar::<f32>().unwrap(), -5.0);
}
