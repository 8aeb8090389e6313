//! Gradients through conditionals and loops, against differences of the values.

use tensorfleet_client::{
    Code, DType, Graph, Output, Session, Shape, Tensor, Variable, cond, gradients, init, while_loop,
};

/// Compares the gradient of `y` by the fed `x` with central differences, at each of these points.
fn check(g: &Graph, y: &Output, x: &Output, variables: &[&Variable], points: &[Vec<f64>]) {
    let grad = gradients(&[y], &[x]).unwrap().remove(0);
    let grad = grad.expect("y does not depend on x").to_dense();
    g.check().unwrap();
    let session = Session::new(g).unwrap();
    for variable in variables {
        session.run(variable.initializer()).unwrap();
    }
    let dims: Vec<i64> = x.shape().dims().unwrap().to_vec();
    let feed = |values: &[f64]| Tensor::from_slice(Shape::new(&dims).unwrap(), values).unwrap();
    let value = |values: &[f64]| {
        let y = session.run_fed(&[(x, feed(values))], y).unwrap();
        y.slice::<f64>().unwrap().iter().sum::<f64>()
    };
    for point in points {
        let found = session.run_fed(&[(x, feed(point))], &grad).unwrap();
        for (index, found) in found.slice::<f64>().unwrap().iter().enumerate() {
            let step = 1e-5;
            let at = |by: f64| {
                let mut moved = point.clone();
                moved[index] += by;
                value(&moved)
            };
            let wanted = (at(step) - at(-step)) / (2.0 * step);
            let near = (found - wanted).abs() <= 1e-6 * (1.0 + wanted.abs());
            assert!(near, "at {point:?}[{index}]: {found}, not {wanted}");
        }
    }
}

fn fed(g: &Graph, dims: &[i64]) -> Output {
    g.placeholder(DType::F64, dims)
}

fn up_to(g: &Graph, i: &Output, n: i32) -> Output {
    i.less(g.constant(n))
}

#[test]
fn through_a_conditional() {
    let g = Graph::new();
    let x = fed(&g, &[2]);
    let c = g.constant(3.0f64);
    let big = x.sum(&[]).greater(&c);
    // One branch does not depend on x: its gradient is zero.
    let y = cond(
        &big,
        || (&x * &x * &c).tanh(),
        || c.identity() * g.constant([1.0f64, 1.0]),
    );
    check(&g, &y, &x, &[], &[vec![0.3, 0.1], vec![2.0, 1.5]]);
}

#[test]
fn through_nested_conditionals() {
    let g = Graph::new();
    let x = fed(&g, &[]);
    let (zero, one) = (g.constant(0.0f64), g.constant(1.0f64));
    let y = cond(
        &x.greater(&zero),
        || {
            let s = x.square();
            cond(&x.greater(&one), || &s * &x, || s.exp() * &x)
        },
        || x.exp(),
    );
    check(&g, &y, &x, &[], &[vec![-0.5], vec![0.5], vec![1.5]]);
}

#[test]
fn through_a_loop_by_its_variable_and_by_what_it_captures() {
    let g = Graph::new();
    let x = fed(&g, &[3]);
    let run = |start: &Output| {
        let init = (g.constant(0i32), start.clone());
        while_loop(
            init,
            |(i, _)| up_to(&g, i, 5),
            |(i, y)| (i + 1, (y * &x).tanh() + y),
        )
        .1
    };
    let y = run(&x.exp()) + run(&g.constant([0.1f64, 0.2, 0.3]));
    check(
        &g,
        &y,
        &x,
        &[],
        &[vec![0.3, -0.2, 0.7], vec![1.0, 0.0, -1.0]],
    );
}

#[test]
fn through_a_loop_that_may_not_run_at_all() {
    let g = Graph::new();
    let x = fed(&g, &[]);
    let limit = g.constant(10.0f64);
    let y = while_loop(x.clone(), |y| y.less(&limit), |y| y * y + &x);
    check(&g, &y, &x, &[], &[vec![20.0], vec![2.0], vec![0.7]]);
}

#[test]
fn through_loops_in_loops_with_conditionals() {
    let g = Graph::new();
    let x = fed(&g, &[2]);
    let (_, y) = while_loop(
        (g.constant(0i32), x.identity()),
        |(i, _)| up_to(&g, i, 3),
        |(i, y)| {
            let (_, z) = while_loop(
                (g.constant(0i32), y.identity()),
                |(j, _)| j.less_equal(i),
                |(j, z)| (j + 1, (z * &x).sigmoid() + y),
            );
            let odd = (i % 2).equal(g.constant(1i32));
            (i + 1, cond(&odd, || z.square() * y, || z.sqrt()))
        },
    );
    check(&g, &y, &x, &[], &[vec![0.5, 1.2]]);
}

#[test]
fn through_a_loop_with_a_list_of_results() {
    // What a recurrent network does: each step's output is kept and used afterwards.
    let g = Graph::new();
    let x = fed(&g, &[4, 2]);
    let shape = g.constant([2i32]);
    let list = g
        .op("TensorListReserve")
        .input(&shape)
        .input(g.constant(4i32));
    let list = list.attr("element_dtype", DType::F64).output();
    let (_, list, last) = while_loop(
        (g.constant(0i32), list, g.constant([0.0f64, 0.0])),
        |(i, _, _)| up_to(&g, i, 4),
        |(i, list, state)| {
            let state = (state + x.gather(i)).tanh();
            let list = g.op("TensorListSetItem").input(list).input(i).input(&state);
            (i + 1, list.output(), state)
        },
    );
    let all = g.op("TensorListStack").input(&list).input(&shape);
    let all = all.attr("element_dtype", DType::F64).output();
    let y = (all * g.constant([1.0f64, 2.0])).sum(&[]) + last.square().sum(&[]);
    check(
        &g,
        &y,
        &x,
        &[],
        &[vec![0.1, 0.2, -0.3, 0.4, 0.5, -0.6, 0.7, 0.8]],
    );
}

#[test]
fn of_gradients() {
    let g = Graph::new();
    let x = fed(&g, &[]);
    let init = (g.constant(0i32), g.constant(1.0f64));
    let (_, y) = while_loop(init, |(i, _)| up_to(&g, i, 4), |(i, y)| (i + 1, y * &x));
    let first = gradients(&[&y], &[&x]).unwrap().remove(0).unwrap();
    check(&g, &first.to_dense(), &x, &[], &[vec![1.5], vec![-0.5]]);
}

#[test]
fn stops_where_it_is_told() {
    let g = Graph::new();
    let x = fed(&g, &[]);
    let init = (g.constant(0i32), x.identity());
    let (_, y) = while_loop(
        init,
        |(i, _)| up_to(&g, i, 3),
        |(i, y)| (i + 1, y * y.stop_gradient()),
    );
    let grad = gradients(&[&y], &[&x])
        .unwrap()
        .remove(0)
        .unwrap()
        .to_dense();
    let session = Session::new(&g).unwrap();
    let grad = session
        .run_fed(&[(&x, Tensor::scalar(2.0f64))], &grad)
        .unwrap();
    // The factors that are not stopped: 2, 4 and 16.
    assert_eq!(grad.to_scalar::<f64>().unwrap(), 2.0 * 4.0 * 16.0);
}

#[test]
fn by_variables_read_and_gathered_inside() {
    let g = Graph::new();
    let w = g.variable("w", &[2, 2]).dtype(DType::F64);
    let w = w.initializer(init::constant(0.5)).build();
    let table = g.variable("table", &[5, 2]).dtype(DType::F64);
    let table = table.initializer(init::constant(0.25)).build();
    let init = (g.constant(0i32), g.constant([[1.0f64, 2.0]]));
    let (_, y) = while_loop(
        init,
        |(i, _)| up_to(&g, i, 3),
        |(i, y)| {
            let row = table.gather(&(i + 1)).expand_dims(0);
            (
                i + 1,
                y.matmul(&w) + cond(&up_to(&g, i, 2), || &row * 2.0, || row.identity()),
            )
        },
    );
    let grads = gradients(&[&y.sum(&[])], &[&w, &table]).unwrap();
    let dense: Vec<Output> = grads
        .iter()
        .map(|grad| grad.as_ref().unwrap().to_dense())
        .collect();
    let session = Session::new(&g).unwrap();
    session.run(&g.global_variables_initializer()).unwrap();
    let found = session.run(&dense).unwrap();
    // With w = ½·ones the sum of y halves into both columns: y1 = 1.5 + ½, y2 = 2 + ½, y3 = 2.5 + ¼ each.
    assert_eq!(found[0].slice::<f64>().unwrap(), [5.5, 5.5, 6.5, 6.5]);
    let rows = [0.0, 0.0, 2.0, 2.0, 2.0, 2.0, 1.0, 1.0, 0.0, 0.0];
    assert_eq!(found[1].slice::<f64>().unwrap(), rows);
}

#[test]
fn sees_the_random_numbers_of_the_forward_run() {
    let g = Graph::new();
    let x = g.constant(1.0f32);
    let (_, y) = while_loop(
        (g.constant(0i32), g.constant(0.0f32)),
        |(i, _)| up_to(&g, i, 3),
        |(i, y)| {
            let dims = g.constant(Vec::<i32>::new());
            let noise = g.op("RandomUniform").input(dims).attr("dtype", DType::F32);
            (i + 1, y + noise.output() * &x)
        },
    );
    let grad = gradients(&[&y], &[&x])
        .unwrap()
        .remove(0)
        .unwrap()
        .to_dense();
    let session = Session::new(&g).unwrap();
    for _ in 0..3 {
        // y is linear in x with x = 1: the slope is y itself.
        let (y, slope) = session.run((&y, &grad)).unwrap();
        let (y, slope) = (
            y.to_scalar::<f32>().unwrap(),
            slope.to_scalar::<f32>().unwrap(),
        );
        assert!((y - slope).abs() < 1e-6, "{y} {slope}");
    }
}

#[test]
fn a_loop_that_was_sent_cannot_remember_more() {
    let g = Graph::new();
    let x = g.constant(2.0f32);
    let y = while_loop(x.clone(), |y| y.less(g.constant(9.0f32)), |y| y * &x);
    let session = Session::new(&g).unwrap();
    session.run(&y).unwrap();
    let status = gradients(&[&y], &[&x]).unwrap_err();
    assert_eq!(status.code(), Code::FailedPrecondition);
    assert!(
        status.message().contains("before the first run"),
        "{status}"
    );
}
