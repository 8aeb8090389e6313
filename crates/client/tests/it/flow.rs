//! Conditionals and loops: values, effects, captures, mistakes.

use tensorfleet_client::{
    Code, DType, Graph, Output, Session, Tensor, WhileLoop, case, cond, init, switch_case,
    while_loop,
};

fn scalar(session: &Session, output: &Output) -> f32 {
    session.run(output).unwrap().to_scalar().unwrap()
}

#[test]
fn only_the_branch_taken_has_effects() {
    let g = Graph::new();
    let p = g.placeholder(DType::Bool, &[]);
    let v = g.variable("v", &[]).build();
    let w = g.variable("w", &[]).initializer(init::ones()).build();
    // Closures that return nothing still act, through the node of the conditional.
    cond(
        &p,
        || {
            v.assign_add(&w * &w + &g.constant(1.0f32));
        },
        || {
            v.assign(g.constant(-1.0f32));
        },
    );
    let node = g.operation("cond").unwrap();
    let session = Session::new(&g).unwrap();
    session.run(&g.global_variables_initializer()).unwrap();
    session
        .run_fed(&[(&p, Tensor::scalar(true))], &node)
        .unwrap();
    assert_eq!(scalar(&session, v.snapshot()), 2.0);
    session
        .run_fed(&[(&p, Tensor::scalar(false))], &node)
        .unwrap();
    assert_eq!(scalar(&session, v.snapshot()), -1.0);
}

#[test]
fn branches_return_tuples_and_capture() {
    let g = Graph::new();
    let p = g.placeholder(DType::Bool, &[]);
    let x = g.constant([1.0f32, 2.0]);
    let (a, n) = cond(
        &p,
        || (&x * 2.0, g.constant(1i32)),
        || (x.clone(), g.constant(2i32)),
    );
    assert_eq!(a.shape().dims(), Some(&[2][..]));
    let session = Session::new(&g).unwrap();
    for (pred, values, number) in [(true, [2.0f32, 4.0], 1), (false, [1.0, 2.0], 2)] {
        let feeds = [(&p, Tensor::scalar(pred))];
        let (a, n) = session.run_fed(&feeds, (&a, &n)).unwrap();
        assert_eq!(a.slice::<f32>().unwrap(), values);
        assert_eq!(n.to_scalar::<i32>().unwrap(), number);
    }
}

#[test]
fn cases_are_tried_in_order() {
    let g = Graph::new();
    let x = g.placeholder(DType::I32, &[]);
    let number = |value: f32| move |g: &Graph| g.constant(value);
    let (is_one, is_small) = (x.equal(g.constant(1i32)), x.less(g.constant(10i32)));
    let tried = case(
        &[
            (&is_one, &|| number(1.0)(&g)),
            (&is_small, &|| number(2.0)(&g)),
        ],
        &|| number(3.0)(&g),
    );
    let switched = switch_case(
        &x,
        &[&|| number(0.0)(&g), &|| number(1.0)(&g), &|| {
            number(9.0)(&g)
        }],
    )
    .unwrap();
    let session = Session::new(&g).unwrap();
    for (fed, tries, switches) in [(1, 1.0, 1.0), (5, 2.0, 9.0), (50, 3.0, 9.0), (0, 2.0, 0.0)] {
        let feeds = [(&x, Tensor::scalar(fed))];
        let (a, b) = session.run_fed(&feeds, (&tried, &switched)).unwrap();
        assert_eq!(a.to_scalar::<f32>().unwrap(), tries, "{fed}");
        assert_eq!(b.to_scalar::<f32>().unwrap(), switches, "{fed}");
    }
}

#[test]
fn loops_nest_and_hold_conditionals() {
    let g = Graph::new();
    let n = g.constant(4i32);
    // The sum over i of (0 + 1 + … + i), odd i only.
    let (_, total) = while_loop(
        (g.constant(0i32), g.constant(0i32)),
        |(i, _)| i.less(&n),
        |(i, total)| {
            let (_, inner) = while_loop(
                (g.constant(0i32), g.constant(0i32)),
                |(j, _)| j.less_equal(i),
                |(j, sum)| (j + 1, sum + j),
            );
            let odd = (i % 2).equal(g.constant(1i32));
            (i + 1, cond(&odd, || total + &inner, || total.clone()))
        },
    );
    let total = Session::new(&g).unwrap().run(&total).unwrap();
    assert_eq!(total.to_scalar::<i32>().unwrap(), 1 + 6);
}

#[test]
fn a_loop_reads_and_updates_variables() {
    let g = Graph::new();
    let v = g.variable("v", &[]).initializer(init::ones()).build();
    let i = WhileLoop::new().parallel_iterations(1).run(
        g.constant(0i32),
        |i| i.less(g.constant(5i32)),
        |i| {
            let double = v.assign(&v * &g.constant(2.0f32));
            let _after = g.control_dependencies([&double]);
            i + 1
        },
    );
    let session = Session::new(&g).unwrap();
    session.run(v.initializer()).unwrap();
    session.run(&i).unwrap();
    assert_eq!(scalar(&session, v.snapshot()), 32.0);
}

#[test]
fn variables_made_inside_are_of_the_graph_around() {
    let g = Graph::new();
    let (_, y) = while_loop(
        (g.constant(0i32), g.constant([[1.0f32, 1.0]])),
        |(i, _)| i.less(g.constant(2i32)),
        |(i, y)| {
            let w = g.get_variable("w", &[2, 2]).initializer(init::ones());
            (i + 1, y.matmul(w.build()))
        },
    );
    assert_eq!(g.global_variables().len(), 1);
    let session = Session::new(&g).unwrap();
    session.run(&g.global_variables_initializer()).unwrap();
    assert_eq!(session.run(&y).unwrap().slice::<f32>().unwrap(), [4.0, 4.0]);
}

#[test]
fn devices_and_waits_reach_into_bodies() {
    let g = Graph::new();
    let _device = g.device("/job:localhost/task:0");
    let v = g.variable("v", &[]).build();
    let set = v.assign(g.constant(7.0f32));
    let y = cond(
        &g.constant(true),
        || {
            let _after = g.control_dependencies([&set]);
            v.read() * 2.0
        },
        || g.constant(0.0f32),
    );
    let def = g.graph_def().unwrap();
    let library = def.library.unwrap();
    let inside = library.function.iter().flat_map(|f| &f.node_def);
    for node in inside {
        assert_eq!(node.device, "/job:localhost/task:0", "{}", node.name);
    }
    assert_eq!(scalar(&Session::new(&g).unwrap(), &y), 14.0);
}

#[test]
fn mistakes_are_named() {
    let text = |build: &dyn Fn(&Graph)| {
        let g = Graph::new();
        build(&g);
        let status = g.check().unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument);
        status.message().to_owned()
    };
    let t = text(&|g| {
        cond(
            &g.constant(true),
            || g.constant(1i32),
            || g.constant(1.0f32),
        );
    });
    assert!(
        t.contains("result 0 is int32 in one and float in another"),
        "{t}"
    );
    let t = text(&|g| {
        cond(
            &g.constant(1.0f32),
            || g.constant(1i32),
            || g.constant(1i32),
        );
    });
    assert!(t.contains("must be bool, not float"), "{t}");
    let t = text(&|g| {
        let v = g.variable("v", &[]).as_ref_variable().build();
        cond(&g.constant(true), || v.read(), || g.constant(1.0f32));
    });
    assert!(t.contains("'v' is a reference variable"), "{t}");
    let t = text(&|g| {
        while_loop(
            g.constant([1.0f32]),
            |_| g.constant(true),
            |x| {
                g.op("ConcatV2")
                    .list(&[x, x])
                    .input(g.constant(0i32))
                    .output()
            },
        );
    });
    assert!(
        t.contains("shape_invariants") && t.contains("flow.rs"),
        "{t}"
    );
    let t = text(&|g| {
        while_loop(g.constant(1i32), |x| x + 1, |x| x + 1);
    });
    assert!(t.contains("condition of a loop must be bool"), "{t}");
}
