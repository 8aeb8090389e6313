//! Straight graphs: chains, fan-out, control edges, expensive and late kernels.

use crate::harness::Harness;

#[test]
fn runs_a_long_chain_many_times() {
    let mut text = String::from("one = int32[]{1}\nn0 = int32[]{0}\n");
    for index in 1..=2000 {
        text += &format!("n{index} = TestAdd(n{}, one)\n", index - 1);
    }
    text += "r = _Retval(n2000) {index=0}\n";
    let harness = Harness::new(&text);
    for _ in 0..10 {
        assert_eq!(harness.run(1).unwrap(), [Some(2000)]);
    }
}

#[test]
fn wide_graphs_reach_every_consumer() {
    let mut text = String::from("one = int32[]{1}\n");
    for index in 0..100 {
        text += &format!(
            "a{index} = TestAdd(one, one)\nb{index} = TestSlow(a{index}, one)\nr{index} = _Retval(b{index}) {{index={index}}}\n"
        );
    }
    let harness = Harness::new(&text);
    for _ in 0..20 {
        assert_eq!(harness.run(100).unwrap(), vec![Some(3); 100]);
    }
}

#[test]
fn late_answers_are_taken_while_other_kernels_run() {
    let harness = Harness::new(
        "one = int32[]{1}
         a = TestLater(one, one)
         b = TestLater(a, one)
         c = TestSlow(one, one)
         d = TestSlow(c, b)
         e = TestLater(d, a)
         r = _Retval(e) {index=0}",
    );
    for _ in 0..10 {
        assert_eq!(harness.run(1).unwrap(), [Some(7)]);
    }
}

#[test]
fn many_steps_at_once_do_not_mix() {
    let harness = Harness::new(
        "one = int32[]{1}
         a = TestLater(one, one)
         b = TestSlow(a, one)
         r = _Retval(b) {index=0}",
    );
    let steps: Vec<_> = (0..50).map(|_| harness.start(1)).collect();
    for step in steps {
        assert_eq!(
            step.recv_timeout(std::time::Duration::from_secs(20))
                .unwrap()
                .unwrap(),
            [Some(3)]
        );
    }
}

#[test]
fn untaken_branches_are_dead_and_merges_wait_for_control() {
    let harness = Harness::new(
        "one = int32[]{1}
         two = int32[]{2}
         p = TestLess(two, one)
         s = Switch(one, p)
         t = TestAdd(s:1, two)
         f = TestAdd(s, one)
         slow = TestLater(one, two)
         m = Merge([t, f], ^slow)
         dead = _Retval(t) {index=0}
         live = _Retval(m) {index=1}
         which = _Retval(m:1) {index=2}",
    );
    for _ in 0..3 {
        assert_eq!(harness.run(3).unwrap(), [None, Some(2), Some(1)]);
    }
}

#[test]
fn a_chain_runs_on_the_calling_thread() {
    let mut text = String::from("one = int32[]{1}\na0 = TestAdd(one, one)\n");
    for index in 1..1000 {
        text += &format!("a{index} = TestAdd(a{}, one)\n", index - 1);
    }
    text += "r = _Retval(a999) {index=0}";
    let harness = Harness::new(&text);
    for _ in 0..8 {
        let (report, caller) = harness.again().record(1);
        assert_eq!(report.nodes.len(), 1002);
        assert_eq!(caller, std::thread::current().id());
        let first = report.nodes[0].thread;
        let elsewhere = report.nodes.iter().filter(|node| node.thread != first);
        assert_eq!(elsewhere.count(), 0, "nodes ran on other threads");
    }
}

/// Whether the node behind an answer ever ran on the thread that brought the answer, in so many steps.
fn goes_on_where_the_answer_came(op: &str, steps: usize) -> bool {
    let harness = Harness::new(&format!(
        "one = int32[]{{1}}
         a = {op}(one, one)
         b = TestAdd(a, one)
         r = _Retval(b) {{index=0}}"
    ));
    (0..steps).any(|_| {
        let (report, _) = harness.again().record(1);
        let thread = |name: &str| {
            let is_named = |index| {
                harness
                    .plan
                    .node(index)
                    .is_some_and(|node| node.name == name)
            };
            let mut nodes = report.nodes.iter();
            nodes
                .find(|node| is_named(node.node))
                .map(|node| node.thread)
        };
        thread("a").is_some() && thread("a") == thread("b")
    })
}

#[test]
fn small_steps_go_on_where_their_answer_comes_if_that_is_allowed() {
    assert!(goes_on_where_the_answer_came("TestBring", 100));
    assert!(!goes_on_where_the_answer_came("TestLater", 10));
}
