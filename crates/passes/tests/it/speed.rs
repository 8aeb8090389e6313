//! How long partitioning takes: release builds only, since the bound is for them.

use std::time::{Duration, Instant};

use tensorfleet_graph::{Graph, GraphBuilder, Output};
use tensorfleet_tensor::Tensor;

use crate::harness::{devices, registry, split};
use crate::programs::Random;

/// Additions of earlier values, now and then with a control edge.
fn large(nodes: usize) -> Graph {
    let mut random = Random::new(1);
    let mut builder = GraphBuilder::new(registry());
    let mut values: Vec<Output> = vec![builder.constant(Tensor::scalar(1f32)).unwrap()];
    while values.len() < nodes {
        let mut recent = || values[values.len() - 1 - random.below(values.len().min(50))];
        let (x, y, after) = (recent(), recent(), recent());
        let mut node = builder.op("AddV2").input(x).input(y);
        if values.len().is_multiple_of(10) {
            node = node.control(after.node);
        }
        let value = node.output().unwrap();
        values.push(value);
    }
    builder.finish()
}

#[test]
#[cfg_attr(debug_assertions, ignore = "the bound is for release builds")]
fn ten_thousand_nodes_take_less_than_20_ms() {
    let graph = large(10_000);
    let table = devices(2, 1);
    let mut random = Random::new(2);
    let halves: Vec<u32> = graph.ids().map(|id| u32::from(id.index() > 5000)).collect();
    let mixed: Vec<u32> = graph.ids().map(|_| random.below(2) as u32).collect();
    for (what, placed) in [("halves", halves), ("mixed", mixed)] {
        let mut best = Duration::MAX;
        let mut sizes = Vec::new();
        for _ in 0..10 {
            let copy = graph.clone();
            let start = Instant::now();
            let parts = split(copy, &table, &placed).unwrap();
            best = best.min(start.elapsed());
            sizes = parts.iter().map(|part| part.graph.len()).collect();
        }
        assert!(best < Duration::from_millis(20), "{what}: {best:?}");
        // Shown with --nocapture.
        #[allow(clippy::print_stderr)]
        {
            eprintln!("{what}: {best:?} for parts of {sizes:?} nodes");
        }
    }
}
