//! What a step costs besides its kernels: its allocations are counted.
//!
//! A binary of its own, because the counting allocator is the whole process's.

#[allow(dead_code)] // the other binary uses more of it
#[path = "../it/harness.rs"]
mod harness;

use tensorfleet_tensor::CountingAllocator;

use harness::Harness;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// `nodes` additions one after another; the last is the result.
fn chain(nodes: usize) -> Harness {
    let mut text = String::from("one = int32[]{1}\na0 = TestAdd(one, one)\n");
    for index in 1..nodes {
        text += &format!("a{index} = TestAdd(a{}, one)\n", index - 1);
    }
    text += &format!("r = _Retval(a{}) {{index=0}}\n", nodes - 1);
    Harness::new(&text)
}

/// Allocations of a step that finds everything warm.
fn allocations(harness: &Harness, results: &[Option<i32>]) -> u64 {
    for _ in 0..8 {
        assert_eq!(harness.again().run(results.len()).unwrap(), results);
    }
    let harness = harness.again();
    let before = CountingAllocator::on_this_thread();
    let values = harness.run(results.len()).unwrap();
    let count = CountingAllocator::on_this_thread() - before;
    assert_eq!(values, results);
    count
}

#[test]
fn nodes_of_a_chain_allocate_nothing() {
    let short = allocations(&chain(10), &[Some(11)]);
    let long = allocations(&chain(1000), &[Some(1001)]);
    // A kernel that was once interrupted while it was timed counts as expensive for a while: a few are forgiven.
    assert!(
        long <= short + 8,
        "a step of 10 nodes makes {short} allocations, one of 1000 makes {long}"
    );
    assert!(long < 64, "{long} allocations to start and end a step");
}

#[test]
fn iterations_of_a_loop_allocate_nothing() {
    let count = |limit: i32| {
        let harness = harness::counting_loop(limit, 4);
        let sum = (0..limit).sum();
        allocations(&harness, &[Some(limit), Some(sum)])
    };
    let (short, long) = (count(20), count(2000));
    assert_eq!(
        long, short,
        "allocations of a step grow with its iterations"
    );
}
