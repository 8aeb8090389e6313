//! Names of new nodes: unique in the graph and among all graphs of the session.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustc_hash::FxHashSet;
use tensorfleet_graph::Graph;

use super::PartitionOptions;

pub(super) struct Names<'a> {
    suffix: &'a str,
    counter: &'a AtomicU64,
    /// Names of the graph that look like ours.
    taken: FxHashSet<Arc<str>>,
}

impl<'a> Names<'a> {
    pub(super) fn new(graph: &Graph, options: &PartitionOptions<'a>) -> Names<'a> {
        let looks_like_ours = |name: &str| {
            let base = name.trim_end_matches(|c: char| c.is_ascii_digit());
            base.len() < name.len() && base.ends_with(options.suffix)
        };
        Names {
            suffix: options.suffix,
            counter: options.counter,
            taken: graph
                .nodes()
                .filter(|(_, node)| looks_like_ours(&node.name))
                .map(|(_, node)| node.name.clone())
                .collect(),
        }
    }

    /// A number that no other node or edge of the session has.
    pub(super) fn number(&self) -> u64 {
        self.counter.fetch_add(1, Ordering::Relaxed)
    }

    /// A name that no other node of the session has.
    pub(super) fn fresh(&self, base: &str) -> Arc<str> {
        loop {
            let name = format!("{base}{}{}", self.suffix, self.number());
            if !self.taken.contains(name.as_str()) {
                return name.into();
            }
        }
    }
}
