//! Clients that go away: their steps end and leave nothing.

use tensorfleet_proto as pb;
use tensorfleet_rpc::{Server, ServerOptions};

use crate::common::{Raw, bound, float, graph, queue, run, session, taking, value, wait_until};

fn with_two_devices() -> Server {
    let config = pb::ConfigProto {
        device_count: [("CPU".to_owned(), 2)].into(),
        ..pb::ConfigProto::default()
    };
    let server = bound(config, ServerOptions::default());
    server.start().unwrap();
    server
}

#[test]
fn a_lost_step_over_two_devices_leaves_nothing() {
    let server = with_two_devices();
    let watcher = session(server.target(), &queue("lost over two"));
    run(&watcher, "init").unwrap();
    let text = format!("{}\n out = Neg(got) @/device:CPU:1", queue("lost over two"));
    for lost_before in 0..3 {
        let lost = Raw::new(server.target());
        let mut request = taking(&lost.open(graph(&text)));
        request.fetch = vec!["out:0".into()];
        let master = lost.master.clone();
        lost.runtime.spawn(async move {
            // Nobody is there to take the answer.
            let _ = master.run_step(&request, &Default::default()).await;
        });
        let started = (lost_before + 1) as f32;
        wait_until("the step", || {
            value(&watcher, "count:0").unwrap() == started
        });
        drop(lost);
    }
    let raw = Raw::new(server.target());
    wait_until("the end of the lost steps", || raw.status().steps == 0);
}

#[test]
fn partial_runs_that_nobody_ends_leave_nothing_behind_their_session() {
    let server = with_two_devices();
    let partial = session(
        server.target(),
        "a = Placeholder() {dtype=DT_FLOAT}
         b = Placeholder() {dtype=DT_FLOAT}
         first = Neg(a) @/device:CPU:1
         second = AddV2(first, b) @/device:CPU:0",
    );
    for _ in 0..3 {
        let run = partial
            .partial_run_setup(&["a:0", "b:0"], &["first:0", "second:0"], &[])
            .unwrap();
        let first = partial.partial_run(&run, &[("a:0", float(1.0))], &["first:0"], None);
        assert_eq!(first.unwrap()[0].to_scalar::<f32>().unwrap(), -1.0);
    }
    partial.close().unwrap();
    let raw = Raw::new(server.target());
    wait_until("the end of the partial runs", || raw.status().steps == 0);
}
