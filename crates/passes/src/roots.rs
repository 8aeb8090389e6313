//! [`Roots`]: the nodes that must run, by name.

use std::sync::Arc;

use rustc_hash::FxHashSet;
use tensorfleet_graph::{Graph, NodeId};

/// The nodes that must run.
#[derive(Clone, Default, Debug)]
pub struct Roots(FxHashSet<Arc<str>>);

impl Roots {
    /// These nodes of a graph.
    pub fn of(graph: &Graph, ids: impl IntoIterator<Item = NodeId>) -> Roots {
        Roots(
            ids.into_iter()
                .map(|id| graph.node(id).name.clone())
                .collect(),
        )
    }

    /// Whether a node must run.
    pub fn contains(&self, name: &str) -> bool {
        self.0.contains(name)
    }

    /// More nodes of the same graph.
    pub(crate) fn add(&mut self, graph: &Graph, ids: impl IntoIterator<Item = NodeId>) {
        let names = ids.into_iter().map(|id| graph.node(id).name.clone());
        self.0.extend(names);
    }

    /// The nodes in this graph.
    pub fn ids(&self, graph: &Graph) -> Vec<NodeId> {
        let mut ids: Vec<NodeId> = self.0.iter().filter_map(|name| graph.find(name)).collect();
        ids.sort_unstable();
        ids
    }
}
