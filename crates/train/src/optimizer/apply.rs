//! [`RuleOptimizer`]: what all optimizers have in common. Slots, dense or sparse, the order of updates.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tensorfleet_client::{
    AttrValue, DType, Gradient, Graph, IndexedSlices, OpBuilder, Operation, Output, Tensor,
    Variable, keys,
};
use tensorfleet_status::{Result, internal, invalid_argument};

use super::rule::{Input, Recipe, Rule};
use super::slots::Slots;
use super::sparse::sum_duplicates;
use super::{GradAndVar, Minimize, Optimizer, names};

/// An optimizer made of a rule. [`Adam`](super::Adam) and the others are this with theirs.
pub struct RuleOptimizer<R> {
    pub(crate) rule: R,
    name: Option<String>,
    slots: Mutex<Slots>,
}

impl<R: Rule> RuleOptimizer<R> {
    pub(crate) fn of(rule: R) -> RuleOptimizer<R> {
        RuleOptimizer {
            rule,
            name: None,
            slots: Mutex::default(),
        }
    }

    /// Another name for updates and slots: `w/name` instead of `w/Adam`.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    fn name(&self) -> &str {
        self.name.as_deref().unwrap_or(self.rule.name())
    }

    fn slots_locked(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes all slots of these variables; the scalars that go with them.
    fn make_slots(&self, variables: &[&Variable]) -> Vec<Variable> {
        let mut slots = self.slots_locked();
        // By name, not by order: all workers must agree on the device.
        let first = variables.iter().min_by_key(|v| v.name());
        let scalars = self.rule.scalars().into_iter();
        let scalars = first.map_or_else(Vec::new, |first| {
            scalars
                .map(|(name, initial)| slots.scalar(first, name, initial))
                .collect()
        });
        for variable in variables {
            for slot in self.rule.slots() {
                slots.get_or_make(variable, &slot, self.name());
            }
        }
        scalars
    }

    /// The update of one variable, on its device.
    fn update(
        &self,
        recipe: &Recipe,
        variable: &Variable,
        gradient: &Gradient,
    ) -> Result<Operation> {
        let g = variable.graph();
        let slots = self.slots_locked();
        let target = Target {
            variable,
            slots: &slots,
        };
        let _scope = g.name_scope(&format!("update_{}", variable.name()));
        let _near = g.colocate_with(&variable.op());
        match gradient {
            Gradient::Dense(gradient) => target.apply_dense(recipe, gradient),
            Gradient::Sparse(rows) if self.rule.wants_unique_rows() => {
                self.rule
                    .apply_sparse(recipe, &target, &sum_duplicates(rows))
            }
            Gradient::Sparse(rows) => self.rule.apply_sparse(recipe, &target, rows),
        }
    }
}

impl<R: Rule> Optimizer for RuleOptimizer<R> {
    fn apply_gradients(&self, gradients: &[GradAndVar], options: &Minimize) -> Result<Operation> {
        self.rule.check()?;
        let with_gradient: Vec<&Variable> = gradients
            .iter()
            .filter(|(gradient, _)| gradient.is_some())
            .map(|(_, variable)| variable)
            .collect();
        let Some(first) = with_gradient.first() else {
            return Err(invalid_argument!(
                "no gradients provided for any of the variables {}",
                names(gradients)
            ));
        };
        for variable in &with_gradient {
            if !variable.dtype().is_floating() {
                return Err(invalid_argument!(
                    "variable '{}' has dtype {}; optimizers change floating-point variables only",
                    variable.name(),
                    variable.dtype().name()
                ));
            }
        }
        let g = first.graph();
        let scalars = self.make_slots(&with_gradient);
        let scope = g.name_scope(options.name.as_deref().unwrap_or(self.name()));
        // A name with a slash is meant as it is: the last node has the name of the scope.
        let whole = format!("{}/", g.current_name_scope());
        let recipe = self.rule.recipe(g, &scalars);
        let mut updates = Vec::new();
        for (gradient, variable) in gradients {
            if let Some(gradient) = gradient {
                updates.push(self.update(&recipe, variable, gradient)?);
            }
        }
        updates.extend(afterwards(g, &recipe, &updates));
        let train = match &options.global_step {
            None => g.group(&whole, &updates),
            Some(step) => {
                let updated = g.group("update", &updates);
                count_up(step, &updated, &whole)?
            }
        };
        drop(scope);
        g.add_to_collection(keys::TRAIN_OP, &train);
        g.check()?;
        Ok(train)
    }

    fn slot(&self, variable: &Variable, slot: &str) -> Option<Variable> {
        self.slots_locked().get(variable, slot)
    }

    fn slot_names(&self) -> Vec<&'static str> {
        self.rule.slots().iter().map(|slot| slot.key).collect()
    }

    fn variables(&self) -> Vec<Variable> {
        self.slots_locked().all()
    }
}

/// The scalars' own updates, after those of all variables, which still need the old values.
fn afterwards(g: &Graph, recipe: &Recipe, updates: &[Operation]) -> Vec<Operation> {
    let _after = g.control_dependencies(updates);
    let scalars = recipe.afterwards.iter();
    scalars
        .map(|(scalar, factor)| {
            let _near = g.colocate_with(&scalar.op());
            scalar.assign(scalar.read() * factor)
        })
        .collect()
}

/// Adds one to the step when `updated` has run.
fn count_up(step: &Variable, updated: &Operation, name: &str) -> Result<Operation> {
    let g = step.graph();
    let one = match step.dtype() {
        DType::I32 => Tensor::scalar(1i32),
        DType::I64 => Tensor::scalar(1i64),
        other => {
            return Err(invalid_argument!(
                "global step '{}' has dtype {}; it must be int32 or int64",
                step.name(),
                other.name()
            ));
        }
    };
    let _after = g.control_dependencies([updated]);
    let _near = g.colocate_with(&step.op());
    let one = g.constant(one);
    let op = if step.is_resource() {
        "AssignAddVariableOp"
    } else {
        "AssignAdd"
    };
    Ok(g.op(op).name(name).input(step.handle()).input(one).build())
}

/// A variable under update, and its slots.
pub struct Target<'a> {
    pub(crate) variable: &'a Variable,
    slots: &'a Slots,
}

impl Target<'_> {
    pub(crate) fn slot(&self, key: &str) -> Result<Variable> {
        let found = self.slots.get(self.variable, key);
        found.ok_or_else(|| internal!("variable '{}' has no slot {key}", self.variable.name()))
    }

    fn apply_dense(&self, recipe: &Recipe, gradient: &Output) -> Result<Operation> {
        self.apply("", recipe, &[gradient])
    }

    /// The sparse form of the op.
    pub(crate) fn apply_sparse(&self, recipe: &Recipe, rows: &IndexedSlices) -> Result<Operation> {
        self.apply("Sparse", recipe, &[&rows.values, &rows.indices])
    }

    fn apply(&self, form: &str, recipe: &Recipe, gradient: &[&Output]) -> Result<Operation> {
        let variable = self.variable;
        let kind = if variable.is_resource() {
            "Resource"
        } else {
            ""
        };
        let op = format!("{kind}{form}Apply{}", recipe.op);
        let mut node = variable.graph().op(&op).input(variable.handle());
        for input in &recipe.inputs {
            node = match input {
                Input::Slot(key) => node.input(self.slot(key)?.handle()),
                Input::Number(number) => node.input(number.cast(variable.dtype())),
                Input::AsIs(tensor) => node.input(tensor),
                Input::Gradient => gradient.iter().fold(node, |node, part| node.input(*part)),
            };
        }
        Ok(with_attrs(node, recipe).build())
    }
}

fn with_attrs(node: OpBuilder, recipe: &Recipe) -> OpBuilder {
    let attrs = recipe.attrs.iter();
    attrs.fold(node, |node, (name, value)| {
        node.attr(name, AttrValue::from(*value))
    })
}
