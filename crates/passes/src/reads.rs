//! Reads that come after updates see them.
//!
//! A variable by reference is read once, by an Identity without conditions (`v/read`), and that value is
//! handed to whoever uses the variable. In TensorFlow the value shares the variable's memory, so a user
//! that is ordered behind an update in place sees the updated value: an average of weights taken after
//! a training step counts on it. Here a read is a snapshot, which is what users that are not ordered
//! want (a gradient must not mix old and new weights). So users behind an update read anew.
//!
//! `InplaceUpdate` and its like write into their first input, whoever else holds that. Here they leave it alone if others do,
//! and users of it that are ordered behind the op get the op's result instead.

use rustc_hash::FxHashSet;
use tensorfleet_graph::{Consumers, Graph, Node, NodeId, Output};
use tensorfleet_status::Result;

/// A use of a variable's value to be moved from the early read to the variable itself.
struct Late {
    user: NodeId,
    port: usize,
    variable: Output,
}

/// Lets users of a variable's early read that run behind an update of it read the variable themselves.
pub fn read_after_updates(graph: &mut Graph) -> Result<()> {
    let has_references = graph
        .nodes()
        .any(|(_, node)| node.output_types.iter().any(|port| port.is_ref));
    if !has_references {
        return Ok(());
    }
    let consumers = graph.consumers();
    let mut late = Vec::new();
    for (id, node) in graph.nodes() {
        for (port, kind) in node.output_types.iter().enumerate() {
            if kind.is_ref && node.inputs.is_empty() {
                late.extend(late_users(graph, &consumers, id.output(port)));
            }
        }
    }
    for use_ in late {
        graph.set_input(use_.user, use_.port, use_.variable)?;
    }
    Ok(())
}

/// Lets users of a tensor that run behind an op that writes into it read what the op returns.
pub fn read_after_writes_in_place(graph: &mut Graph) -> Result<()> {
    const IN_PLACE: [&str; 3] = ["InplaceAdd", "InplaceSub", "InplaceUpdate"];
    let writes = |node: &Node| IN_PLACE.contains(&node.op_name());
    if !graph.nodes().any(|(_, node)| writes(node)) {
        return Ok(());
    }
    // One op may write behind another.
    for writer in graph.topological_order()? {
        let node = graph.node(writer);
        let (true, Some(written)) = (writes(node), node.inputs.first().copied()) else {
            continue;
        };
        let consumers = graph.consumers();
        let (mut open, mut seen) = (vec![writer], FxHashSet::default());
        let mut late = Vec::new();
        while let Some(behind) = open.pop() {
            for (user, _) in &consumers[behind.index()] {
                let node = graph.node(*user);
                // What lies behind that comes later, and may come before the writer then.
                if node.op_name() == "NextIteration" || !seen.insert(*user) {
                    continue;
                }
                open.push(*user);
                let inputs = node.inputs.iter().enumerate();
                let ports = inputs.filter(|(_, input)| **input == written);
                late.extend(ports.map(|(port, _)| (*user, port)));
            }
        }
        for (user, port) in late {
            graph.set_input(user, port, writer.output(0))?;
        }
    }
    Ok(())
}

fn late_users(graph: &Graph, consumers: &[Consumers], variable: Output) -> Vec<Late> {
    let (mut reads, mut updates) = (FxHashSet::default(), Vec::new());
    for (user, port) in &consumers[variable.node.index()] {
        let (user, node) = (*user, graph.node(*user));
        let Some(port) = port.map(|port| port as usize) else {
            continue;
        };
        if node.inputs.get(port) != Some(&variable) {
            continue;
        }
        let by_reference = node
            .input_types
            .get(port)
            .is_some_and(|wanted| wanted.is_ref);
        if by_reference {
            updates.push(user);
        } else if node.op_name() == "Identity" && node.control_inputs.is_empty() {
            reads.insert(user);
        }
    }
    if reads.is_empty() || updates.is_empty() {
        return Vec::new();
    }
    let mut late = Vec::new();
    let mut seen = FxHashSet::default();
    let mut open = updates;
    while let Some(behind) = open.pop() {
        for (user, _) in &consumers[behind.index()] {
            let user = *user;
            if !seen.insert(user) {
                continue;
            }
            open.push(user);
            for (port, input) in graph.node(user).inputs.iter().enumerate() {
                if input.port == 0 && reads.contains(&input.node) {
                    late.push(Late {
                        user,
                        port,
                        variable,
                    });
                }
            }
        }
    }
    late
}
