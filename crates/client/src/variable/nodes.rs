//! The nodes of a new variable: its handle, its initial value and what assigns it, a first read.

use std::sync::Arc;

use tensorfleet_kernel::AttrValue;
use tensorfleet_tensor::{DType, PartialShape};

use super::near::Near;
use super::{Inner, Variable, VariableBuilder};
use crate::collection::keys;
use crate::graph::Graph;
use crate::init::{self, Initializer, Request};

impl VariableBuilder {
    pub(crate) fn target(&self) -> (&Graph, &str, &[i64], DType) {
        (&self.graph, &self.name, &self.dims, self.dtype)
    }

    pub(crate) fn default_initializer(
        &mut self,
        initializer: impl FnOnce() -> Option<Arc<dyn Initializer>>,
    ) {
        if self.initializer.is_none() {
            self.initializer = initializer();
        }
    }

    /// Adds the variable, or finds it in the graph's variable store if it is shared by name.
    #[track_caller]
    pub fn build(self) -> Variable {
        let mut builder = self;
        if builder.shared {
            return builder.get();
        }
        let regularizer = builder.take_regularizer();
        let variable = builder.make(None);
        if let Some(regularizer) = regularizer {
            variable.regularize(&*regularizer);
        }
        variable
    }

    /// Adds the variable, under exactly this name if one is given.
    #[track_caller]
    pub(crate) fn make(mut self, exact: Option<&str>) -> Variable {
        let g = self.graph.clone();
        let _outside = g.outside_of_bodies();
        // Initial values must be computable before anything else has run.
        let _free = g.no_control_dependencies();
        let _anywhere = g.no_colocation();
        let name = match (exact, &self.primary) {
            (Some(name), _) => format!("{name}/"),
            (None, Some(primary)) => {
                let full = g.lock().slot_name(primary.name(), &self.name);
                // A scalar beside a part is a part of nothing.
                let part = primary.part().filter(|_| !self.dims.is_empty());
                self.part = part.map(|part| part.of_slot(&full));
                format!("{full}/")
            }
            (None, None) => {
                let mut state = g.lock();
                let full = state.full_name(&self.name);
                format!("{full}/")
            }
        };
        let variable = self.add_nodes(&g, &name);
        let collections = self
            .collections
            .unwrap_or_else(|| vec![keys::GLOBAL_VARIABLES.to_owned()]);
        for key in &collections {
            g.add_to_collection(key, &variable);
        }
        if self.trainable
            && !collections
                .iter()
                .any(|key| key == keys::TRAINABLE_VARIABLES)
        {
            g.add_to_collection(keys::TRAINABLE_VARIABLES, &variable);
        }
        variable
    }

    /// `scope` is the variable's name with a slash: the scope of its neighbours.
    fn add_nodes(&self, g: &Graph, scope: &str) -> Variable {
        let name = scope.trim_end_matches('/');
        let shape = PartialShape::new(&self.dims);
        let op = if self.resource {
            "VarHandleOp"
        } else {
            "VariableV2"
        };
        let shared_name =
            self.shared_name
                .as_deref()
                .unwrap_or(if self.resource { name } else { "" });
        let mut handle = g
            .op(op)
            .name(scope)
            .attr("dtype", self.dtype)
            .attr("shape", shape.clone())
            .attr("container", self.container.as_str())
            .attr("shared_name", AttrValue::from(shared_name));
        if let Some(near) = &self.near {
            handle = handle.colocate_with(near);
        }
        let handle = handle.output();
        let _scope = g.name_scope(scope);
        let initial_value = {
            let _scope = g.name_scope("Initializer");
            let _near = g.colocate_with(&handle.op());
            let request = Request {
                dims: &self.dims,
                whole: self
                    .part
                    .as_ref()
                    .map_or(&self.dims, |part| &part.whole_dims),
                offset: self.part.as_ref().map_or(&[], |part| &part.offset),
                dtype: self.dtype,
            };
            match &self.initializer {
                Some(initializer) => initializer.initial_value(g, request),
                None => init::zeros().initial_value(g, request),
            }
        };
        let near = Near {
            handle: &handle,
            resource: self.resource,
            dtype: self.dtype,
            dims: &self.dims,
        };
        let initializer = near.update("AssignVariableOp", "Assign", &initial_value);
        let snapshot = near.read();
        Variable {
            inner: Arc::new(Inner {
                name: name.to_owned(),
                dtype: self.dtype,
                dims: self.dims.clone(),
                snapshot,
                initializer,
                resource: self.resource,
                initial_value,
                trainable: self.trainable,
                part: self.part.clone(),
                handle,
            }),
        }
    }
}
