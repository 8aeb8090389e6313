//! Names, scopes, devices, mistakes.

use tensorfleet_client::{Code, DType, Graph, NodeUnderPlacement, Reuse, Session, init, keys};

#[test]
fn names_follow_scopes_and_stay_unique() {
    let g = Graph::new();
    let a = g.named_constant("a", 1.0f32);
    let b = g.named_constant("a", 1.0f32);
    let inner = g.name_scope("s").run(|| g.named_constant("a", 1.0f32));
    let second = g.name_scope("s").run(|| g.named_constant("a", 1.0f32));
    let names: Vec<String> = [a, b, inner, second]
        .iter()
        .map(|o| o.op().name())
        .collect();
    assert_eq!(names, ["a", "a_1", "s/a", "s_1/a"]);
}

#[test]
fn devices_merge_inside_out() {
    let g = Graph::new();
    let device = |build: &dyn Fn() -> String| build();
    let merged = {
        let _ps = g.device("/job:ps");
        let _task = g.device("/task:1");
        let _cpu = g.device("/cpu:0");
        device(&|| g.constant(1.0f32).op().device())
    };
    assert_eq!(merged, "/job:ps/task:1/device:CPU:0");
    let inner_wins = {
        let _ps = g.device("/job:ps/task:0");
        let _task = g.device("/task:1");
        g.constant(1.0f32).op().device()
    };
    assert_eq!(inner_wins, "/job:ps/task:1");
    let reset = {
        let _ps = g.device("/job:ps/task:0");
        let _none = g.device("");
        let _gpu = g.device("/gpu:1");
        g.constant(1.0f32).op().device()
    };
    assert_eq!(reset, "/device:GPU:1");
    g.check().unwrap();
}

#[test]
fn a_device_function_sees_the_op() {
    let g = Graph::new();
    let _scope = g.device_function(|node: &NodeUnderPlacement<'_>| match node.op {
        "VarHandleOp" => "/job:ps/task:0".to_owned(),
        _ => "/job:worker/task:1".to_owned(),
    });
    let v = g.variable("v", &[2]).build();
    let sum = &v + &v;
    assert_eq!(v.device(), "/job:ps/task:0");
    assert_eq!(v.snapshot().op().device(), "/job:ps/task:0");
    assert_eq!(sum.op().device(), "/job:worker/task:1");
}

#[test]
fn the_first_mistake_is_kept_with_its_place() {
    let g = Graph::new();
    let bad = g.constant(1.0f32).matmul(g.constant(1i32));
    let worse = &bad + &bad;
    assert!(bad.is_void() && worse.is_void());
    let status = g.check().unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(status.message().contains("building.rs"), "{status}");
    assert!(Session::new(&g).unwrap().run(&worse).is_err());
}

#[test]
fn tensors_of_two_graphs_do_not_mix() {
    let (g, h) = (Graph::new(), Graph::new());
    let mixed = g.constant(1.0f32) + h.constant(2.0f32);
    assert!(mixed.is_void());
    assert!(g.check().unwrap_err().message().contains("another graph"));
}

#[test]
fn control_dependencies_order_reads_behind_updates() {
    let g = Graph::new();
    let v = g.variable("v", &[]).build();
    let add = v.assign_add(g.constant(5.0f32));
    let after = {
        let _after = g.control_dependencies([&add]);
        v.read() * 2.0
    };
    let session = Session::new(&g).unwrap();
    session.run(v.initializer()).unwrap();
    assert_eq!(
        session.run(&after).unwrap().to_scalar::<f32>().unwrap(),
        10.0
    );
}

#[test]
fn variables_are_shared_where_their_scope_allows_it() {
    let g = Graph::new();
    let make = |reuse| {
        let _scope = g.variable_scope("layer", reuse);
        let _inner = g.variable_scope("sub", Reuse::Never);
        g.get_variable("w", &[3]).initializer(init::ones()).build()
    };
    let first = make(Reuse::Auto);
    assert_eq!(first.name(), "layer/sub/w");
    assert!(make(Reuse::Always).is(&first));
    assert_eq!(g.variables_in(keys::GLOBAL_VARIABLES).len(), 1);
    make(Reuse::Never);
    assert!(g.check().unwrap_err().message().contains("already exists"));
}

#[test]
fn a_finalized_graph_refuses_nodes() {
    let g = Graph::new();
    g.constant(1.0f32);
    g.finalize();
    assert!(g.constant(2.0f32).is_void());
    assert!(g.check().unwrap_err().message().contains("finalized"));
}

#[test]
fn shapes_are_known_where_they_can_be() {
    let g = Graph::new();
    let x = g.placeholder(DType::F32, &[-1, 4]);
    let w = g.variable("w", &[4, 3]).build();
    assert_eq!(x.matmul(&w).relu().shape().dims(), Some(&[-1, 3][..]));
    assert_eq!(x.mean(&[]).shape().dims(), Some(&[][..]));
}
