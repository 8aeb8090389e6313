//! Failing, panicking and cancelled steps: the right status, and the next step is as good as ever.

use std::sync::Arc;
use std::time::Duration;

use tensorfleet_kernel::{Clock, SystemClock};
use tensorfleet_status::{Code, cancelled};

use crate::harness::Harness;

#[test]
fn only_outputs_that_are_read_must_be_set() {
    let half = "one = int32[]{1}
         two = TestHalf(one, one)\n";
    let harness = Harness::new(&format!("{half}r = _Retval(two) {{index=0}}"));
    assert_eq!(harness.run(1).unwrap(), [Some(2)]);
    let harness = Harness::new(&format!("{half}r = _Retval(two:1) {{index=0}}"));
    let status = harness.run(1).unwrap_err();
    let text = "Missing 1-th output from {{node two}}";
    assert!(status.to_string().contains(text), "{status}");
}

#[test]
fn a_panicking_kernel_fails_its_step_only() {
    let harness = Harness::new(
        "one = int32[]{1}
         bad = TestPanic(one, one)
         r = _Retval(bad) {index=0}",
    );
    let status = harness.run(1).unwrap_err();
    assert_eq!(status.code(), Code::Internal);
    for part in ["TestPanic", "'bad'", "as asked", "{{node bad}}"] {
        assert!(
            status.message().contains(part),
            "{part} is missing in: {status}"
        );
    }
}

#[test]
fn the_root_error_wins_over_what_it_cancels() {
    let harness = Harness::new(
        "one = int32[]{1}
         waiting = TestWait(one, one)
         late = TestLater(one, one)
         bad = TestFail(late, one)
         sum = TestAdd(waiting, bad)
         r = _Retval(sum) {index=0}",
    );
    let status = harness.run(1).unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(
        status.message().starts_with("2 and 1 are no good"),
        "{status}"
    );
}

#[test]
fn cancelling_ends_a_step_that_waits() {
    let harness = Harness::new(
        "one = int32[]{1}
         waiting = TestWait(one, one)
         r = _Retval(waiting) {index=0}",
    );
    let step = harness.start(1);
    assert!(
        step.recv_timeout(Duration::from_millis(20)).is_err(),
        "it should still wait"
    );
    harness.cancel.cancel(cancelled!("no longer wanted"));
    let status = step
        .recv_timeout(Duration::from_secs(5))
        .unwrap()
        .unwrap_err();
    assert_eq!(status.code(), Code::Cancelled);
    assert!(harness.run(1).is_err(), "a cancelled token stays cancelled");
}

/// On the thread that drives the step, and on one of the pool next to another kernel.
#[test]
fn cancelling_ends_a_step_that_computes() {
    for others in [
        "",
        "slept = TestSleep(one, one)\n more = _Retval(slept) {index=1}",
    ] {
        let harness = Harness::new(&format!(
            "one = int32[]{{1}}
             computing = TestEndless(one, one)
             r = _Retval(computing) {{index=0}}
             {others}"
        ));
        let cancel = harness.cancel.clone();
        let step =
            std::thread::spawn(move || harness.start(2).recv_timeout(Duration::from_secs(20)));
        std::thread::sleep(Duration::from_millis(50));
        assert!(!step.is_finished(), "it should still compute");
        cancel.cancel(cancelled!("no longer wanted"));
        let status = step.join().unwrap().unwrap().unwrap_err();
        assert_eq!(status.code(), Code::Cancelled);
        assert!(status.message().contains("no longer wanted"), "{status}");
    }
}

/// Even if nobody comes to cancel it.
#[test]
fn a_computation_ends_by_itself_when_its_time_has_come() {
    let harness = Harness::new(
        "one = int32[]{1}
         computing = TestEndless(one, one)
         r = _Retval(computing) {index=0}",
    );
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    harness.cancel.end_at(&clock, Duration::from_millis(50));
    let status = harness.run(1).unwrap_err();
    assert_eq!(status.code(), Code::DeadlineExceeded);
}

#[test]
fn a_failed_step_leaves_no_values_behind() {
    let mut text = String::from("one = int32[]{1}\n");
    for index in 0..50 {
        text += &format!("a{index} = TestAdd(one, one)\n");
    }
    text += "bad = TestFail(a3, a4)\n";
    for index in 0..50 {
        text += &format!(
            "b{index} = TestAdd(a{index}, bad)\nr{index} = _Retval(b{index}) {{index={index}}}\n"
        );
    }
    let harness = Harness::new(&text);
    for _ in 0..5 {
        assert_eq!(
            harness.again().run(50).unwrap_err().code(),
            Code::InvalidArgument
        );
    }
    assert_eq!(harness.run(50).unwrap_err().code(), Code::InvalidArgument);
}
