//! How long partitioning takes: release builds only, since the bound is for them.

use std::sync::OnceLock;
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
        let name = format!("layer/add_{}", values.len());
        let mut node = builder.op("AddV2").name(name).input(x).input(y);
        if values.len().is_multiple_of(10) {
            node = node.control(after.node);
        }
        let value = node.output().unwrap();
        values.push(value);
    }
    builder.finish()
}

/// The processor time of this thread where the system tells, so that a busy machine does not count;
/// elsewhere the time.
fn now() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    let scheduled = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanos = scheduled.and_then(|text| text.split(' ').next()?.parse().ok());
    nanos.map_or_else(
        || START.get_or_init(Instant::now).elapsed(),
        Duration::from_nanos,
    )
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
            // The kernel's account is brought up to date when a thread gives way.
            std::thread::yield_now();
            let started = now();
            let parts = split(copy, &table, &placed).unwrap();
            std::thread::yield_now();
            best = best.min(now().saturating_sub(started));
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
