//! [`gradients`]: derivatives of a graph as part of the graph.

use tensorfleet_graph::gradient::{self, Grad};
use tensorfleet_graph::{self as ir, NodeId};
use tensorfleet_status::{Result, invalid_argument};

use crate::device::{self, NodeUnderPlacement};
use crate::graph::Graph;
use crate::output::Output;
use crate::variable::Variable;

/// Rows of a larger tensor: `values[i]` belongs to row `indices[i]`. An index may occur twice; such rows add.
#[derive(Clone, Debug)]
pub struct IndexedSlices {
    /// The rows.
    pub values: Output,
    /// Which rows.
    pub indices: Output,
    /// The shape of the whole.
    pub dense_shape: Output,
}

/// The gradient with respect to one tensor or variable.
///
/// ```
/// use tensorfleet_client::{Gradient, Graph, gradients, init};
///
/// let g = Graph::new();
/// let table = g.variable("table", &[1000, 8]).initializer(init::ones()).build();
/// let loss = table.gather(g.constant([3i32, 7])).square().sum(&[]);
/// // Two rows of a thousand: the gradient stays sparse.
/// let gradient = gradients(&[&loss], &[&table])?.remove(0);
/// assert!(matches!(gradient, Some(Gradient::Sparse(_))));
/// # Ok::<(), tensorfleet_client::Status>(())
/// ```
#[derive(Clone, Debug)]
pub enum Gradient {
    /// A tensor of the same shape.
    Dense(Output),
    /// Only some rows.
    Sparse(IndexedSlices),
}

impl Gradient {
    /// As one tensor of the full shape.
    pub fn to_dense(&self) -> Output {
        match self {
            Gradient::Dense(output) => output.clone(),
            Gradient::Sparse(slices) => {
                let g = slices.values.graph();
                let rows = slices.dense_shape.slice(&[0], &[1]).squeeze(&[0]);
                g.op("UnsortedSegmentSum")
                    .input(&slices.values)
                    .input(&slices.indices)
                    .input(rows)
                    .output()
            }
        }
    }

    /// The dense tensor or the rows.
    pub fn values(&self) -> &Output {
        match self {
            Gradient::Dense(output) => output,
            Gradient::Sparse(slices) => &slices.values,
        }
    }

    /// The same with other values.
    #[must_use]
    pub fn with_values(&self, values: Output) -> Gradient {
        match self {
            Gradient::Dense(_) => Gradient::Dense(values),
            Gradient::Sparse(slices) => Gradient::Sparse(IndexedSlices {
                values,
                ..slices.clone()
            }),
        }
    }
}

/// What a gradient can be taken with respect to.
pub trait Differentiable {
    /// The tensor the flow ends at.
    fn flow_end(&self) -> Output;
}

impl Differentiable for Output {
    fn flow_end(&self) -> Output {
        self.clone()
    }
}

impl Differentiable for Variable {
    fn flow_end(&self) -> Output {
        self.handle().clone()
    }
}

impl<T: Differentiable> Differentiable for &T {
    fn flow_end(&self) -> Output {
        (*self).flow_end()
    }
}

/// The derivatives of the sum of `ys` by each of `xs`, `None` where nothing depends on it.
///
/// ```
/// use tensorfleet_client::{Graph, Session, gradients};
///
/// let g = Graph::new();
/// let x = g.constant(3.0f32);
/// let y = x.square() * 2.0;
/// let dy_dx = gradients(&[&y], &[&x])?.remove(0).map(|grad| grad.to_dense());
/// assert_eq!(Session::new(&g)?.run(&dy_dx)?.map(|v| v.to_scalar::<f32>()).transpose()?, Some(12.0));
/// # Ok::<(), tensorfleet_client::Status>(())
/// ```
pub fn gradients(ys: &[&Output], xs: &[impl Differentiable]) -> Result<Vec<Option<Gradient>>> {
    gradients_from(ys, &[], xs)
}

/// Like [`gradients`], beginning with these gradients of `ys` instead of ones.
pub fn gradients_from(
    ys: &[&Output],
    grad_ys: &[Option<Output>],
    xs: &[impl Differentiable],
) -> Result<Vec<Option<Gradient>>> {
    let Some(graph) = ys.first().map(|y| y.graph().clone()) else {
        return Err(invalid_argument!("there is nothing to take a gradient of"));
    };
    graph.check()?;
    if let Some(y) = ys.iter().find(|y| !y.dtype().is_differentiable()) {
        return Err(invalid_argument!(
            "'{}' has dtype {}; gradients flow from floating-point tensors only",
            y.name(),
            y.dtype().name()
        ));
    }
    let inside = |output: &Output| output.within(&graph);
    let ys: Vec<ir::Output> = ys.iter().map(|y| inside(y)).collect::<Result<_>>()?;
    let xs: Vec<ir::Output> = xs
        .iter()
        .map(|x| inside(&x.flow_end()))
        .collect::<Result<_>>()?;
    let grad_ys: Vec<Option<ir::Output>> = grad_ys
        .iter()
        .map(|grad| grad.as_ref().map(inside).transpose())
        .collect::<Result<_>>()?;
    let found = graph.add_gradients(&ys, &xs, &grad_ys)?;
    let output = |at| Output::new(&graph, Some(at));
    let public = |grad: Grad| match grad {
        Grad::Dense(at) => Gradient::Dense(output(at)),
        Grad::Rows {
            values,
            indices,
            dense_shape,
        } => Gradient::Sparse(IndexedSlices {
            values: output(values),
            indices: output(indices),
            dense_shape: output(dense_shape),
        }),
    };
    Ok(found.into_iter().map(|grad| grad.map(public)).collect())
}

impl Graph {
    fn add_gradients(
        &self,
        ys: &[ir::Output],
        xs: &[ir::Output],
        grad_ys: &[Option<ir::Output>],
    ) -> Result<Vec<Option<Grad>>> {
        let first = {
            let state = self.lock();
            state.check_open()?;
            state.builder.graph().len()
        };
        let found = {
            let mut state = self.lock();
            let scope = state.full_name("gradients");
            state.builder.set_scope(scope);
            let found = gradient::gradients(&mut state.builder, ys, xs, grad_ys);
            state.builder.set_scope("");
            found?
        };
        self.adopt_from(first)?;
        Ok(found)
    }

    /// Puts nodes that were added elsewhere, such as by gradient rules, under the open scopes, as if the program had
    /// made them here.
    pub(crate) fn adopt_from(&self, first: usize) -> Result<()> {
        let scopes = self.lock().scopes.devices.clone();
        let end = self.len();
        for index in first..end {
            let id = NodeId::from_index(index);
            let node = self.lock().builder.graph().node(id).clone();
            let device = device::decide(
                &scopes,
                &NodeUnderPlacement {
                    op: node.op_name(),
                    name: &node.name,
                    device: &node.device,
                    attrs: &node.attrs,
                },
            )?;
            let mut state = self.lock();
            let inputs: Vec<NodeId> = node.inputs.iter().map(|input| input.node).collect();
            for control in state.scopes.controls_for(&inputs) {
                state.builder.graph_mut().add_control(control, id);
            }
            state.scopes.made(id);
            state.names.take(&node.name);
            state.builder.graph_mut().set_device(id, device);
        }
        Ok(())
    }
}
