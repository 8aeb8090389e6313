//! Gradient rules agree with central differences on the examples, in double.

use tensorfleet_graph::gradient::{Grad, gradients};
use tensorfleet_graph::{GraphBuilder, Output};
use tensorfleet_kernel::{AttrList, AttrValue};
use tensorfleet_session::{Session, SessionOptions};
use tensorfleet_tensor::{DType, PartialShape, Shape, Tensor};
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
    (
        "QuantizeAndDequantize",
        "as in TensorFlow the gradient is that of a straight line through the steps",
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

/// The gradient of `y` for `x`, with these weights of the elements of `y`.
fn gradient_of(mut builder: GraphBuilder, y: Output, x: Output, weights: Tensor) -> Tensor {
    let weights = builder.constant(weights).unwrap();
    let grads = gradients(&mut builder, &[y], &[x], &[Some(weights)]).unwrap();
    let Some(Grad::Dense(grad)) = grads[0] else {
        panic!("{grads:?}");
    };
    let graph = builder.graph();
    let options = SessionOptions::default();
    let session = Session::with_registry(options, graph.registry().clone()).unwrap();
    session.extend(&graph.export().unwrap()).unwrap();
    let found = session.run(&[], &[&graph.output_name(grad)], &[]).unwrap();
    found[0].clone()
}

/// Along the first dimension, which TensorFlow's CPU kernel does not know.
#[test]
fn gradients_of_approximate_extremes_go_where_they_were() {
    let mut builder = GraphBuilder::new(tensorfleet_ops::registry().unwrap());
    let values = vec![4f32, 1.0, 2.0, 6.0, 3.0, 5.0];
    let matrix = Tensor::from_vec(Shape::matrix(3, 2).unwrap(), values).unwrap();
    let matrix = builder.constant(matrix).unwrap();
    let node = builder.op("ApproxTopK").input(matrix);
    let node = node.attr("k", 2i64).attr("reduction_dimension", 0i64);
    let least = node.attr("is_max_k", false).output().unwrap();
    let weights = vec![1f32, 2.0, 3.0, 4.0];
    let weights = Tensor::from_vec(Shape::matrix(2, 2).unwrap(), weights).unwrap();
    let found = gradient_of(builder, least, matrix, weights);
    assert_eq!(
        found.slice::<f32>().unwrap(),
        [0.0, 2.0, 1.0, 0.0, 3.0, 4.0]
    );
}

#[test]
fn gradients_pass_through_optionals() {
    let mut builder = GraphBuilder::new(tensorfleet_ops::registry().unwrap());
    let x = builder.constant(Tensor::vector(&[1f32, 2.0])).unwrap();
    let other = builder.constant(Tensor::scalar(3f64)).unwrap();
    let node = builder.op("OptionalFromValue").list(&[x, other]);
    let some = node.output().unwrap();
    let types = AttrList::Type(vec![DType::F32.into(), DType::F64.into()]);
    let shapes = AttrList::Shape(vec![PartialShape::unknown(); 2]);
    let node = builder.op("OptionalGetValue").input(some);
    let node = node.attr("output_types", AttrValue::List(types));
    let node = node.attr("output_shapes", AttrValue::List(shapes));
    let back = node.output().unwrap();
    let square = builder.apply("Square", &[back]).unwrap();
    let found = gradient_of(builder, square, x, Tensor::vector(&[1f32, 10.0]));
    assert_eq!(found.slice::<f32>().unwrap(), [2.0, 40.0]);
}
