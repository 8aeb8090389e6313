//! Gradient rules agree with central differences on the examples, in double.

use tensorfleet_graph::GraphBuilder;
use tensorfleet_graph::gradient::{Grad, gradients};
use tensorfleet_session::{Session, SessionOptions};
use tensorfleet_tensor::{Shape, Tensor};
use tensorfleet_testkit::gradient;

/// Examples whose values sit on a kink or where differences lose all digits: (op/example, why).
const EXEMPT: &[(&str, &str)] = &[
    ("Sign/signs", "the step at zero has no derivative"),
    (
        "Sin/large arguments",
        "the difference of two large angles loses its digits",
    ),
    (
        "Cos/large arguments",
        "the difference of two large angles loses its digits",
    ),
    ("Zeta/", "as in TensorFlow nothing flows to the exponent"),
    (
        "Betainc/",
        "as in TensorFlow nothing flows to the parameters",
    ),
    (
        "Cholesky/two by two",
        "as in TensorFlow the gradient is spread over both triangles, of which one is read",
    ),
    ("MatrixSolveLs/tall: gradient 2", REGULARIZER),
    ("MatrixSolveLs/wide, regularised: gradient 2", REGULARIZER),
    (
        "TridiagonalSolve/singular, perturbed",
        "the solution is near the largest number there is",
    ),
];

const REGULARIZER: &str = "as in TensorFlow nothing flows to the regularizer";

#[test]
fn gradient_rules_agree_with_differences() {
    let registry = tensorfleet_ops::registry().unwrap();
    let mut wrong = Vec::new();
    for def in tensorfleet_ops::all().filter(|def| def.gradient.is_rule()) {
        match gradient::check(&registry, def) {
            Ok(found) => wrong.extend(found),
            Err(error) => wrong.push(format!("{}: {error:#}", def.name)),
        }
    }
    wrong.retain(|text| !EXEMPT.iter().any(|(name, _)| text.starts_with(name)));
    assert!(
        wrong.is_empty(),
        "{} gradients are wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// Along the first dimension, which TensorFlow's CPU kernel does not know.
#[test]
fn the_gradient_of_approximate_extremes_goes_where_they_were() {
    let registry = tensorfleet_ops::registry().unwrap();
    let mut builder = GraphBuilder::new(registry.clone());
    let matrix = Tensor::from_vec(
        Shape::matrix(3, 2).unwrap(),
        vec![4f32, 1.0, 2.0, 6.0, 3.0, 5.0],
    );
    let matrix = builder.constant(matrix.unwrap()).unwrap();
    let node = builder.op("ApproxTopK").input(matrix);
    let node = node.attr("k", 2i64).attr("reduction_dimension", 0i64);
    let least = node.attr("is_max_k", false).output().unwrap();
    let weights = Tensor::from_vec(Shape::matrix(2, 2).unwrap(), vec![1f32, 2.0, 3.0, 4.0]);
    let weights = builder.constant(weights.unwrap()).unwrap();
    let grads = gradients(&mut builder, &[least], &[matrix], &[Some(weights)]).unwrap();
    let Some(Grad::Dense(grad)) = grads[0] else {
        panic!("{grads:?}");
    };
    let name = builder.graph().output_name(grad);
    let session = Session::with_registry(SessionOptions::default(), registry).unwrap();
    session.extend(&builder.graph().export().unwrap()).unwrap();
    let found = session.run(&[], &[&name], &[]).unwrap();
    assert_eq!(
        found[0].slice::<f32>().unwrap(),
        [0.0, 2.0, 1.0, 0.0, 3.0, 4.0]
    );
}
