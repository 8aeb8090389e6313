//! [`Graph`]: the handle, and what it keeps behind its lock.

use std::collections::BTreeMap;
use std::panic::Location;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tensorfleet_graph as ir;
use tensorfleet_graph::GraphBuilder;
use tensorfleet_proto as pb;
use tensorfleet_status::{Result, Status, failed_precondition, not_found};
use tensorfleet_tensor::{DType, PartialShape};

use crate::collection::Collections;
use crate::operation::{OpBuilder, Operation};
use crate::output::Output;
use crate::scope::{Names, Scopes};
use crate::shapes::Shapes;
use crate::value::IntoTensor;
use crate::variable_scope::VariableStore;

/// A graph in the making. Clones are handles of the same graph.
///
/// ```
/// use tensorfleet_client::Graph;
///
/// let g = Graph::new();
/// let three = g.constant(1i32) + g.constant(2i32);
/// assert_eq!(three.name(), "add:0");
/// assert_eq!(g.graph_def()?.node.len(), 3);
/// # Ok::<(), tensorfleet_client::Status>(())
/// ```
#[derive(Clone)]
pub struct Graph {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    /// The graph around a function's body, whose tensors the body may use.
    outer: Option<Graph>,
}

/// What a graph keeps.
pub(crate) struct State {
    pub(crate) builder: GraphBuilder,
    pub(crate) names: Names,
    pub(crate) scopes: Scopes,
    pub(crate) shapes: Shapes,
    pub(crate) collections: Collections,
    pub(crate) variables: VariableStore,
    /// Tensors of the graph around that this function's body uses: outside, inside.
    pub(crate) captures: Vec<(Output, ir::Output)>,
    /// Nodes of the graph around that must run before this function's body.
    pub(crate) waits: Vec<Operation>,
    pub(crate) seed: Option<i64>,
    error: Option<Status>,
    finalized: bool,
}

impl Default for Graph {
    fn default() -> Graph {
        Graph::new()
    }
}

impl Graph {
    /// An empty graph.
    pub fn new() -> Graph {
        Graph::within(None)
    }

    pub(crate) fn within(outer: Option<Graph>) -> Graph {
        let (registry, error) = match tensorfleet_ops::registry() {
            Ok(registry) => (registry, None),
            Err(status) => (Arc::new(ir::Registry::default()), Some(status)),
        };
        let state = State {
            builder: GraphBuilder::new(registry),
            names: Names::default(),
            scopes: Scopes::default(),
            shapes: Shapes::default(),
            collections: Collections::default(),
            variables: VariableStore::default(),
            captures: Vec::new(),
            waits: Vec::new(),
            seed: None,
            error,
            finalized: false,
        };
        Graph {
            shared: Arc::new(Shared {
                state: Mutex::new(state),
                outer,
            }),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // A panic between two changes leaves at most an unused node: the state stays usable.
        self.shared
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn outer(&self) -> Option<&Graph> {
        self.shared.outer.as_ref()
    }

    /// Whether two handles mean the same graph.
    pub fn is(&self, other: &Graph) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Starts a node of any op. The functions in [`ops`](crate::ops) do the same with types.
    pub fn op(&self, op: &str) -> OpBuilder {
        OpBuilder::new(self, op)
    }

    /// A constant.
    ///
    /// ```
    /// # let g = tensorfleet_client::Graph::new();
    /// let scalar = g.constant(0.5f32);
    /// let matrix = g.constant([[1i64, 2], [3, 4]]);
    /// assert_eq!(matrix.shape().dims(), Some(&[2, 2][..]));
    /// ```
    #[track_caller]
    pub fn constant(&self, value: impl IntoTensor) -> Output {
        self.named_constant("Const", value)
    }

    /// A constant with a name.
    #[track_caller]
    pub fn named_constant(&self, name: &str, value: impl IntoTensor) -> Output {
        match value.into_tensor() {
            Ok(tensor) => self
                .op("Const")
                .name(name)
                .attr("dtype", tensor.dtype())
                .attr("value", tensor)
                .output(),
            Err(status) => self.fail(status),
        }
    }

    /// A tensor that every run must feed; -1 stands for a dimension that may vary.
    #[track_caller]
    pub fn placeholder(&self, dtype: DType, dims: &[i64]) -> Output {
        self.named_placeholder("Placeholder", dtype, dims)
    }

    /// A placeholder with a name.
    #[track_caller]
    pub fn named_placeholder(&self, name: &str, dtype: DType, dims: &[i64]) -> Output {
        self.op("Placeholder")
            .name(name)
            .attr("dtype", dtype)
            .attr("shape", PartialShape::new(dims))
            .output()
    }

    /// One node that runs after all of these. Those of one device meet there first, so that each other
    /// device is told once.
    #[track_caller]
    pub fn group<'a>(&self, name: &str, ops: impl IntoIterator<Item = &'a Operation>) -> Operation {
        let mut by_device: BTreeMap<String, Vec<&Operation>> = BTreeMap::new();
        for op in ops {
            by_device.entry(op.device()).or_default().push(op);
        }
        let after = |name: &str, device: &str, ops: &[&Operation]| {
            let node = self.op("NoOp").name(name).device(device);
            ops.iter().fold(node, |node, op| node.control(op)).build()
        };
        if let (1, Some((device, ops))) = (by_device.len(), by_device.iter().next()) {
            return after(name, device, ops);
        }
        let _scope = self.name_scope(name);
        let here: Vec<Operation> = by_device
            .iter()
            .map(|(device, ops)| after("NoOp", device, ops))
            .collect();
        let whole = format!("{}/", self.current_name_scope());
        after(&whole, "", &here.iter().collect::<Vec<_>>())
    }

    /// The graph-level seed: ops with random results draw from it and their own position, so that the
    /// same program gives the same numbers.
    pub fn set_random_seed(&self, seed: i64) {
        self.lock().seed = Some(seed);
    }

    /// The seeds of the next random op: (seed, seed2), by TensorFlow's rule.
    pub fn next_seeds(&self, op_seed: Option<i64>) -> (i64, i64) {
        const DEFAULT_GRAPH_SEED: i64 = 87_654_321;
        let graph = self.current();
        let state = graph.lock();
        match (state.seed, op_seed) {
            (Some(graph), Some(op)) => (graph, op),
            (Some(graph), None) => (graph, state.builder.graph().len() as i64),
            (None, Some(op)) => (DEFAULT_GRAPH_SEED, op),
            (None, None) => (0, 0),
        }
    }

    /// The first mistake made while building, if there was one.
    pub fn check(&self) -> Result<()> {
        self.lock().error.clone().map_or(Ok(()), Err)
    }

    /// Forbids further changes: a program that goes on adding nodes while it trains leaks.
    pub fn finalize(&self) {
        self.lock().finalized = true;
    }

    /// Whether the graph may not change any more.
    pub fn is_finalized(&self) -> bool {
        self.lock().finalized
    }

    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.lock().builder.graph().len()
    }

    /// Whether there are no nodes yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The operation with this name.
    pub fn operation(&self, name: &str) -> Result<Operation> {
        let node = self.lock().builder.graph().find(name);
        let node =
            node.ok_or_else(|| not_found!("the graph has no operation with name '{name}'"))?;
        Ok(Operation::new(self, Some(node)))
    }

    /// All operations in order of creation.
    pub fn operations(&self) -> Vec<Operation> {
        let ids = self.lock().builder.graph().ids();
        ids.map(|id| Operation::new(self, Some(id))).collect()
    }

    /// The tensor with this name, `node` or `node:port`.
    pub fn tensor(&self, name: &str) -> Result<Output> {
        let found = self.lock().builder.graph().find_output(name);
        let found =
            found.ok_or_else(|| not_found!("the graph has no tensor with name '{name}'"))?;
        Ok(Output::new(self, Some(found)))
    }

    /// The graph as TensorFlow's message.
    pub fn graph_def(&self) -> Result<pb::GraphDef> {
        self.graph_def_from(0)
    }

    /// The nodes from position `first` on, and all functions.
    pub(crate) fn graph_def_from(&self, first: usize) -> Result<pb::GraphDef> {
        let state = self.lock();
        match &state.error {
            Some(status) => Err(status.clone()),
            None => state.builder.graph().export_from(first),
        }
    }

    /// Keeps the first mistake.
    #[track_caller]
    pub(crate) fn note(&self, status: Status) {
        self.lock().note(status, Location::caller());
    }

    /// Keeps the mistake; the void tensor it leads to.
    #[track_caller]
    pub(crate) fn fail(&self, status: Status) -> Output {
        self.note(status);
        Output::new(self, None)
    }
}

impl State {
    /// The first mistake.
    pub(crate) fn error(&self) -> Option<&Status> {
        self.error.as_ref()
    }

    /// Keeps a mistake that a function's body kept before.
    pub(crate) fn inherit(&mut self, status: Status) {
        self.error.get_or_insert(status);
    }

    pub(crate) fn note(&mut self, status: Status, place: &Location<'_>) {
        if self.error.is_none() {
            let place = format!("{}:{}", place.file(), place.line());
            self.error = Some(status.append(format_args!(" (graph built at {place})")));
        }
    }

    pub(crate) fn check_open(&self) -> Result<()> {
        if self.finalized {
            return Err(failed_precondition!(
                "the graph is finalized and cannot be changed; build all of it before the session that finalizes it"
            ));
        }
        Ok(())
    }
}

impl std::fmt::Debug for Graph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Graph({} nodes)", self.len())
    }
}
