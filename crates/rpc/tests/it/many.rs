//! Many threads, many sessions, many bytes.

use std::thread;

use tensorfleet_rpc::ServerOptions;
use tensorfleet_status::Code;
use tensorfleet_tensor::{Shape, Tensor};

use crate::cluster::{cluster, free_address, task};
use crate::common::{
    float, graph, put, queue, run, server, session, session_of, size, value, variable,
};

#[test]
fn many_threads_share_a_session() {
    let server = server();
    let text = format!(
        "{}
         x = Placeholder() {{dtype=DT_FLOAT}}
         y = Neg(x)",
        variable("many")
    );
    let session = session(server.target(), &text);
    run(&session, "init").unwrap();
    thread::scope(|scope| {
        for number in 0..16 {
            let session = &session;
            scope.spawn(move || {
                for step in 0..50 {
                    let x = (number * 1000 + step) as f32;
                    let fetched = session.run(&[("x:0", float(x))], &["y:0"], &["more"]);
                    assert_eq!(fetched.unwrap()[0].to_scalar::<f32>().unwrap(), -x);
                }
            });
        }
    });
    assert_eq!(value(&session, "value:0").unwrap(), 801.0);
}

#[test]
fn many_sessions_open_grow_run_and_close_at_once() {
    let server = server();
    let watcher = session(server.target(), &variable("sessions"));
    run(&watcher, "init").unwrap();
    thread::scope(|scope| {
        for number in 0..8 {
            let target = server.target();
            scope.spawn(move || {
                for round in 0..10 {
                    let own = session(target, &variable("sessions"));
                    run(&own, "more").unwrap();
                    let extra = format!("extra = float[]{{{number}}}");
                    own.extend(&graph(&extra)).unwrap();
                    assert_eq!(value(&own, "extra:0").unwrap(), number as f32);
                    if round % 2 == 0 {
                        own.close().unwrap();
                    }
                }
            });
        }
    });
    assert_eq!(value(&watcher, "value:0").unwrap(), 81.0);
    assert_eq!(server.session_count(), 1);
}

#[test]
fn an_error_on_another_task_keeps_its_code_however_often() {
    let addresses = [free_address(), free_address()];
    let servers = [0, 1].map(|index| task(&addresses, index));
    let device = |index: usize| format!("/job:worker/replica:0/task:{index}/device:CPU:0");
    let text = format!(
        "x = Placeholder() {{dtype=DT_FLOAT}}
         checked = CheckNumerics(x) {{message='bad'}} @{}
         y = Neg(checked) @{}",
        device(1),
        device(0)
    );
    let session = session(servers[0].target(), &text);
    let run = |x: f32| session.run(&[("x:0", float(x))], &["y:0"], &[]);
    for _ in 0..100 {
        let error = run(f32::NAN).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    }
    assert_eq!(run(2.0).unwrap()[0].to_scalar::<f32>().unwrap(), -2.0);
}

#[test]
fn many_waiting_steps_do_not_keep_others_from_running() {
    let server = server();
    let session = session(server.target(), &queue("waiting"));
    let mut got: Vec<f32> = thread::scope(|scope| {
        let waiting: Vec<_> = (0..64)
            .map(|_| scope.spawn(|| value(&session, "got:0").unwrap()))
            .collect();
        for x in 0..64 {
            put(&session, x as f32).unwrap();
        }
        waiting
            .into_iter()
            .map(|step| step.join().unwrap())
            .collect()
    });
    got.sort_by(f32::total_cmp);
    assert!(got.iter().copied().eq((0..64).map(|x| x as f32)));
    assert_eq!(size(&session), 0);
}

#[test]
fn sixty_four_megabytes_come_back_the_same() {
    let server = server();
    let session = session(
        server.target(),
        "x = Placeholder() {dtype=DT_FLOAT}
         y = Identity(x)",
    );
    let numbers: Vec<f32> = (0..16 << 20).map(|i: u32| (i ^ (i << 9)) as f32).collect();
    let big = Tensor::from_vec(Shape::new(&[4, 4 << 20]).unwrap(), numbers).unwrap();
    let fetched = session.run(&[("x:0", big.clone())], &["y:0"], &[]).unwrap();
    assert_eq!(fetched[0].shape(), big.shape());
    assert!(fetched[0].bytes() == big.bytes());
}

#[test]
fn a_step_may_span_sixty_four_tasks() {
    const TASKS: usize = 64;
    let options = vec![ServerOptions::default(); TASKS];
    let servers = cluster(&[("worker", options)]);
    let mut text = String::new();
    let mut terms = Vec::new();
    for task in 0..TASKS {
        text += &format!("a{task} = float[]{{{task}}}\nn{task} = Neg(a{task})\n");
        terms.push(format!("n{task}"));
    }
    text += &format!("sum = AddN([{}])", terms.join(", "));
    let mut def = graph(&text);
    for node in &mut def.node {
        let task: usize = node.name[1..].parse().unwrap_or(0);
        node.device = format!("/job:worker/task:{task}");
    }
    let session = session_of(servers[TASKS / 2].target(), &def);
    for _ in 0..3 {
        assert_eq!(value(&session, "sum:0").unwrap(), -2016.0);
    }
    session.close().unwrap();
}
