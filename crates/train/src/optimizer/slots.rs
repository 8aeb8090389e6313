//! The variables that optimizers make, and how they are found again.

use std::collections::BTreeMap;

use tensorfleet_client::{Graph, Variable, init};

use super::rule::Slot;

/// Variables by (name of the variable they belong to, key); scalars belong to none.
#[derive(Default)]
pub(crate) struct Slots {
    made: BTreeMap<(String, String), Variable>,
    order: Vec<Variable>,
}

impl Slots {
    /// The slot of this variable.
    pub(crate) fn get(&self, variable: &Variable, key: &str) -> Option<Variable> {
        self.find(variable.graph(), variable.name(), key)
    }

    fn find(&self, g: &Graph, owner: &str, key: &str) -> Option<Variable> {
        let found = self.made.get(&(owner.to_owned(), key.to_owned()));
        // An optimizer may serve a second graph; it makes new slots there.
        found.filter(|slot| slot.graph().is(g)).cloned()
    }

    /// The slot, made if there is none yet. Its name begins with the variable's and goes on with `name`.
    pub(crate) fn get_or_make(&mut self, variable: &Variable, slot: &Slot, name: &str) {
        if self.get(variable, slot.key).is_some() {
            return;
        }
        let made = variable
            .graph()
            .variable(name, variable.dims())
            .dtype(variable.dtype())
            .initializer(init::constant(slot.initial))
            .slot_of(variable)
            .build();
        self.keep(variable.name(), slot.key, made);
    }

    /// A scalar kept once for all variables of a graph, near `first`.
    pub(crate) fn scalar(&mut self, first: &Variable, name: &str, initial: f64) -> Variable {
        let g = first.graph();
        if let Some(known) = self.find(g, "", name) {
            return known;
        }
        let mut scalar = g
            .variable(name, &[])
            .initializer(init::constant(initial))
            .near(&first.op())
            .trainable(false);
        if !first.is_resource() {
            scalar = scalar.as_ref_variable();
        }
        let made = scalar.build();
        self.keep("", name, made.clone());
        made
    }

    fn keep(&mut self, owner: &str, key: &str, made: Variable) {
        self.made
            .insert((owner.to_owned(), key.to_owned()), made.clone());
        self.order.push(made);
    }

    /// All of them in order of making.
    pub(crate) fn all(&self) -> Vec<Variable> {
        self.order.clone()
    }
}
