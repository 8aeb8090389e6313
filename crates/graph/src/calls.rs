//! Calls of functions by their name, rewritten as the ops that call functions.

use tensorfleet_kernel::{AttrList, AttrValue, Attrs, FuncRef};
use tensorfleet_proto::attr_value;

use crate::graph::{Graph, NodeId};

/// The attribute of functions and calls that are to stay calls.
const NOINLINE: &str = "_noinline";

impl Graph {
    /// Turns nodes whose op is a function into `PartitionedCall`, or `StatefulPartitionedCall` if it has effects: the
    /// executor knows functions only behind these. Attributes that begin with an underscore stay with the call.
    pub fn name_calls(&mut self) {
        for id in self.ids() {
            self.name_call(id);
        }
    }

    fn name_call(&mut self, id: NodeId) {
        let node = self.node(id);
        let Some(function) = &node.op.function else {
            return;
        };
        let op = if function.is_stateful() {
            "StatefulPartitionedCall"
        } else {
            "PartitionedCall"
        };
        let Ok(op) = self.registry().find(op).cloned() else {
            return;
        };
        let types = |ports: &[tensorfleet_tensor::PortType]| {
            let plain = ports.iter().map(|port| port.dtype.into()).collect();
            AttrValue::List(AttrList::Type(plain))
        };
        let mut attrs = Attrs::new();
        attrs.set("Tin", types(&node.input_types));
        attrs.set("Tout", types(&node.output_types));
        let func = FuncRef {
            name: function.name().into(),
            attrs: node.attrs.clone(),
        };
        attrs.set("f", AttrValue::Func(func));
        for (name, value) in node.attrs.iter() {
            if name.starts_with('_') {
                attrs.set(name.clone(), value.clone());
            }
        }
        // What the function says of itself holds for its calls.
        if let Some(value) = function.def().attr.get(NOINLINE)
            && matches!(value.value, Some(attr_value::Value::B(true)))
        {
            attrs.set(NOINLINE, AttrValue::B(true));
        }
        for def in &op.signature.attrs {
            if let (None, Some(default)) = (attrs.get(&def.name), &def.default) {
                attrs.set(def.name.clone(), default.clone());
            }
        }
        self.set_op(id, op, attrs);
    }
}
