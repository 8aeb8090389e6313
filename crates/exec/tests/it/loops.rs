//! Loops: counting, nesting, loops in dead branches, limited parallel iterations.

use tensorfleet_graph::{GraphBuilder, Output, text};

use crate::harness::{Harness, counting_loop, graph, registry};

#[test]
fn counts_with_any_number_of_parallel_iterations() {
    for parallel in [1, 2, 10, 32] {
        for limit in [0, 1, 5, 1000] {
            let harness = counting_loop(limit, parallel);
            for _ in 0..2 {
                let sum = (0..limit).sum();
                assert_eq!(
                    harness.run(2).unwrap(),
                    [Some(limit), Some(sum)],
                    "limit {limit}, {parallel} parallel"
                );
            }
        }
    }
}

/// An outer loop whose body is an inner loop: both count.
#[test]
fn nested_loops_multiply() {
    let text = "zero = int32[]{0}
         one = int32[]{1}
         outer_limit = int32[]{7}
         inner_limit = int32[]{5}
         i_in = Enter(zero) {frame_name='outer'}
         n_in = Enter(zero) {frame_name='outer'}
         ol = Enter(outer_limit) {frame_name='outer', is_constant=true}
         il = Enter(inner_limit) {frame_name='outer', is_constant=true}
         o1 = Enter(one) {frame_name='outer', is_constant=true}
         o0 = Enter(zero) {frame_name='outer', is_constant=true}
         i = Merge([i_in, i_in])
         n = Merge([n_in, n_in])
         i_less = TestLess(i, ol)
         i_cond = LoopCond(i_less)
         i_sw = Switch(i, i_cond)
         n_sw = Switch(n, i_cond)
         i_body = Identity(i_sw:1)
         j0 = Identity(o0, ^i_body)
         j_in = Enter(j0) {frame_name='inner'}
         k_in = Enter(n_sw:1) {frame_name='inner'}
         jl = Enter(il) {frame_name='inner', is_constant=true}
         j1 = Enter(o1) {frame_name='inner', is_constant=true}
         j = Merge([j_in, j_in])
         k = Merge([k_in, k_in])
         j_less = TestLess(j, jl)
         j_cond = LoopCond(j_less)
         j_sw = Switch(j, j_cond)
         k_sw = Switch(k, j_cond)
         j_more = TestAdd(j_sw:1, j1)
         k_more = TestAdd(k_sw:1, j1)
         j_next = NextIteration(j_more)
         k_next = NextIteration(k_more)
         k_out = Exit(k_sw)
         n_next = NextIteration(k_out)
         i_more = TestAdd(i_body, o1)
         i_next = NextIteration(i_more)
         n_out = Exit(n_sw)
         r = _Retval(n_out) {index=0}";
    let graph = graph(
        text,
        &[
            ("i", "i_next"),
            ("n", "n_next"),
            ("j", "j_next"),
            ("k", "k_next"),
        ],
    );
    let harness = Harness::of(&graph).unwrap();
    for _ in 0..3 {
        assert_eq!(harness.run(1).unwrap(), [Some(35)]);
    }
}

#[test]
fn a_loop_in_a_dead_branch_is_dead_at_its_exits() {
    let text = "zero = int32[]{0}
         one = int32[]{1}
         p = TestLess(one, zero)
         s = Switch(one, p)
         e = Enter(s:1) {frame_name='f'}
         c = Enter(one) {frame_name='f', is_constant=true}
         m = Merge([e, e])
         less = TestLess(m, c)
         cond = LoopCond(less)
         sw = Switch(m, cond)
         more = TestAdd(sw:1, c)
         next = NextIteration(more)
         out = Exit(sw)
         both = Merge([out, s])
         r0 = _Retval(both) {index=0}
         r1 = _Retval(both:1) {index=1}";
    let harness = Harness::of(&graph(text, &[("m", "next")])).unwrap();
    for _ in 0..3 {
        assert_eq!(harness.run(2).unwrap(), [Some(1), Some(1)]);
    }
}

#[test]
fn mixing_frames_is_refused() {
    let mut builder = GraphBuilder::new(registry());
    let text = "one = int32[]{1}
         e = Enter(one) {frame_name='f'}
         bad = TestAdd(e, one)
         x = Exit(bad)";
    text::parse_graph(&mut builder, text).unwrap();
    let status = Harness::of(&builder.finish()).err().unwrap();
    assert!(status.message().contains("different frames"), "{status}");
}

#[test]
fn a_cycle_without_next_iteration_is_refused() {
    let mut builder = GraphBuilder::new(registry());
    text::parse_graph(
        &mut builder,
        "one = int32[]{1}\na = TestAdd(one, one)\nb = TestAdd(a, one)",
    )
    .unwrap();
    let mut graph = builder.finish();
    let (a, b) = (graph.find("a").unwrap(), graph.find("b").unwrap());
    graph.set_input(a, 0, Output::from(b)).unwrap();
    let status = Harness::of(&graph).err().unwrap();
    assert!(status.message().contains("cycle"), "{status}");
}
