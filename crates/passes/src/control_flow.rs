//! Which nodes decide what runs.

use tensorfleet_graph::Node;

/// Whether a node takes part in control flow: its outputs may be dead, or it moves values between frames.
pub(crate) fn is_control_flow(node: &Node) -> bool {
    node.is_next_iteration()
        || matches!(
            node.op_name(),
            "Switch"
                | "RefSwitch"
                | "_SwitchN"
                | "Merge"
                | "RefMerge"
                | "Enter"
                | "RefEnter"
                | "Exit"
                | "RefExit"
                | "LoopCond"
        )
}
