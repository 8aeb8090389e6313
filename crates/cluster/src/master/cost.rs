//! The cost graph of a step: what its nodes took, for clients that ask by `build_cost_model`.

use rustc_hash::FxHashMap;
use tensorfleet_proto::cost_graph_def::Node;
use tensorfleet_proto::cost_graph_def::node::{InputInfo, OutputInfo};
use tensorfleet_proto::{ConfigProto, CostGraphDef, GraphDef, NodeExecStats, StepStats};

/// Whether the run with this number, counted from 0, builds the cost model: every so many runs, after some.
pub(super) fn is_due(config: &ConfigProto, run: u64) -> bool {
    let Some(options) = &config.graph_options else {
        return false;
    };
    let (Ok(every), Ok(after)) = (
        u64::try_from(options.build_cost_model),
        u64::try_from(options.build_cost_model_after),
    ) else {
        return false;
    };
    every > 0 && run + 1 > after && (run + 1 - after).is_multiple_of(every)
}

/// The nodes of the graphs that ran, with their times and output sizes.
pub(super) fn cost_graph(graphs: &[GraphDef], stats: &StepStats) -> CostGraphDef {
    let mut times: FxHashMap<&str, (i64, &NodeExecStats)> = FxHashMap::default();
    for node in stats.dev_stats.iter().flat_map(|device| &device.node_stats) {
        let entry = times.entry(&node.node_name).or_insert((0, node));
        entry.0 += node.op_end_rel_micros;
    }
    let all = graphs.iter().flat_map(|graph| &graph.node);
    let ids: FxHashMap<&str, i32> = all
        .clone()
        .enumerate()
        .map(|(id, node)| (node.name.as_str(), id as i32))
        .collect();
    let nodes = all.enumerate().map(|(id, node)| {
        let mut cost = Node {
            name: node.name.clone(),
            device: node.device.clone(),
            id: id as i32,
            ..Node::default()
        };
        for input in &node.input {
            if let Some(control) = input.strip_prefix('^') {
                cost.control_input.extend(ids.get(control));
                continue;
            }
            let (name, port) = input.rsplit_once(':').unwrap_or((input, "0"));
            if let Some(source) = ids.get(name) {
                cost.input_info.push(InputInfo {
                    preceding_node: *source,
                    preceding_port: port.parse().unwrap_or_default(),
                });
            }
        }
        if let Some((micros, stats)) = times.get(node.name.as_str()) {
            cost.compute_cost = *micros;
            cost.compute_time = *micros;
            for output in &stats.output {
                let description = output.tensor_description.clone().unwrap_or_default();
                let bytes = description
                    .allocation_description
                    .map_or(0, |allocation| allocation.requested_bytes);
                cost.output_info.push(OutputInfo {
                    size: bytes,
                    alias_input_port: -1,
                    shape: description.shape,
                    dtype: description.dtype,
                });
            }
        }
        cost
    });
    CostGraphDef {
        node: nodes.collect(),
        ..CostGraphDef::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tensorfleet_proto::GraphOptions;

    #[test]
    fn is_due_every_so_many_runs() {
        let config = |build_cost_model, build_cost_model_after| ConfigProto {
            graph_options: Some(GraphOptions {
                build_cost_model,
                build_cost_model_after,
                ..GraphOptions::default()
            }),
            ..ConfigProto::default()
        };
        let due = |config: &ConfigProto| -> Vec<u64> {
            (0..7).filter(|run| is_due(config, *run)).collect()
        };
        assert_eq!(due(&config(3, 0)), [2, 5]);
        assert_eq!(due(&config(3, 1)), [3, 6]);
        assert_eq!(due(&config(0, 0)), [0u64; 0]);
        assert_eq!(due(&config(-1, -1)), [0u64; 0]);
        assert_eq!(due(&ConfigProto::default()), [0u64; 0]);
    }
}
