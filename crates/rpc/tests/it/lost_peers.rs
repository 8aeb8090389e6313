//! Tasks that vanish without a word, and tasks that are merely slow.

use std::thread;
use std::time::{Duration, Instant};

use tensorfleet_rpc::{Server, ServerOptions};
use tensorfleet_status::Code;

use crate::cluster::{free_address, task, task_with};
use crate::common::{PATIENCE, assert_status, put, remote_queue, run, session, value, wait_until};
use crate::proxy::Proxy;

/// A master and a worker that meet through a proxy.
struct Far {
    master: Server,
    _worker: Server,
    proxy: Proxy,
}

impl Far {
    fn new(peer_timeout: Duration) -> Far {
        let (own, other) = (free_address(), free_address());
        let proxy = Proxy::new(&other);
        let options = ServerOptions {
            peer_timeout: Some(peer_timeout),
            // They are to be as far from each other as the proxy makes them.
            direct_transfers: false,
            ..ServerOptions::default()
        };
        let seen = [own.clone(), proxy.address().to_owned()];
        Far {
            master: task_with(&seen, 0, options),
            _worker: task(&[own, other], 1),
            proxy,
        }
    }
}

#[test]
fn a_step_does_not_wait_for_a_task_that_is_cut_off() {
    let far = Far::new(Duration::from_secs(2));
    let target = far.master.target();
    let lost = session(target, &remote_queue("cut off"));
    run(&lost, "init").unwrap();
    thread::scope(|scope| {
        let step = scope.spawn(|| lost.run(&[], &["got:0"], &["started"]));
        wait_until("the step", || value(&lost, "count:0").unwrap() == 1.0);
        far.proxy.cut(true);
        let begin = Instant::now();
        let ended = step.join().unwrap();
        assert!(begin.elapsed() < PATIENCE, "{:?}", begin.elapsed());
        assert_status(
            ended.map(drop),
            Code::Unavailable,
            "remote target /job:worker/replica:0/task:1 while calling",
        );
    });
    assert_status(value(&lost, "count:0"), Code::Unavailable, "task:1");
    far.proxy.cut(false);
    // It is back, and its state with it.
    wait_until("the way back", || value(&lost, "count:0") == Ok(1.0));
    let next = session(target, &remote_queue("cut off"));
    put(&next, 3.0).unwrap();
    assert_eq!(value(&next, "got:0").unwrap(), 3.0);
}

#[test]
fn a_step_waits_for_a_task_that_only_takes_long() {
    let far = Far::new(Duration::from_secs(2));
    let slow = session(far.master.target(), &remote_queue("slow"));
    run(&slow, "init").unwrap();
    thread::scope(|scope| {
        let step = scope.spawn(|| value(&slow, "got:0"));
        thread::sleep(Duration::from_secs(6));
        assert!(!step.is_finished());
        put(&slow, 4.0).unwrap();
        assert_eq!(step.join().unwrap().unwrap(), 4.0);
    });
}
