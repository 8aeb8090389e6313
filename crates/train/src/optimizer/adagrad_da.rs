//! Adagrad with dual averaging: var is made anew from the sums of gradients and of their squares.

use tensorfleet_client::{Graph, Variable};
use tensorfleet_status::Result;

use super::apply::RuleOptimizer;
use super::hyper::{self, Hyper};
use super::rule::{Input, Recipe, Rule, Slot};

/// Adagrad for sparse linear models: regularisation also reaches features that a batch lacks. Slots
/// `gradient_accumulator` and `gradient_squared_accumulator`: `w/AdagradDA`, `w/AdagradDA_1`.
pub type AdagradDA = RuleOptimizer<AdagradDARule>;

/// The rule of [`AdagradDA`].
pub struct AdagradDARule {
    learning_rate: Hyper,
    global_step: Variable,
    initial_squared: f64,
    l1: f64,
    l2: f64,
}

impl AdagradDA {
    /// With this learning rate; the step it counts by must be the one that is counted up.
    pub fn new(learning_rate: impl Into<Hyper>, global_step: &Variable) -> AdagradDA {
        RuleOptimizer::of(AdagradDARule {
            learning_rate: learning_rate.into(),
            global_step: global_step.clone(),
            initial_squared: 0.1,
            l1: 0.0,
            l2: 0.0,
        })
    }

    /// What the sums of squares begin with, 0.1 by default.
    #[must_use]
    pub fn initial_squared(mut self, value: f64) -> Self {
        self.rule.initial_squared = value;
        self
    }

    /// The penalties on |w| and w².
    #[must_use]
    pub fn regularization(mut self, l1: f64, l2: f64) -> Self {
        (self.rule.l1, self.rule.l2) = (l1, l2);
        self
    }
}

impl Rule for AdagradDARule {
    fn name(&self) -> &'static str {
        "AdagradDA"
    }

    fn check(&self) -> Result<()> {
        hyper::positive("initial_squared", self.initial_squared)
    }

    fn slots(&self) -> Vec<Slot> {
        vec![
            Slot::zeros("gradient_accumulator"),
            Slot::filled("gradient_squared_accumulator", self.initial_squared),
        ]
    }

    fn recipe(&self, g: &Graph, _: &[Variable]) -> Recipe {
        let learning_rate = self.learning_rate.tensor(g, "learning_rate");
        // One copy on the worker spares the step's device a read for each variable.
        let step = {
            let _near = g.colocate_with(&learning_rate.op());
            self.global_step.snapshot().identity() + 1
        };
        let l1 = g.named_constant("l1_regularization_strength", self.l1 as f32);
        let l2 = g.named_constant("l2_regularization_strength", self.l2 as f32);
        let inputs = vec![
            Input::Slot("gradient_accumulator"),
            Input::Slot("gradient_squared_accumulator"),
            Input::Gradient,
            Input::Number(learning_rate),
            Input::Number(l1),
            Input::Number(l2),
            Input::AsIs(step),
        ];
        Recipe::new("AdagradDA", inputs)
    }
}
