//! Small models with conditionals and loops, run in many places by `tensorflow_graphs`.

use tensorfleet_client::{
    DType, Graph, Operation, Output, Tensor, cond, gradients, init, switch_case, while_loop,
};

/// A graph, what to run first, and what to compare.
pub(crate) struct Model {
    pub(crate) name: &'static str,
    pub(crate) graph: Graph,
    pub(crate) before: Vec<Operation>,
    pub(crate) feeds: Vec<(Output, Tensor)>,
    pub(crate) fetches: Vec<Output>,
}

pub(crate) fn all() -> Vec<Model> {
    vec![lstm(), choices(), nested(), effects()]
}

fn slopes(y: &Output, xs: &[Output]) -> Vec<Output> {
    let xs: Vec<&Output> = xs.iter().collect();
    let grads = gradients(&[y], &xs).unwrap();
    grads
        .iter()
        .map(|grad| grad.as_ref().unwrap().to_dense())
        .collect()
}

/// An LSTM over four steps of a batch of two, with its outputs kept in a list, and the gradients of its weights.
fn lstm() -> Model {
    const STEPS: i32 = 4;
    const UNITS: i64 = 3;
    let g = Graph::new();
    let x = g.named_placeholder("x", DType::F32, &[i64::from(STEPS), 2, 2]);
    let ramp: Vec<f32> = (0..60).map(|i| (i as f32 * 0.37).sin() * 0.5).collect();
    let kernel = g.variable("kernel", &[2 + UNITS, 4 * UNITS]);
    let kernel = kernel
        .initializer(init::tensor(tensor(&[5, 12], &ramp)))
        .build();
    let bias = g.variable("bias", &[4 * UNITS]).build();
    let zeros = g.named_constant("zeros", [[0.0f32; 3]; 2]);
    let shape = g.constant([2i32, 3]);
    let empty = g
        .op("EmptyTensorList")
        .input(&shape)
        .input(g.constant(-1i32));
    let empty = empty.attr("element_dtype", DType::F32).output();
    let start = (g.constant(0i32), zeros.clone(), zeros, empty);
    let (_, c, _, list) = while_loop(
        start,
        |(step, ..)| step.less(g.constant(STEPS)),
        |(step, c, h, list)| {
            let axis = g.constant(1i32);
            let joined = g.op("ConcatV2").list(&[&x.gather(step), h]).input(&axis);
            let gates = joined.output().matmul(&kernel).bias_add(&bias);
            let gates = g
                .op("Split")
                .input(&axis)
                .input(gates)
                .attr("num_split", 4i64)
                .build();
            let gate = |index| gates.output(index).sigmoid();
            let c = c * gate(0) + gate(1) * gates.output(2).tanh();
            let h = c.tanh() * gate(3);
            let list = g.op("TensorListPushBack").input(list).input(&h).output();
            (step + 1, c, h, list)
        },
    );
    let outputs = g.op("TensorListStack").input(&list).input(&shape);
    let outputs = outputs.attr("element_dtype", DType::F32).output();
    let loss = outputs.square().mean(&[]) + c.sum(&[]);
    let grads = gradients(&[&loss], &[&kernel, &bias]).unwrap();
    let mut fetches = vec![loss.clone(), outputs];
    fetches.extend(grads.iter().map(|grad| grad.as_ref().unwrap().to_dense()));
    fetches.extend(slopes(&loss, std::slice::from_ref(&x)));
    let steps: Vec<f32> = (0..16).map(|i| (i as f32 * 0.9).cos()).collect();
    Model {
        name: "lstm",
        before: vec![g.global_variables_initializer()],
        feeds: vec![(x, tensor(&[4, 2, 2], &steps))],
        fetches,
        graph: g,
    }
}

/// Conditionals in conditionals, and one of three by number.
fn choices() -> Model {
    let g = Graph::new();
    let x = g.named_placeholder("x", DType::F32, &[3]);
    let low = x.sum(&[]).less(g.constant(10.0f32));
    let first = cond(
        &low,
        || {
            let y = x.square();
            cond(
                &y.max(&[]).greater(g.constant(2.0f32)),
                || y.exp() * &x,
                || y.identity(),
            )
        },
        || -&x,
    );
    let which = g.constant(1i32);
    let second = switch_case(
        &which,
        &[&|| x.identity(), &|| (&x * &x).tanh(), &|| {
            g.constant([1.0f32; 3])
        }],
    )
    .unwrap();
    let y = (first * second).sum(&[]);
    let fetches = [vec![y.clone()], slopes(&y, std::slice::from_ref(&x))].concat();
    Model {
        name: "choices",
        before: Vec::new(),
        feeds: vec![(x, tensor(&[3], &[0.5, 1.5, -0.25]))],
        fetches,
        graph: g,
    }
}

/// A loop in a loop with a conditional, over a table in a variable, and the gradient of the gradient.
fn nested() -> Model {
    let g = Graph::new();
    let x = g.named_placeholder("x", DType::F32, &[2]);
    let rows: Vec<f32> = (0..8).map(|i| 0.1 * i as f32).collect();
    let table = g
        .variable("table", &[4, 2])
        .initializer(init::tensor(tensor(&[4, 2], &rows)));
    let table = table.build();
    let (_, y) = while_loop(
        (g.constant(0i32), x.identity()),
        |(i, _)| i.less(g.constant(3i32)),
        |(i, y)| {
            let row = table.gather(i);
            let (_, z) = while_loop(
                (g.constant(0i32), y.identity()),
                |(j, _)| j.less_equal(i),
                |(j, z)| (j + 1, (z * &x + &row).tanh() + y),
            );
            let odd = (i % 2).equal(g.constant(1i32));
            (i + 1, cond(&odd, || z.square(), || &z * y))
        },
    );
    let y = y.sum(&[]);
    let by_table = gradients(&[&y], &[&table]).unwrap().remove(0).unwrap();
    let first = slopes(&y, std::slice::from_ref(&x));
    let second = slopes(&first[0].sum(&[]), std::slice::from_ref(&x));
    let fetches = [vec![y, by_table.to_dense()], first, second].concat();
    Model {
        name: "nested",
        before: vec![g.global_variables_initializer()],
        feeds: vec![(x, tensor(&[2], &[0.3, 0.6]))],
        fetches,
        graph: g,
    }
}

/// A loop that changes a variable, after which it is read.
fn effects() -> Model {
    let g = Graph::new();
    let v = g.variable("v", &[]).initializer(init::ones()).build();
    let n = while_loop(
        g.constant(0i32),
        |i| i.less(g.constant(4i32)),
        |i| {
            let even = (i % 2).equal(g.constant(0i32));
            let update = cond(
                &even,
                || v.assign(&v * &v.read() + g.constant(1.0f32)),
                || v.assign_sub(g.constant(0.5f32)),
            );
            let _after = g.control_dependencies([&update]);
            i + 1
        },
    );
    let after = {
        let _after = g.control_dependencies([&n.op()]);
        v.read()
    };
    Model {
        name: "effects",
        before: vec![g.global_variables_initializer()],
        feeds: Vec::new(),
        fetches: vec![n, after],
        graph: g,
    }
}

fn tensor(dims: &[i64], values: &[f32]) -> Tensor {
    Tensor::from_slice(tensorfleet_client::Shape::new(dims).unwrap(), values).unwrap()
}
