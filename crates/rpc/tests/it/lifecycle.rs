//! What any TensorFlow server does for a client, as functions over its target.
//!
//! [`CHECKS`] run one after another: some close all sessions. Each keeps its state under its own name.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tensorfleet_proto as pb;
use tensorfleet_rpc::Session;
use tensorfleet_session::{CallableOptions, RunOptions};
use tensorfleet_status::Code;
use tensorfleet_tensor::{DType, Shape, TString, Tensor};

use crate::common::{
    Raw, assert_status, float, graph, put, queue, request_id, run, session, session_with, size,
    taking, value, variable, wait_until,
};
use crate::handles;

/// What a server must do, by name; it panics if the server at the target does not.
type Check = (&'static str, fn(&str));

/// Every check.
pub(crate) const CHECKS: &[Check] = &[
    ("extend_and_run", extend_and_run),
    ("values", values),
    ("handles", handles),
    ("partial_runs", partial_runs),
    ("callables", callables),
    ("devices", devices),
    ("graph_versions", graph_versions),
    ("unknown_handles", unknown_handles),
    ("repeated_requests", repeated_requests),
    ("wrong_feeds_and_fetches", wrong_feeds_and_fetches),
    ("errors_name_their_node", errors_name_their_node),
    ("shared_state", shared_state),
    ("isolated_state", isolated_state),
    ("deadlines", deadlines),
    ("closing_cancels", closing_cancels),
    ("lost_clients", lost_clients),
    ("traces", traces),
    ("reset_closes_and_clears", reset_closes_and_clears),
];

const SUMS: &str = "a = Placeholder() {dtype=DT_FLOAT}
     b = Placeholder() {dtype=DT_FLOAT}
     first = Neg(a)
     second = AddV2(first, b)";

/// A graph grows; what it held still runs; what is closed does not.
pub(crate) fn extend_and_run(target: &str) {
    let session = session(target, "c = float[2]{1, 2}");
    let fetched = session.run(&[], &["c:0"], &[]).unwrap();
    assert_eq!(fetched[0].slice::<f32>().unwrap(), [1.0, 2.0]);
    let mut more = graph("c = float[2]{1, 2}\n n = Neg(c)");
    more.node.retain(|node| node.name == "n");
    session.extend(&more).unwrap();
    let fetched = session.run(&[], &["n:0", "c:0", "n:0"], &["n"]).unwrap();
    assert_eq!(fetched[0].slice::<f32>().unwrap(), [-1.0, -2.0]);
    assert_eq!(fetched[1].slice::<f32>().unwrap(), [1.0, 2.0]);
    assert_eq!(fetched[2].slice::<f32>().unwrap(), [-1.0, -2.0]);
    // Not added twice, and a graph that was refused is as it was.
    assert!(session.extend(&more).is_err());
    session.extend(&graph("d = float[]{3}")).unwrap();
    assert_eq!(value(&session, "d:0").unwrap(), 3.0);
    session.close().unwrap();
    session.close().unwrap();
    assert_status(
        session.run(&[], &["c:0"], &[]),
        Code::FailedPrecondition,
        "Session is closed.",
    );
}

/// Values of all kinds come back as they went.
pub(crate) fn values(target: &str) {
    let session = session(
        target,
        "f = Placeholder() {dtype=DT_FLOAT}
         f2 = Identity(f)
         s = Placeholder() {dtype=DT_STRING}
         s2 = Identity(s)
         i = Placeholder() {dtype=DT_INT64}
         i2 = Identity(i)
         b = Placeholder() {dtype=DT_BOOL}
         b2 = Identity(b)",
    );
    let empty = Tensor::zeros(DType::F32, Shape::new(&[2, 0, 3]).unwrap()).unwrap();
    let feeds = [
        ("f:0", empty),
        ("s:0", Tensor::string(&b"\x00\xff text"[..])),
        ("i:0", Tensor::vector(&[i64::MIN, 0, i64::MAX])),
        ("b:0", Tensor::vector(&[true, false])),
    ];
    let fetched = session
        .run(&feeds, &["f2:0", "s2:0", "i2:0", "b2:0"], &[])
        .unwrap();
    assert_eq!(fetched[0].shape(), feeds[0].1.shape());
    assert_eq!(
        &fetched[1].slice::<TString>().unwrap()[0][..],
        b"\x00\xff text"
    );
    assert_eq!(fetched[2].slice::<i64>().unwrap(), [i64::MIN, 0, i64::MAX]);
    assert_eq!(fetched[3].slice::<bool>().unwrap(), [true, false]);
    let odd = Tensor::vector(&[f32::NAN, -0.0, f32::INFINITY, f32::MIN_POSITIVE / 2.0]);
    let fetched = session
        .run(&[("f:0", odd.clone())], &["f2:0"], &[])
        .unwrap();
    assert_eq!(fetched[0].bytes(), odd.bytes());
}

/// A handle can be fetched, and stands for the same state when it is fed.
pub(crate) fn handles(target: &str) {
    handles::stand_for_their_state(&session(target, handles::GRAPH));
}

/// Feeds come and fetches go in several calls.
pub(crate) fn partial_runs(target: &str) {
    let session = session(target, SUMS);
    let names = (["a:0", "b:0"], ["first:0", "second:0"]);
    let run = session.partial_run_setup(&names.0, &names.1, &[]).unwrap();
    let feed = |name: &'static str, x: f32| [(name, float(x))];
    let first = session
        .partial_run(&run, &feed("a:0", 2.0), &["first:0"], None)
        .unwrap();
    assert_eq!(first[0].to_scalar::<f32>().unwrap(), -2.0);
    let second = session
        .partial_run(&run, &feed("b:0", 5.0), &["second:0"], None)
        .unwrap();
    assert_eq!(second[0].to_scalar::<f32>().unwrap(), 3.0);
    // It is over: nothing is left to feed or fetch.
    assert_status(
        session.partial_run(&run, &feed("a:0", 2.0), &[], None),
        Code::InvalidArgument,
        "Must run PartialRunSetup before performing partial runs",
    );
    let run = session.partial_run_setup(&names.0, &names.1, &[]).unwrap();
    assert_status(
        session.partial_run(&run, &[], &["first:0"], None),
        Code::InvalidArgument,
        "",
    );
}

/// Callables take feeds by position until they are released.
pub(crate) fn callables(target: &str) {
    let session = session(target, SUMS);
    let options = CallableOptions {
        feeds: vec!["b:0".into(), "a:0".into()],
        fetches: vec!["second:0".into(), "first:0".into()],
        ..CallableOptions::default()
    };
    let callable = session.make_callable(options).unwrap();
    for a in 0..3 {
        let feeds = [float(10.0), float(a as f32)];
        let fetched = session.call_callable(&callable, &feeds).unwrap();
        assert_eq!(fetched[0].to_scalar::<f32>().unwrap(), 10.0 - a as f32);
        assert_eq!(fetched[1].to_scalar::<f32>().unwrap(), -(a as f32));
    }
    let missing = CallableOptions {
        fetches: vec!["gone:0".into()],
        ..CallableOptions::default()
    };
    assert_status(session.make_callable(missing), Code::NotFound, "gone");
    session.release_callable(&callable).unwrap();
    assert_status(
        session.call_callable(&callable, &[float(1.0), float(1.0)]),
        Code::InvalidArgument,
        "Attempted to run callable after handle was released",
    );
}

/// A session lists the devices it may use.
pub(crate) fn devices(target: &str) {
    let session = session(target, SUMS);
    let devices = session.list_devices().unwrap();
    let cpu = devices
        .iter()
        .find(|device| device.name == "/job:local/replica:0/task:0/device:CPU:0")
        .unwrap();
    assert_eq!(cpu.device_type, "CPU");
    assert_ne!(cpu.incarnation, 0);
    let raw = Raw::new(target);
    let all = raw
        .call(|master, options| async move {
            let request = pb::ListDevicesRequest::default();
            master.list_devices(&request, &options).await
        })
        .unwrap();
    assert!(
        all.local_device
            .iter()
            .any(|device| device.incarnation == cpu.incarnation)
    );
}

/// Who extends must know the version it extends.
pub(crate) fn graph_versions(target: &str) {
    let raw = Raw::new(target);
    let session_handle = raw.open(graph("a = float[]{1}"));
    let extend = |text: &str, current_graph_version| {
        let request = pb::ExtendSessionRequest {
            session_handle: session_handle.clone(),
            graph_def: Some(graph(text)),
            current_graph_version,
        };
        raw.call(|master, options| async move { master.extend_session(&request, &options).await })
    };
    assert_eq!(extend("b = float[]{2}", 0).unwrap().new_graph_version, 1);
    assert_status(
        extend("c = float[]{2}", 0),
        Code::Aborted,
        "Current version is 1 but caller expected 0.",
    );
    assert_eq!(extend("c = float[]{2}", 1).unwrap().new_graph_version, 2);
}

/// Handles that nobody gave out.
pub(crate) fn unknown_handles(target: &str) {
    let raw = Raw::new(target);
    let handle = "no such session".to_owned();
    let text = "Session no such session is not found.";
    let step = pb::RunStepRequest {
        session_handle: handle.clone(),
        ..pb::RunStepRequest::default()
    };
    assert_status(raw.step(step), Code::Aborted, text);
    let extend = pb::ExtendSessionRequest {
        session_handle: handle.clone(),
        ..pb::ExtendSessionRequest::default()
    };
    let extended = raw.call(|m, o| async move { m.extend_session(&extend, &o).await });
    assert_status(extended, Code::Aborted, text);
    let call = pb::RunCallableRequest {
        session_handle: handle.clone(),
        ..pb::RunCallableRequest::default()
    };
    let called = raw.call(|m, o| async move { m.run_callable(&call, &o).await });
    assert_status(called, Code::Aborted, text);
    let list = pb::ListDevicesRequest {
        session_handle: handle.clone(),
    };
    let listed = raw.call(|m, o| async move { m.list_devices(&list, &o).await });
    assert_status(listed, Code::InvalidArgument, text);
    let close = pb::CloseSessionRequest {
        session_handle: handle,
    };
    let closed = raw.call(|m, o| async move { m.close_session(&close, &o).await });
    assert_status(closed, Code::Aborted, text);

    let session_handle = raw.open(graph("a = float[]{1}"));
    let partial = pb::RunStepRequest {
        session_handle: session_handle.clone(),
        partial_run_handle: "no such run".to_owned(),
        ..pb::RunStepRequest::default()
    };
    assert_status(
        raw.step(partial),
        Code::InvalidArgument,
        "Must run PartialRunSetup before performing partial runs",
    );
    let call = pb::RunCallableRequest {
        session_handle,
        handle: 77,
        ..pb::RunCallableRequest::default()
    };
    let called = raw.call(|m, o| async move { m.run_callable(&call, &o).await });
    assert_status(called, Code::InvalidArgument, "No such callable handle: 77");
}

/// A step is not run twice for one request.
pub(crate) fn repeated_requests(target: &str) {
    let raw = Raw::new(target);
    let handle = raw.open(graph(&variable("repeated")));
    let step = |node: &str, request_id| pb::RunStepRequest {
        session_handle: handle.clone(),
        target: vec![node.to_owned()],
        request_id,
        store_errors_in_response_body: true,
        ..pb::RunStepRequest::default()
    };
    raw.step(step("init", request_id())).unwrap();
    let id = request_id();
    raw.step(step("more", id)).unwrap();
    assert_status(
        raw.step(step("more", id)),
        Code::Aborted,
        "The same RunStep (Master) request was received twice.",
    );
    // Zero is no id.
    raw.step(step("more", 0)).unwrap();
    raw.step(step("more", 0)).unwrap();
    let session = session(target, &variable("repeated"));
    assert_eq!(value(&session, "value:0").unwrap(), 4.0);
}

/// What is fed, fetched or run must be there and of the right kind; the session goes on.
pub(crate) fn wrong_feeds_and_fetches(target: &str) {
    let session = session(
        target,
        "a = Placeholder() {dtype=DT_FLOAT, shape=[2]}
         n = Neg(a)",
    );
    let good = [("a:0", Tensor::vector(&[1f32, 2.0]))];
    let run = |feeds: &[(&str, Tensor)], fetches: &[&str], targets: &[&str]| {
        session.run(feeds, fetches, targets)
    };
    assert_status(run(&good, &["gone:0"], &[]), Code::NotFound, "gone");
    assert_status(run(&good, &["n:7"], &[]), Code::InvalidArgument, "n:7");
    assert_status(run(&good, &["n:0"], &["gone"]), Code::NotFound, "gone");
    let unknown = [("gone:0", float(1.0))];
    assert_status(run(&unknown, &["n:0"], &[]), Code::NotFound, "gone");
    let twice = [good[0].clone(), good[0].clone()];
    assert_status(run(&twice, &["n:0"], &[]), Code::InvalidArgument, "a:0");
    let wrong_type = [("a:0", Tensor::vector(&[1i32, 2]))];
    assert_status(run(&wrong_type, &["n:0"], &[]), Code::Internal, "int32");
    assert_status(run(&[], &["n:0"], &[]), Code::InvalidArgument, "'a'");
    assert!(run(&good, &["n:x"], &[]).is_err());
    assert!(run(&good, &[""], &[]).is_err());
    let fetched = run(&good, &["n:0"], &[]).unwrap();
    assert_eq!(fetched[0].slice::<f32>().unwrap(), [-1.0, -2.0]);
}

/// An op that fails says where it is; the session goes on.
pub(crate) fn errors_name_their_node(target: &str) {
    let session = session(
        target,
        "a = float[2]{1, 2}
         shape = int32[1]{3}
         wrong = Reshape(a, shape)",
    );
    assert_status(
        session.run(&[], &["wrong:0"], &[]),
        Code::InvalidArgument,
        "[[{{node wrong}}]]",
    );
    assert!(session.run(&[], &["a:0"], &[]).is_ok());
}

/// State has a name: sessions that use the same share it, also after one is closed.
pub(crate) fn shared_state(target: &str) {
    let first = session(target, &variable("shared"));
    let second = session(target, &variable("shared"));
    let other = session(target, &variable("not shared"));
    assert_status(
        value(&second, "value:0"),
        Code::FailedPrecondition,
        "[[{{node value}}]]",
    );
    run(&first, "init").unwrap();
    run(&second, "more").unwrap();
    assert_eq!(value(&first, "value:0").unwrap(), 2.0);
    assert!(value(&other, "value:0").is_err());
    first.close().unwrap();
    assert_eq!(value(&second, "value:0").unwrap(), 2.0);
}

/// Sessions that ask for it share nothing.
pub(crate) fn isolated_state(target: &str) {
    let config = pb::ConfigProto {
        isolate_session_state: true,
        ..pb::ConfigProto::default()
    };
    let shared = session(target, &variable("isolated"));
    let first = session_with(target, &variable("isolated"), config.clone());
    let second = session_with(target, &variable("isolated"), config);
    run(&first, "init").unwrap();
    run(&first, "more").unwrap();
    assert_eq!(value(&first, "value:0").unwrap(), 2.0);
    assert!(value(&second, "value:0").is_err());
    assert!(value(&shared, "value:0").is_err());
    run(&second, "init").unwrap();
    assert_eq!(value(&second, "value:0").unwrap(), 1.0);
    assert_eq!(value(&first, "value:0").unwrap(), 2.0);
}

/// A step that takes too long ends, and takes nothing from the queue later.
pub(crate) fn deadlines(target: &str) {
    let session = session(target, &queue("deadlines"));
    let options = RunOptions {
        timeout: Some(Duration::from_millis(200)),
        trace: false,
    };
    let begin = Instant::now();
    let run = session.run_with(&options, &[], &["got:0"], &[]);
    assert_status(run, Code::DeadlineExceeded, "");
    let took = begin.elapsed();
    assert!(
        took >= Duration::from_millis(150) && took < Duration::from_secs(5),
        "{took:?}"
    );
    // The server may hear of it a little later than we.
    thread::sleep(Duration::from_millis(200));
    put(&session, 1.0).unwrap();
    assert_eq!(size(&session), 1);
    assert_eq!(value(&session, "got:0").unwrap(), 1.0);
    let config = pb::ConfigProto {
        operation_timeout_in_ms: 200,
        ..pb::ConfigProto::default()
    };
    let impatient = session_with(target, &queue("deadlines"), config);
    assert_status(value(&impatient, "got:0"), Code::DeadlineExceeded, "");
}

/// Closing a session ends its running steps.
pub(crate) fn closing_cancels(target: &str) {
    let watcher = session(target, &queue("closing"));
    run(&watcher, "init").unwrap();
    let closing = Arc::new(session(target, &queue("closing")));
    let waiting = thread::spawn({
        let closing = closing.clone();
        move || closing.run(&[], &["got:0"], &["started"])
    });
    wait_until("the step", || value(&watcher, "count:0").unwrap() == 1.0);
    closing.close().unwrap();
    assert_status(waiting.join().unwrap(), Code::Cancelled, "");
    put(&watcher, 1.0).unwrap();
    assert_eq!(size(&watcher), 1);
}

/// A client that goes away takes its step with it.
pub(crate) fn lost_clients(target: &str) {
    let watcher = session(target, &queue("lost"));
    run(&watcher, "init").unwrap();
    let lost = Raw::new(target);
    let handle = lost.open(graph(&queue("lost")));
    let request = taking(&handle);
    let master = lost.master.clone();
    lost.runtime.spawn(async move {
        let answer = master.run_step(&request, &Default::default()).await;
        panic!("nothing can come: {answer:?}");
    });
    wait_until("the step", || value(&watcher, "count:0").unwrap() == 1.0);
    assert_eq!(size(&watcher), 0);
    drop(lost);
    thread::sleep(Duration::from_millis(300));
    put(&watcher, 7.0).unwrap();
    thread::sleep(Duration::from_millis(50));
    assert_eq!(size(&watcher), 1, "the lost client's step took it");
    assert_eq!(value(&watcher, "got:0").unwrap(), 7.0);
}

/// Traced steps say what ran when; others do not.
pub(crate) fn traces(target: &str) {
    let session = session(target, SUMS);
    let feeds = [("a:0", float(1.0)), ("b:0", float(2.0))];
    let mut options = RunOptions::default();
    let (_, metadata) = session
        .run_with(&options, &feeds, &["second:0"], &[])
        .unwrap();
    assert!(
        metadata
            .step_stats
            .is_none_or(|stats| stats.dev_stats.is_empty())
    );
    options.trace = true;
    let (_, metadata) = session
        .run_with(&options, &feeds, &["second:0"], &[])
        .unwrap();
    let stats = metadata.step_stats.unwrap();
    let mut nodes = stats.dev_stats.iter().flat_map(|device| &device.node_stats);
    assert!(nodes.any(|node| node.node_name == "second"));
}

/// Reset closes all sessions and clears the state that it names.
pub(crate) fn reset_closes_and_clears(target: &str) {
    let named = variable("reset").replace("shared_name", "container='kept', shared_name");
    let (cleared, kept) = (session(target, &variable("reset")), session(target, &named));
    run(&cleared, "init").unwrap();
    run(&kept, "init").unwrap();
    Session::reset(target, &[]).unwrap();
    for closed in [&cleared, &kept] {
        assert_status(value(closed, "value:0"), Code::Aborted, "is not found.");
    }
    let (cleared, kept) = (session(target, &variable("reset")), session(target, &named));
    assert_status(
        value(&cleared, "value:0"),
        Code::FailedPrecondition,
        "[[{{node value}}]]",
    );
    assert_eq!(value(&kept, "value:0").unwrap(), 1.0);
    Session::reset(target, &["kept"]).unwrap();
    let kept = session(target, &named);
    assert!(value(&kept, "value:0").is_err());
}
