//! [`Output`], the handle of a tensor, and [`Operand`], what may stand where a tensor is wanted.

use tensorfleet_graph as ir;
use tensorfleet_status::{Result, invalid_argument};
use tensorfleet_tensor::{DType, PartialShape, PortType};

use crate::graph::Graph;
use crate::operation::Operation;

/// A tensor of a graph: an output of one of its nodes.
///
/// ```
/// use tensorfleet_client::{DType, Graph, Session, Tensor};
///
/// let g = Graph::new();
/// let x = g.placeholder(DType::F32, &[-1]);
/// let spread = (&x - x.mean(&[])).square().sum(&[]).sqrt();
/// assert_eq!((spread.dtype(), spread.shape().dims()), (DType::F32, Some(&[][..])));
///
/// let fed = [(&x, Tensor::vector(&[1.0f32, 1.0, 4.0, 4.0]))];
/// assert_eq!(Session::new(&g)?.run_fed(&fed, &spread)?.to_scalar::<f32>()?, 3.0);
/// # Ok::<(), tensorfleet_client::Status>(())
/// ```
#[derive(Clone)]
pub struct Output {
    graph: Graph,
    at: Option<ir::Output>,
}

impl Output {
    pub(crate) fn new(graph: &Graph, at: Option<ir::Output>) -> Output {
        Output {
            graph: graph.clone(),
            at,
        }
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Where it is in its graph; `None` for a void tensor.
    #[allow(dead_code)]
    pub(crate) fn at(&self) -> Option<ir::Output> {
        self.at
    }

    /// Whether the tensor could not be made; [`Graph::check`] says why.
    pub fn is_void(&self) -> bool {
        self.at.is_none()
    }

    /// The node.
    pub fn op(&self) -> Operation {
        Operation::new(&self.graph, self.at.map(|at| at.node))
    }

    /// The position among the node's outputs.
    pub fn index(&self) -> usize {
        self.at.map_or(0, |at| at.port as usize)
    }

    /// `node:port`; empty for a void tensor.
    pub fn name(&self) -> String {
        match self.at {
            Some(at) => format!("{}:{}", self.op().name(), at.port),
            None => String::new(),
        }
    }

    fn port_type(&self) -> Option<PortType> {
        self.graph.lock().builder.graph().output_type(self.at?)
    }

    /// The element type; float for a void tensor.
    pub fn dtype(&self) -> DType {
        self.port_type().map_or(DType::F32, |port| port.dtype)
    }

    /// Whether it is a reference to a variable's memory rather than a value.
    pub fn is_ref(&self) -> bool {
        self.port_type().is_some_and(|port| port.is_ref)
    }

    /// What is known of the shape.
    pub fn shape(&self) -> PartialShape {
        let Some(at) = self.at else {
            return PartialShape::unknown();
        };
        let mut state = self.graph.lock();
        let state = &mut *state;
        state.shapes.of(state.builder.graph(), at)
    }

    /// Says what is known of the shape from elsewhere; an error in the graph if it contradicts.
    #[track_caller]
    pub fn set_shape(&self, dims: &[i64]) {
        let Some(at) = self.at else { return };
        let merged = self.shape().merge(&PartialShape::new(dims));
        match merged {
            Ok(shape) => self.graph.lock().shapes.set(at, shape),
            Err(status) => self.graph.note(status.context(self.name())),
        }
    }

    /// The same tensor seen from `graph`, which may be the body of a function around which `self` lies.
    pub(crate) fn within(&self, graph: &Graph) -> Result<ir::Output> {
        if self.graph.is(graph) {
            return self
                .at
                .ok_or_else(|| invalid_argument!("a tensor that could not be made"));
        }
        match graph.outer() {
            Some(outer) => graph.capture(&Output::new(outer, Some(self.within(outer)?))),
            None => Err(invalid_argument!(
                "tensor '{}' is of another graph than the node that wants it",
                self.name()
            )),
        }
    }
}

impl std::fmt::Debug for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{}: {} {}",
            self.name(),
            self.dtype().name(),
            self.shape()
        )
    }
}

/// What may stand where a tensor is wanted: a tensor, or a variable, which is read there.
pub trait Operand {
    /// The tensor.
    fn to_output(&self) -> Output;
}

impl Operand for Output {
    fn to_output(&self) -> Output {
        self.clone()
    }
}

impl<T: Operand + ?Sized> Operand for &T {
    fn to_output(&self) -> Output {
        (**self).to_output()
    }
}
