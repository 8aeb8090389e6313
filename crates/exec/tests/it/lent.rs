//! Steps on threads that have other things to do.

use std::time::Duration;

use tensorfleet_exec::lend;
use tensorfleet_status::{Code, cancelled};
use tensorfleet_tensor::Tensor;

use crate::harness::{Harness, counting_loop};

#[test]
fn a_long_step_leaves_a_thread_that_is_lent_to_it() {
    let endless = counting_loop(i32::MAX, 1);
    let (ended, left) = lend(|| endless.start(2));
    assert!(left, "the step kept the thread");
    assert!(ended.try_recv().is_err(), "two billion turns were taken");
    endless.cancel.cancel(cancelled!("enough"));
    let result = ended.recv_timeout(Duration::from_secs(20));
    let status = result.expect("the step never ended").unwrap_err();
    assert_eq!(status.code(), Code::Cancelled);
}

#[test]
fn a_short_step_stays() {
    let short = counting_loop(3, 1).without_time();
    let (ended, left) = lend(|| short.start(2));
    assert_eq!(ended.try_recv().unwrap().unwrap(), [Some(3), Some(3)]);
    assert!(!left);
}

#[test]
fn a_kernel_with_large_inputs_leaves_too() {
    let sum = |elements: usize| {
        Harness::new(&format!(
            "shape = int32[1]{{{elements}}}
             one = int32[]{{1}}
             axis = int32[1]{{0}}
             ones = Fill(shape, one)
             sum = Sum(ones, axis)
             ret = _Retval(sum) {{index=0}}"
        ))
    };
    for (elements, large) in [(8, false), (1 << 20, true)] {
        let harness = sum(elements).without_time();
        let (ended, left) = lend(|| harness.start(1));
        assert_eq!(left, large, "{elements} elements");
        let result = ended.recv_timeout(Duration::from_secs(20)).unwrap();
        assert_eq!(result.unwrap(), [Some(elements as i32)]);
    }
}

/// A step that was driven elsewhere meanwhile comes back to a thread that was never lent.
#[test]
fn a_thread_is_not_lent_by_the_steps_it_drives() {
    let together = Harness::new(
        "one = int32[]{1}
         brought = TestBring(one, one)
         more = TestAdd(brought, one)
         slept = TestSleep(one, one)
         sum = TestAdd(more, slept)
         ret = _Retval(sum) {index=0}",
    );
    for _ in 0..40 {
        assert_eq!(together.run(1).unwrap(), [Some(5)]);
    }
    let alone = Harness::new(
        "one = int32[]{1}
         slow = TestSlow(one, one)
         ret = _Retval(slow) {index=0}",
    );
    let (_, ended_on) = alone.record(1);
    assert_eq!(ended_on, std::thread::current().id());
}

/// A kernel that was quick is not trusted when numbers say that it has more to do.
#[test]
fn a_kernel_that_is_told_to_make_more_leaves_too() {
    let harness = Harness::new(
        "n = _Arg() {T=DT_INT32, index=0}
         one = int32[]{1}
         zero = int32[]{0}
         dims = ExpandDims(n, zero)
         axis = int32[1]{0}
         ones = Fill(dims, one)
         sum = Sum(ones, axis)
         ret = _Retval(sum) {index=0}",
    )
    .without_time();
    for (elements, large) in [(8, false), (9, false), (1 << 20, true)] {
        let (ended, left) = lend(|| harness.start_with(vec![Tensor::scalar(elements)], 1));
        assert_eq!(left, large, "{elements} elements");
        let result = ended.recv_timeout(Duration::from_secs(20)).unwrap();
        assert_eq!(result.unwrap(), [Some(elements)]);
    }
}
