//! Single shapes: keys, sharing, control edges, references, loops, errors, libraries.

use std::sync::atomic::AtomicU64;

use tensorfleet_graph::Graph;
use tensorfleet_kernel::AttrValue;
use tensorfleet_passes::{Part, PartitionOptions, partition};
use tensorfleet_status::Code;

use crate::harness::{check, devices, parse, run, split, split_with};

/// Places nodes by name; all others on device 0.
fn place(graph: &Graph, elsewhere: &[(&str, u32)]) -> Vec<u32> {
    let mut placed = vec![0; graph.len()];
    for (name, device) in elsewhere {
        placed[graph.find(name).unwrap().index()] = *device;
    }
    placed
}

fn count(part: &Part, op: &str) -> usize {
    let nodes = part.graph.nodes();
    nodes.filter(|(_, node)| node.op_name() == op).count()
}

const COUNTING: &str = "zero = int32[]{0}
     one = int32[]{1}
     limit = int32[]{3}
     i_in = Enter(zero) {frame_name='loop/while_context'}
     acc_in = Enter(zero) {frame_name='loop/while_context'}
     limit_c = Enter(limit) {frame_name='loop/while_context', is_constant=true}
     one_c = Enter(one) {frame_name='loop/while_context', is_constant=true}
     i = Merge([i_in, i_in])
     acc = Merge([acc_in, acc_in])
     less = Less(i, limit_c)
     cond = LoopCond(less)
     i_sw = Switch(i, cond)
     acc_sw = Switch(acc, cond)
     acc_more = AddV2(acc_sw:1, i_sw:1)
     i_more = AddV2(i_sw:1, one_c)
     i_next = NextIteration(i_more)
     acc_next = NextIteration(acc_more)
     i_out = Exit(i_sw)
     acc_out = Exit(acc_sw)
     r0 = _Retval(i_out) {index=0}
     r1 = _Retval(acc_out) {index=1}";

const COUNTING_BACK: &[(&str, &str)] = &[("i", "i_next"), ("acc", "acc_next")];

#[test]
fn one_part_is_left_alone() {
    let graph = parse(COUNTING, COUNTING_BACK);
    let (nodes, placed) = (graph.len(), vec![1; graph.len()]);
    let table = devices(2, 1);
    let parts = split(graph, &table, &placed).unwrap();
    assert_eq!(parts.len(), 1);
    assert_eq!(parts[0].part, 1);
    assert_eq!(parts[0].graph.len(), nodes);
    let on = |node: &tensorfleet_graph::Node| node.device == table[1].name;
    assert!(parts[0].graph.nodes().all(|(_, node)| on(node)));
}

#[test]
fn keys_and_attributes_are_tensorflows() {
    let graph = parse(
        "x = float[2]{1, 2}
         y = Neg(x)
         z = AddV2(y, y)
         w = AddV2(y, z)
         r = _Retval(w) {index=0}",
        &[],
    );
    let table = devices(2, 1);
    let placed = place(&graph, &[("z", 1), ("w", 1), ("r", 1)]);
    let ran = check(&graph, &table, &placed, 1);
    // Three consumers, one transfer.
    assert_eq!(
        ran.keys,
        [
            "/job:worker/replica:0/task:0/device:CPU:0;8000000000000000;/job:worker/replica:0/task:1/device:CPU:0;edge_0_y;0:0"
        ]
    );
    let parts = split(graph, &table, &placed).unwrap();
    let send = parts[0].graph.node(parts[0].graph.find("y_S1").unwrap());
    let recv = parts[1].graph.node(parts[1].graph.find("y_S2").unwrap());
    assert_eq!((send.op_name(), recv.op_name()), ("_Send", "_Recv"));
    assert_eq!(send.attrs.dtype("T"), recv.attrs.dtype("tensor_type"));
    assert_eq!(
        send.attrs.int("send_device_incarnation").unwrap() as u64,
        table[0].incarnation
    );
    assert!(!send.attrs.bool("client_terminated").unwrap());
    assert_eq!(send.device, table[0].name);
    assert_eq!(recv.device, table[1].name);
}

#[test]
fn control_edges_travel_as_empty_tensors() {
    let graph = parse(
        "x = int32[]{1}
         a = Identity(x)
         b = Const(^a) {dtype=DT_INT32, value=int32[]{5}}
         c = Identity(b, ^a)
         r = _Retval(c) {index=0}",
        &[],
    );
    let placed = place(&graph, &[("b", 1), ("c", 1), ("r", 1)]);
    let ran = check(&graph, &devices(2, 1), &placed, 1);
    assert_eq!(ran.keys.len(), 1, "{:?}", ran.keys);
    let parts = split(graph, &devices(2, 1), &placed).unwrap();
    let signal = parts[0].graph.find("a/ctrl_S1").unwrap();
    let signal = parts[0].graph.node(signal).attrs.tensor("value").unwrap();
    assert_eq!(signal.shape().dims(), [0]);
}

#[test]
fn a_loop_over_two_tasks_receives_once_per_iteration() {
    let graph = parse(COUNTING, COUNTING_BACK);
    let placed = place(&graph, &[("acc_more", 1)]);
    let ran = check(&graph, &devices(2, 1), &placed, 2);
    // Three times round and the dead last time; and always TensorFlow's id of the frame.
    let of_edge = |name: &str| {
        let is_edge = |key: &&String| key.contains(&format!("_{name};"));
        ran.keys.iter().filter(is_edge).collect::<Vec<_>>()
    };
    for name in ["i_sw", "acc_sw", "acc_more", "cond"] {
        let keys = of_edge(name);
        assert_eq!(keys.len(), 4, "{name}: {:?}", ran.keys);
        for (iteration, key) in keys.iter().enumerate() {
            let frame = format!(";6339987812709914503:{iteration}");
            assert!(key.ends_with(&frame), "{key}");
        }
    }
    assert_eq!(ran.keys.len(), 16, "{:?}", ran.keys);
}

#[test]
fn control_loops_are_made_where_something_is_received() {
    let graph = parse(COUNTING, COUNTING_BACK);
    let placed = place(&graph, &[("acc_more", 1)]);
    let parts = split(graph, &devices(2, 1), &placed).unwrap();
    let loops = |part: &Part| {
        let nodes = part.graph.nodes();
        nodes
            .filter(|(_, node)| node.name.starts_with("_cloop") && node.op_name() == "Merge")
            .count()
    };
    assert_eq!((loops(&parts[0]), loops(&parts[1])), (1, 1));
    assert_eq!(count(&parts[1], "Enter"), 1);
}

/// The sum of two constants of the loop, computed where nothing else of the loop is.
#[test]
fn a_device_that_only_sends_iterates_too() {
    let mut text = COUNTING.replace("AddV2(i_sw:1, one_c)", "AddV2(i_sw:1, step)");
    text = text.replace(
        "     less = ",
        "     two_c = Enter(one) {frame_name='loop/while_context', is_constant=true}
         zero_c = Enter(zero) {frame_name='loop/while_context', is_constant=true}
         step = AddV2(two_c, zero_c)
         less = ",
    );
    let graph = parse(&text, COUNTING_BACK);
    let ran = check(&graph, &devices(2, 1), &place(&graph, &[("step", 1)]), 2);
    assert_eq!(ran.results.len(), 2);
}

/// Two loop variables that go on with the same value share a NextIteration, the Merges are apart.
#[test]
fn next_iterations_with_consumers_apart_are_copied() {
    let text = COUNTING.replace("AddV2(acc_sw:1, i_sw:1)", "AddV2(i_sw:1, one_c)");
    let graph = parse(&text, &[("i", "i_next"), ("acc", "i_next")]);
    let placed = place(
        &graph,
        &[("acc", 1), ("acc_sw", 1), ("acc_out", 1), ("r1", 1)],
    );
    check(&graph, &devices(2, 1), &placed, 2);
}

#[test]
fn a_loop_in_a_dead_branch_ends_everywhere() {
    let text = COUNTING.replace(
        "i_in = Enter(zero)",
        "never = Less(one, zero)
         maybe = Switch(zero, never)
         i_in = Enter(maybe:1)",
    );
    let text = text.replace("acc_in = Enter(zero)", "acc_in = Enter(maybe:1)");
    let text = text.replace("_Retval(i_out)", "_Retval(both)").replace(
        "     r0 = ",
        "     both = Merge([i_out, maybe])
         r0 = ",
    );
    let text = text.replace("_Retval(acc_out)", "_Retval(both:1)");
    let graph = parse(&text, COUNTING_BACK);
    for elsewhere in [
        &[("acc_more", 1), ("i_sw", 1)][..],
        &[("i", 1), ("cond", 2), ("both", 2)],
        &[("maybe", 1), ("never", 2), ("acc", 1), ("less", 2)],
    ] {
        check(&graph, &devices(3, 1), &place(&graph, elsewhere), 2);
    }
}

#[test]
fn a_loop_without_predicate_cannot_be_split() {
    let graph = parse(
        "x = int32[]{1}
         e = Enter(x) {frame_name='f'}
         y = Neg(e)
         z = Neg(y)
         out = Exit(z)",
        &[],
    );
    let placed = place(&graph, &[("z", 1)]);
    let status = split(graph, &devices(2, 1), &placed).unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert_eq!(
        status.message(),
        "A cross-device loop must have a pivot predicate: f"
    );
}

#[test]
fn references_are_read_for_every_consumer() {
    let graph = parse(
        "v = VariableV2() {dtype=DT_FLOAT, shape=[]}
         one = float[]{1}
         set = Assign(v, one)
         a = Neg(v, ^set)
         b = AddV2(set, a)
         c = AddV2(set, set)
         r0 = _Retval(b) {index=0}
         r1 = _Retval(c) {index=1}",
        &[],
    );
    let placed = place(&graph, &[("b", 1), ("c", 1), ("r0", 1), ("r1", 1)]);
    let ran = check(&graph, &devices(2, 1), &placed, 2);
    // `set` for b once and for c twice, `a` once.
    assert_eq!(ran.keys.len(), 4, "{:?}", ran.keys);
    let parts = split(graph, &devices(2, 1), &placed).unwrap();
    let part = &parts[1].graph;
    let b = part.node(part.find("b").unwrap());
    let (read, other) = (b.inputs[0].node, b.inputs[1].node);
    assert_eq!(part.node(read).control_inputs[..], [other]);
}

#[test]
fn a_reference_wanted_elsewhere_is_refused() {
    let graph = parse(
        "v = VariableV2() {dtype=DT_FLOAT, shape=[]}
         one = float[]{1}
         set = Assign(v, one)",
        &[],
    );
    let placed = place(&graph, &[("set", 1)]);
    let status = split(graph, &devices(2, 1), &placed).unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(status.message().contains("float_ref"), "{status}");
}

#[test]
fn names_are_unique_in_the_session() {
    let table = devices(2, 1);
    let counter = AtomicU64::new(0);
    let mut names = std::collections::HashSet::new();
    for _ in 0..3 {
        // A name that looks like ours is avoided.
        let graph = parse("x = int32[]{1}\nx_S1 = Neg(x)\ny = Neg(x)", &[]);
        let placed = place(&graph, &[("y", 1), ("x_S1", 1)]);
        let options = PartitionOptions {
            devices: &table,
            device_of: &|id| placed[id.index()],
            suffix: "_S",
            counter: &counter,
            control_flow_added: false,
            floats_as_bfloat16: false,
            copied_constant_bytes: 0,
        };
        for part in partition(graph, &options).unwrap() {
            for (_, node) in part.graph.nodes() {
                if node.op_name().starts_with("_Host") {
                    assert!(names.insert(node.name.clone()), "{}", node.name);
                }
            }
        }
    }
    assert_eq!(names.len(), 6);
}

#[test]
fn versions_are_kept() {
    let mut graph = parse("x = int32[]{1}\ny = Neg(x)", &[]);
    let mut versions = graph.versions().clone();
    versions.producer = 1999;
    graph.set_versions(versions.clone());
    let x = graph.find("x").unwrap();
    graph.set_attr(x, "_note", AttrValue::I(7));
    let placed = place(&graph, &[("y", 1)]);
    for part in split(graph, &devices(2, 1), &placed).unwrap() {
        assert_eq!(*part.graph.versions(), versions);
        if let Some(x) = part.graph.find("x") {
            assert_eq!(part.graph.node(x).attrs.int("_note").unwrap(), 7);
        }
    }
}

#[test]
fn floats_can_travel_as_bfloat16() {
    let graph = parse(
        "x = float[2]{1.0000001, 2}
         n = int32[]{7}
         y = Neg(x)
         m = Neg(n)
         r0 = _Retval(y) {index=0}
         r1 = _Retval(m) {index=1}",
        &[],
    );
    let table = devices(2, 1);
    let placed = place(&graph, &[("y", 1), ("m", 1)]);
    let parts = split_with(graph.clone(), &table, &placed, |options| {
        options.floats_as_bfloat16 = true;
    });
    let parts = parts.unwrap();
    assert_eq!((count(&parts[0], "Cast"), count(&parts[1], "Cast")), (2, 2));
    let graphs: Vec<&Graph> = parts.iter().map(|part| &part.graph).collect();
    let rounded = parse(
        "x = float[2]{-1, -2}
         m = int32[]{-7}
         r0 = _Retval(x) {index=0}
         r1 = _Retval(m) {index=1}",
        &[],
    );
    assert_eq!(
        run(&graphs, 2).unwrap().results,
        run(&[&rounded], 2).unwrap().results
    );
}

#[test]
fn an_error_in_one_part_ends_the_others() {
    let graph = parse(
        "v = VariableV2() {dtype=DT_FLOAT, shape=[]}
         a = Identity(v)
         b = Neg(a)
         r = _Retval(b) {index=0}",
        &[],
    );
    let placed = place(&graph, &[("b", 1), ("r", 1)]);
    let parts = split(graph, &devices(2, 1), &placed).unwrap();
    let graphs: Vec<&Graph> = parts.iter().map(|part| &part.graph).collect();
    let status = run(&graphs, 1).unwrap_err();
    assert!(status.message().contains("uninitialized"), "{status}");
}

#[test]
fn small_constants_can_be_copied_instead_of_sent() {
    let graph = parse(
        "small = float[2]{1, 2}
         large = float[100]{1}
         late = Const(^small) {dtype=DT_FLOAT, value=float[]{5}}
         a = AddV2(small, late, ^small)
         axis = int32[]{0}
         b = Sum(large, axis)
         r0 = _Retval(a) {index=0}",
        &[],
    );
    let table = devices(2, 1);
    let placed = place(&graph, &[("a", 1), ("b", 1)]);
    let parts = split_with(graph.clone(), &table, &placed, |options| {
        options.copied_constant_bytes = 64;
    });
    let parts = parts.unwrap();
    let graphs: Vec<&Graph> = parts.iter().map(|part| &part.graph).collect();
    let ran = run(&graphs, 1).unwrap();
    assert_eq!(ran.results, run(&[&graph], 1).unwrap().results);
    // The large one, the one that waits, and `a` on its way back.
    assert_eq!(ran.keys.len(), 3, "{:?}", ran.keys);
}
