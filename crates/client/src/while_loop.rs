//! [`while_loop`]: a closure's nodes run again and again while a condition holds.

use tensorfleet_graph as ir;
use tensorfleet_kernel::{AttrList, AttrValue};
use tensorfleet_status::{Result, Status, invalid_argument};
use tensorfleet_tensor::{DType, PartialShape};

use crate::body::{capture_args, captured};
use crate::carried::Carried;
use crate::cond::results_inside;
use crate::graph::Graph;
use crate::operation::Operation;
use crate::output::Output;

/// Runs what `body` builds while what `cond` builds is true, beginning with `init`; what the last iteration left.
///
/// The closures are called once, to build an iteration; they see the loop's variables as tensors.
/// Tensors of the graph around may be used inside, and are the same in every iteration. Iterations
/// overlap where they do not depend on each other.
///
/// Gradients flow through loops. Take them before the first run: the loop is changed to remember what its
/// gradient needs of each iteration.
///
/// ```
/// use tensorfleet_client::{Graph, Session, gradients, while_loop};
///
/// let g = Graph::new();
/// let x = g.constant(3.0f32);
/// let start = (g.constant(0i32), g.constant(1.0f32));
/// let (_, cube) = while_loop(start, |(i, _)| i.less(&g.constant(3i32)), |(i, p)| (i + 1, p * &x));
/// let slope = gradients(&[&cube], &[&x])?[0].as_ref().map(|grad| grad.to_dense());
///
/// let (cube, slope) = Session::new(&g)?.run((&cube, &slope))?;
/// assert_eq!(cube.to_scalar::<f32>()?, 27.0);
/// assert_eq!(slope.map(|v| v.to_scalar::<f32>()).transpose()?, Some(27.0));
/// # Ok::<(), tensorfleet_client::Status>(())
/// ```
#[track_caller]
pub fn while_loop<V: Carried>(
    init: V,
    cond: impl FnOnce(&V) -> Output,
    body: impl FnOnce(&V) -> V,
) -> V {
    WhileLoop::new().run(init, cond, body)
}

/// A loop with options.
///
/// ```
/// use tensorfleet_client::{Graph, Session, WhileLoop};
///
/// let g = Graph::new();
/// let grown = WhileLoop::new().maximum_iterations(3).shape_invariants(&[&[-1]]).run(
///     g.constant([1.0f32]),
///     |_| g.constant(true),
///     |x| g.op("ConcatV2").list(&[x, x]).input(g.constant(0i32)).output(),
/// );
/// assert_eq!(Session::new(&g)?.run(&grown)?.elements(), 8);
/// # Ok::<(), tensorfleet_client::Status>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is added to the graph before `run`"]
pub struct WhileLoop {
    name: String,
    parallel_iterations: i64,
    maximum_iterations: Option<i32>,
    shape_invariants: Vec<PartialShape>,
}

impl Default for WhileLoop {
    fn default() -> WhileLoop {
        WhileLoop::new()
    }
}

impl WhileLoop {
    /// A loop whose condition alone ends it.
    pub fn new() -> WhileLoop {
        WhileLoop {
            name: "while".to_owned(),
            parallel_iterations: 10,
            maximum_iterations: None,
            shape_invariants: Vec::new(),
        }
    }

    /// The name of the node.
    pub fn name(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// How many iterations may be under way at once; 10 by default.
    pub fn parallel_iterations(mut self, count: usize) -> Self {
        self.parallel_iterations = i64::try_from(count).unwrap_or(i64::MAX).max(1);
        self
    }

    /// Ends the loop after so many iterations whatever its condition says.
    pub fn maximum_iterations(mut self, count: i32) -> Self {
        self.maximum_iterations = Some(count);
        self
    }

    /// What stays the same of the shapes of the loop's variables, -1 for what does not. Without it they
    /// keep their first shapes.
    pub fn shape_invariants(mut self, shapes: &[&[i64]]) -> Self {
        self.shape_invariants = shapes.iter().map(|dims| PartialShape::new(dims)).collect();
        self
    }

    /// Builds the loop; see [`while_loop`].
    #[track_caller]
    pub fn run<V: Carried>(
        self,
        init: V,
        cond: impl FnOnce(&V) -> Output,
        body: impl FnOnce(&V) -> V,
    ) -> V {
        let start = init.outputs();
        let Some(first) = start.first() else {
            // Nothing could ever change, and there is no graph to build in.
            return init;
        };
        let graph = first.graph().current();
        match self.add(&graph, &init, &start, cond, body) {
            Ok((node, shapes)) => {
                let outputs = shapes.iter().enumerate().map(|(index, shape)| {
                    let output = node.output(HIDDEN + index);
                    if let Some(dims) = shape.dims() {
                        output.set_shape(dims);
                    }
                    output
                });
                init.like(&mut outputs.into_iter(), &node)
            }
            Err(status) => {
                graph.note(status);
                let mut void = std::iter::repeat_with(|| Output::new(&graph, None));
                init.like(&mut void, &Operation::new(&graph, None))
            }
        }
    }

    #[track_caller]
    fn add<V: Carried>(
        &self,
        graph: &Graph,
        init: &V,
        start: &[Output],
        cond: impl FnOnce(&V) -> Output,
        body: impl FnOnce(&V) -> V,
    ) -> Result<(Operation, Vec<PartialShape>)> {
        graph.check()?;
        let shapes = self.shapes(start)?;
        let (test, answer) = graph.build_body(|inner| {
            let vars = Variables::new(inner, init, start, &shapes)?;
            let goes_on = cond(&vars.value);
            let goes_on = match self.maximum_iterations {
                Some(_) => vars.counter.less(&vars.maximum).logical_and(&goes_on),
                None => goes_on,
            };
            Ok::<_, Status>((vars.args, goes_on))
        });
        let (test_args, goes_on) = answer?;
        let answer = results_inside(&test, &goes_on)?;
        check_answer(&goes_on)?;
        let (step, next) = graph.build_body(|inner| {
            let vars = Variables::new(inner, init, start, &shapes)?;
            let next = body(&vars.value);
            Ok::<_, Status>((vars.args, (&vars.counter + 1, vars.maximum, next)))
        });
        let (step_args, next) = next?;
        let mut results = results_inside(&step, &next)?;
        check_results(&step, &results[HIDDEN..], start, &shapes)?;

        // What either closure uses of the graph around goes through all iterations unchanged.
        let captures = captured(&[&test, &step]);
        for outside in &captures {
            results.push(step.capture(outside)?);
        }
        let test_args = [test_args, capture_args(&test, &captures)].concat();
        let step_args = [step_args, capture_args(&step, &captures)].concat();
        let cond = test.define("while_cond", &test_args, &answer, &[])?;
        let body = step.define("while_body", &step_args, &results, &next.operations())?;

        let op = match cond.is_stateful || body.is_stateful {
            true => "While",
            false => "StatelessWhile",
        };
        let mut output_shapes = vec![PartialShape::scalar(); HIDDEN];
        output_shapes.extend(shapes.iter().cloned());
        output_shapes.extend(captures.iter().map(Output::shape));
        let hidden = self.hidden(graph);
        let inputs = [&hidden, start, &captures].concat();
        let mut node = graph.op(op).name(&self.name).list(&inputs);
        for op in test.lock().waits.iter().chain(&step.lock().waits) {
            node = node.control(op);
        }
        let node = node
            .attr("cond", AttrValue::Func(cond.func))
            .attr("body", AttrValue::Func(body.func))
            .attr("parallel_iterations", self.parallel_iterations)
            .attr(
                "output_shapes",
                AttrValue::List(AttrList::Shape(output_shapes)),
            )
            .attr("_lower_using_switch_merge", true)
            .build();
        Ok((node, shapes))
    }

    /// The first variables of every loop, as TensorFlow's gradients expect them.
    fn hidden(&self, graph: &Graph) -> [Output; HIDDEN] {
        let name = |what: &str| format!("{}/{what}", self.name);
        let limit = self.maximum_iterations.unwrap_or(-1);
        [
            graph.named_constant(&name("loop_counter"), 0i32),
            graph.named_constant(&name("maximum_iterations"), limit),
        ]
    }

    /// The shapes that variables have in every iteration.
    fn shapes(&self, start: &[Output]) -> Result<Vec<PartialShape>> {
        if self.shape_invariants.is_empty() {
            return Ok(start.iter().map(Output::shape).collect());
        }
        if self.shape_invariants.len() != start.len() {
            return Err(invalid_argument!(
                "{} shape invariants for {} variables of the loop '{}'",
                self.shape_invariants.len(),
                start.len(),
                self.name
            ));
        }
        for (invariant, output) in self.shape_invariants.iter().zip(start) {
            invariant.merge(&output.shape()).map_err(|status| {
                status.context(format!("shape invariant of '{}'", output.name()))
            })?;
        }
        Ok(self.shape_invariants.clone())
    }
}

/// How many variables a loop has besides the program's: the counter and its limit.
const HIDDEN: usize = 2;

/// The loop's variables as a body sees them.
struct Variables<V> {
    counter: Output,
    maximum: Output,
    value: V,
    args: Vec<(DType, Option<ir::Output>)>,
}

impl<V: Carried> Variables<V> {
    fn new(
        body: &Graph,
        init: &V,
        start: &[Output],
        shapes: &[PartialShape],
    ) -> Result<Variables<V>> {
        let mut args = Vec::with_capacity(HIDDEN + start.len());
        let mut add = |name: &str, dtype: DType, shape: PartialShape| -> Result<Output> {
            let at = body.argument(name, dtype, shape)?;
            args.push((dtype, Some(at)));
            Ok(Output::new(body, Some(at)))
        };
        let counter = add("loop_counter", DType::I32, PartialShape::scalar())?;
        let maximum = add("maximum_iterations", DType::I32, PartialShape::scalar())?;
        let mut vars = Vec::with_capacity(start.len());
        for (output, shape) in start.iter().zip(shapes) {
            vars.push(add("loop_variable", output.dtype(), shape.clone())?);
        }
        let nothing = Operation::new(body, None);
        Ok(Variables {
            counter,
            maximum,
            value: init.like(&mut vars.into_iter(), &nothing),
            args,
        })
    }
}

fn check_answer(goes_on: &Output) -> Result<()> {
    if goes_on.dtype() == DType::Bool {
        return Ok(());
    }
    Err(invalid_argument!(
        "the condition of a loop must be bool, '{}' is {}",
        goes_on.name(),
        goes_on.dtype().name()
    ))
}

/// An iteration must leave variables of the types and shapes that it found.
fn check_results(
    body: &Graph,
    results: &[ir::Output],
    start: &[Output],
    shapes: &[PartialShape],
) -> Result<()> {
    if results.len() != start.len() {
        return Err(invalid_argument!(
            "the body of a loop over {} tensors returns {}",
            start.len(),
            results.len()
        ));
    }
    for ((at, first), shape) in results.iter().zip(start).zip(shapes) {
        let result = Output::new(body, Some(*at));
        if result.dtype() != first.dtype() {
            return Err(invalid_argument!(
                "'{}' enters the loop as {} and is {} after one iteration",
                first.name(),
                first.dtype().name(),
                result.dtype().name()
            ));
        }
        if shape.merge(&result.shape()).is_err() {
            return Err(invalid_argument!(
                "'{}' enters the loop with shape {shape} and has shape {} after one iteration; say what stays the same with shape_invariants",
                first.name(),
                result.shape()
            ));
        }
    }
    Ok(())
}
