//! A model trained by hand: variables, gradients, sessions here and on a server.

use tensorfleet_client::{
    DType, Gradient, Graph, Operation, Output, Session, Shape, Tensor, Variable, gradients, init,
    ops,
};
use tensorfleet_rpc::Server;

struct Model {
    graph: Graph,
    x: Output,
    y: Output,
    loss: Output,
    train: Operation,
}

/// Fits y = 2x + 1 with plain gradient descent.
fn line(resource: bool) -> Model {
    let g = Graph::new();
    let x = g.placeholder(DType::F32, &[-1, 1]);
    let y = g.placeholder(DType::F32, &[-1, 1]);
    let variable = |name: &str, dims: &[i64]| -> Variable {
        let builder = g.variable(name, dims).initializer(init::zeros());
        if resource {
            builder
        } else {
            builder.as_ref_variable()
        }
        .build()
    };
    let (w, b) = (variable("w", &[1, 1]), variable("b", &[1]));
    let loss = (x.matmul(&w) + &b - &y).square().mean(&[]);
    let grads = gradients(&[&loss], &[&w, &b]).unwrap();
    let updates: Vec<Operation> = [&w, &b]
        .iter()
        .zip(&grads)
        .map(|(variable, grad)| variable.assign_sub(&(grad.as_ref().unwrap().to_dense() * 0.1)))
        .collect();
    let train = g.group("train", &updates);
    Model {
        graph: g,
        x,
        y,
        loss,
        train,
    }
}

fn fit(model: &Model, session: &Session) -> f32 {
    session
        .run(&model.graph.global_variables_initializer())
        .unwrap();
    let shape = Shape::matrix(4, 1).unwrap();
    let xs = Tensor::from_slice(shape.clone(), &[0.0f32, 1.0, 2.0, 3.0]).unwrap();
    let ys = Tensor::from_slice(shape, &[1.0f32, 3.0, 5.0, 7.0]).unwrap();
    let mut last = f32::MAX;
    for _ in 0..300 {
        let feeds = [(&model.x, xs.clone()), (&model.y, ys.clone())];
        let (loss, ()) = session
            .run_fed(&feeds, (&model.loss, &model.train))
            .unwrap();
        last = loss.to_scalar::<f32>().unwrap();
    }
    last
}

#[test]
fn a_line_is_learnt_here() {
    for resource in [true, false] {
        let model = line(resource);
        let loss = fit(&model, &Session::new(&model.graph).unwrap());
        assert!(loss < 1e-4, "resource {resource}: {loss}");
    }
}

#[test]
fn a_line_is_learnt_on_a_server() {
    let server = Server::create_local(Default::default()).unwrap();
    let model = line(true);
    let session = Session::connect(&model.graph, server.target()).unwrap();
    assert!(fit(&model, &session) < 1e-4);
}

#[test]
fn gradients_of_gathered_rows_stay_rows() {
    let g = Graph::new();
    let table = g
        .variable("table", &[10, 2])
        .initializer(init::ones())
        .build();
    let rows = table.gather(g.constant([1i32, 3, 1]));
    let grads = gradients(&[&rows.sum(&[])], &[&table]).unwrap();
    let Some(Gradient::Sparse(slices)) = &grads[0] else {
        panic!("{grads:?}");
    };
    let session = Session::new(&g).unwrap();
    session.run(table.initializer()).unwrap();
    let (indices, dense) = session
        .run((&slices.indices, &grads[0].as_ref().unwrap().to_dense()))
        .unwrap();
    assert_eq!(indices.slice::<i32>().unwrap(), [1, 3, 1]);
    assert_eq!(
        dense.slice::<f32>().unwrap()[..8],
        [0.0, 0.0, 2.0, 2.0, 0.0, 0.0, 1.0, 1.0]
    );
}

#[test]
fn gradients_of_gathered_elements_go_where_they_were() {
    let g = Graph::new();
    let table = g
        .variable("table", &[2, 2])
        .initializer(init::ones())
        .build();
    let shape = Shape::matrix(3, 2).unwrap();
    let places = Tensor::from_vec(shape, vec![1i64, 0, 0, 1, 1, 0]).unwrap();
    let elements = ops::resource_gather_nd(table.handle(), g.constant(places), DType::F32).output();
    let grads = gradients(&[&elements.sum(&[])], &[&table]).unwrap();
    let session = Session::new(&g).unwrap();
    session.run(table.initializer()).unwrap();
    let dense = session.run(&grads[0].as_ref().unwrap().to_dense()).unwrap();
    assert_eq!(dense.slice::<f32>().unwrap(), [0.0, 1.0, 2.0, 0.0]);
}
