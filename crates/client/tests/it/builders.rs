//! Typed builders: attributes, lists, named outputs, mistakes.

use tensorfleet_client::{DType, Graph, Output, Session, ops};

#[test]
fn lists_go_in_and_come_out() {
    let g = Graph::new();
    let x = g.constant([[1.0f32, 2.0], [3.0, 4.0]]);
    let rows = ops::unpack(&x, 2).outputs();
    let back = ops::pack(&rows).axis(1).output();
    let value = Session::new(&g).unwrap().run(&back).unwrap();
    assert_eq!(value.slice::<f32>().unwrap(), [1.0, 3.0, 2.0, 4.0]);
}

#[test]
fn attributes_without_a_default_are_parameters() {
    let g = Graph::new();
    let x = ops::placeholder(&g, DType::F32).name("x").output();
    let y = ops::cast(&x, DType::I32).output();
    assert_eq!((y.dtype(), y.name()), (DType::I32, "Cast:0".to_owned()));
    g.check().unwrap();
}

#[test]
fn nodes_without_outputs_are_nodes() {
    let g = Graph::new();
    let v = g.variable("v", &[]).build();
    let double = ops::mul(&v, &v).output();
    let assign = ops::assign_variable_op(v.handle(), &double).build();
    assert_eq!(assign.op_type(), "AssignVariableOp");
    g.check().unwrap();
}

#[test]
fn mistakes_without_a_graph_reach_the_graph_that_uses_them() {
    let g = Graph::new();
    let nothing: [Output; 0] = [];
    let sum = ops::add_n(&nothing).output();
    let used = g.constant(1.0f32) + sum;
    assert!(used.is_void());
    assert!(g.check().is_err());
}

#[test]
fn void_lists_have_their_length() {
    let g = Graph::new();
    let bad = g.constant(1.0f32).matmul(g.constant(1i32));
    let parts = ops::split(g.constant(0i32), &bad, 3).outputs();
    assert_eq!(parts.len(), 3);
    assert!(parts.iter().all(Output::is_void));
}
