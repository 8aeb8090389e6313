//! [`cond`], [`case`], [`switch_case`]: one of several closures' results, decided when the graph runs.

use tensorfleet_graph as ir;
use tensorfleet_kernel::{AttrList, AttrValue};
use tensorfleet_status::{Result, invalid_argument};
use tensorfleet_tensor::{DType, PartialShape};

use crate::body::{Defined, capture_args, captured};
use crate::carried::Carried;
use crate::graph::Graph;
use crate::operation::Operation;
use crate::output::Output;

/// What `then` builds where `pred` is true when the graph runs, what `otherwise` builds where it is not.
///
/// Only the nodes of the branch that is taken run, and updates of variables among them run even if nothing
/// reads them. Both must build tensors of the same types.
///
/// ```
/// use tensorfleet_client::{DType, Graph, Session, Tensor, cond, gradients};
///
/// let g = Graph::new();
/// let x = g.placeholder(DType::F32, &[]);
/// let y = cond(&x.less(&g.constant(0.0f32)), || -&x, || x.square());
/// let dy_dx = gradients(&[&y], &[&x])?[0].as_ref().map(|grad| grad.to_dense());
///
/// let session = Session::new(&g)?;
/// let (y, dy_dx) = session.run_fed(&[(&x, Tensor::scalar(3.0f32))], (&y, &dy_dx))?;
/// assert_eq!(y.to_scalar::<f32>()?, 9.0);
/// assert_eq!(dy_dx.map(|v| v.to_scalar::<f32>()).transpose()?, Some(6.0));
/// # Ok::<(), tensorfleet_client::Status>(())
/// ```
#[track_caller]
pub fn cond<T: Carried>(
    pred: &Output,
    then: impl FnOnce() -> T,
    otherwise: impl FnOnce() -> T,
) -> T {
    let graph = pred.graph().current();
    let branches = [
        graph.build_body(|_| then()),
        graph.build_body(|_| otherwise()),
    ];
    choose(&graph, pred, &branches, &branches[0].1, Kind::If)
}

/// The first closure whose condition holds, or the last one.
///
/// ```
/// use tensorfleet_client::{Graph, Session, case};
///
/// let g = Graph::new();
/// let x = g.constant(5.0f32);
/// let (low, high) = (x.less(&g.constant(0.0f32)), x.greater(&g.constant(1.0f32)));
/// let y = case(&[(&low, &|| g.constant(0.0f32)), (&high, &|| g.constant(1.0f32))], &|| x.identity());
/// assert_eq!(Session::new(&g)?.run(&y)?.to_scalar::<f32>()?, 1.0);
/// # Ok::<(), tensorfleet_client::Status>(())
/// ```
#[track_caller]
pub fn case<T: Carried>(cases: &[(&Output, &dyn Fn() -> T)], default: &dyn Fn() -> T) -> T {
    match cases {
        [] => default(),
        [(pred, build), rest @ ..] => cond(pred, build, || case(rest, default)),
    }
}

/// The closure with this number, an int32 scalar; the last one for a number without closure. `None` without closures.
#[track_caller]
pub fn switch_case<T: Carried>(index: &Output, branches: &[&dyn Fn() -> T]) -> Option<T> {
    let graph = index.graph().current();
    let branches: Vec<(Graph, T)> = branches
        .iter()
        .map(|build| graph.build_body(|_| build()))
        .collect();
    let (_, form) = branches.first()?;
    Some(choose(&graph, index, &branches, form, Kind::Case))
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    If,
    Case,
}

#[track_caller]
fn choose<T: Carried>(
    graph: &Graph,
    selector: &Output,
    branches: &[(Graph, T)],
    form: &T,
    kind: Kind,
) -> T {
    let (node, shapes) = match add_node(graph, selector, branches, kind) {
        Ok(added) => added,
        Err(status) => {
            graph.note(status);
            (Operation::new(graph, None), Vec::new())
        }
    };
    let outputs = shapes.iter().enumerate().map(|(index, shape)| {
        let output = node.output(index);
        if let Some(dims) = shape.dims() {
            output.set_shape(dims);
        }
        output
    });
    let void = std::iter::repeat_with(|| Output::new(graph, None));
    form.like(&mut outputs.chain(void), &node)
}

#[track_caller]
fn add_node<T: Carried>(
    graph: &Graph,
    selector: &Output,
    branches: &[(Graph, T)],
    kind: Kind,
) -> Result<(Operation, Vec<PartialShape>)> {
    graph.check()?;
    let wanted = match kind {
        Kind::If => DType::Bool,
        Kind::Case => DType::I32,
    };
    if selector.dtype() != wanted {
        return Err(invalid_argument!(
            "'{}' decides between branches and must be {}, not {}",
            selector.name(),
            wanted.name(),
            selector.dtype().name()
        ));
    }
    let mut results = Vec::with_capacity(branches.len());
    for (body, value) in branches {
        results.push(results_inside(body, value)?);
    }
    let bodies: Vec<&Graph> = branches.iter().map(|(body, _)| body).collect();
    let (types, shapes) = agree(&bodies, &results)?;
    let captures = captured(&bodies);
    let mut functions = Vec::with_capacity(branches.len());
    for (index, (body, value)) in branches.iter().enumerate() {
        let base = match kind {
            Kind::If => ["cond_true", "cond_false"][index.min(1)].to_owned(),
            Kind::Case => format!("switch_case_branch{index}"),
        };
        let args = capture_args(body, &captures);
        functions.push(body.define(&base, &args, &results[index], &value.operations())?);
    }
    let stateful = functions.iter().any(|function| function.is_stateful);
    let op = match (kind, stateful) {
        (Kind::If, true) => "If",
        (Kind::If, false) => "StatelessIf",
        (Kind::Case, true) => "Case",
        (Kind::Case, false) => "StatelessCase",
    };
    let mut node = graph.op(op).input(selector).list(&captures);
    node = node.name(match kind {
        Kind::If => "cond",
        Kind::Case => "switch_case",
    });
    let mut functions = functions.into_iter().map(|Defined { func, .. }| func);
    node = match kind {
        Kind::Case => {
            let all = AttrList::Func(functions.collect());
            node.attr("branches", AttrValue::List(all))
        }
        Kind::If => {
            for name in ["then_branch", "else_branch"] {
                if let Some(func) = functions.next() {
                    node = node.attr(name, AttrValue::Func(func));
                }
            }
            node
        }
    };
    for body in &bodies {
        for op in &body.lock().waits {
            node = node.control(op);
        }
    }
    let node = node
        .attr("Tout", types)
        .attr(
            "output_shapes",
            AttrValue::List(AttrList::Shape(shapes.clone())),
        )
        .attr("_lower_using_switch_merge", true)
        .build();
    Ok((node, shapes))
}

/// A closure's results as tensors of the body it built.
pub(crate) fn results_inside(body: &Graph, value: &impl Carried) -> Result<Vec<ir::Output>> {
    body.check()?;
    let outputs = value.outputs();
    outputs.iter().map(|output| output.within(body)).collect()
}

/// Types and shapes of the results, which all branches must have in common.
fn agree(
    bodies: &[&Graph],
    results: &[Vec<ir::Output>],
) -> Result<(Vec<DType>, Vec<PartialShape>)> {
    let describe = |body: &Graph, outputs: &[ir::Output]| -> Vec<(DType, PartialShape)> {
        outputs
            .iter()
            .map(|at| Output::new(body, Some(*at)))
            .map(|output| (output.dtype(), output.shape()))
            .collect()
    };
    let mut all = bodies.iter().zip(results);
    let mut common = all.next().map_or(Vec::new(), |(b, r)| describe(b, r));
    for (body, outputs) in all {
        let other = describe(body, outputs);
        if common.len() != other.len() {
            return Err(invalid_argument!(
                "branches must return as many tensors as each other, not {} and {}",
                common.len(),
                other.len()
            ));
        }
        for (index, (known, found)) in common.iter_mut().zip(other).enumerate() {
            if known.0 != found.0 {
                return Err(invalid_argument!(
                    "branches must return tensors of the same types: result {index} is {} in one and {} in another",
                    known.0.name(),
                    found.0.name()
                ));
            }
            known.1 = either(&known.1, &found.1);
        }
    }
    Ok(common.into_iter().unzip())
}

/// What holds for a tensor that has one shape or the other.
fn either(a: &PartialShape, b: &PartialShape) -> PartialShape {
    match (a.dims(), b.dims()) {
        (Some(a), Some(b)) if a.len() == b.len() => {
            let same = |(a, b): (&i64, &i64)| if a == b { *a } else { -1 };
            let dims: Vec<i64> = a.iter().zip(b).map(same).collect();
            PartialShape::new(&dims)
        }
        _ => PartialShape::unknown(),
    }
}
