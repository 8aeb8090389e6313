//! Adam: steps along a moving average of gradients, over the root of a moving average of their squares.

use tensorfleet_client::{Graph, IndexedSlices, Operation, Output, Variable};
use tensorfleet_status::{Result, internal};

use super::apply::{RuleOptimizer, Target};
use super::hyper::Hyper;
use super::rule::{Input, Recipe, Rule, Slot};

/// Adam. Slots `m` and `v`: `w/Adam`, `w/Adam_1`; beside them the scalars `beta1_power` and `beta2_power`.
///
/// A sparse gradient moves all rows, for the averages of rows that it lacks fade too.
pub type Adam = RuleOptimizer<AdamRule>;

/// The rule of [`Adam`].
pub struct AdamRule {
    learning_rate: Hyper,
    beta1: f64,
    beta2: f64,
    epsilon: Hyper,
}

impl Adam {
    /// With this learning rate, beta1 0.9, beta2 0.999 and epsilon 1e-8.
    pub fn new(learning_rate: impl Into<Hyper>) -> Adam {
        RuleOptimizer::of(AdamRule {
            learning_rate: learning_rate.into(),
            beta1: 0.9,
            beta2: 0.999,
            epsilon: 1e-8.into(),
        })
    }

    /// How slowly the average of gradients forgets.
    #[must_use]
    pub fn beta1(mut self, beta1: f64) -> Self {
        self.rule.beta1 = beta1;
        self
    }

    /// How slowly the average of squares forgets.
    #[must_use]
    pub fn beta2(mut self, beta2: f64) -> Self {
        self.rule.beta2 = beta2;
        self
    }

    /// What keeps steps finite where gradients vanish.
    #[must_use]
    pub fn epsilon(mut self, epsilon: impl Into<Hyper>) -> Self {
        self.rule.epsilon = epsilon.into();
        self
    }
}

impl Rule for AdamRule {
    fn name(&self) -> &'static str {
        "Adam"
    }

    fn slots(&self) -> Vec<Slot> {
        vec![Slot::zeros("m"), Slot::zeros("v")]
    }

    fn scalars(&self) -> Vec<(&'static str, f64)> {
        vec![("beta1_power", self.beta1), ("beta2_power", self.beta2)]
    }

    fn recipe(&self, g: &Graph, scalars: &[Variable]) -> Recipe {
        let beta1 = g.named_constant("beta1", self.beta1 as f32);
        let beta2 = g.named_constant("beta2", self.beta2 as f32);
        let mut inputs = vec![Input::Slot("m"), Input::Slot("v")];
        inputs.extend(scalars.iter().map(|power| Input::Number(power.read())));
        inputs.extend([
            Input::Number(self.learning_rate.tensor(g, "learning_rate")),
            Input::Number(beta1.clone()),
            Input::Number(beta2.clone()),
            Input::Number(self.epsilon.tensor(g, "epsilon")),
            Input::Gradient,
        ]);
        let factors = [beta1, beta2];
        Recipe {
            afterwards: scalars.iter().cloned().zip(factors).collect(),
            ..Recipe::new("Adam", inputs)
        }
    }

    fn apply_sparse(
        &self,
        recipe: &Recipe,
        target: &Target<'_>,
        rows: &IndexedSlices,
    ) -> Result<Operation> {
        let number = |index| {
            let found = recipe.number(index, target);
            found.ok_or_else(|| internal!("Adam's recipe has no number {index}"))
        };
        let (beta1_power, beta2_power) = (number(0)?, number(1)?);
        let (learning_rate, beta1, beta2, epsilon) =
            (number(2)?, number(3)?, number(4)?, number(5)?);
        let rate = learning_rate * (1.0 - beta2_power).sqrt() / (1.0 - beta1_power);
        let values = &rows.values;
        let m = average(&target.slot("m")?, &beta1, values * (1.0 - &beta1), rows);
        let v = average(
            &target.slot("v")?,
            &beta2,
            (values * values) * (1.0 - &beta2),
            rows,
        );
        Ok(target.variable.assign_sub(rate * m / (v.sqrt() + epsilon)))
    }
}

/// The slot after all of it has faded and some rows were added.
fn average(slot: &Variable, fade: &Output, add: Output, rows: &IndexedSlices) -> Output {
    let g = slot.graph();
    let faded = slot.assign(slot.read() * fade);
    let op = if slot.is_resource() {
        "ResourceScatterAdd"
    } else {
        "ScatterAdd"
    };
    let added = {
        let _after = g.control_dependencies([&faded]);
        let node = g.op(op).input(slot.handle());
        node.input(&rows.indices).input(add).build()
    };
    let _after = g.control_dependencies([&added]);
    slot.read()
}
