//! RMSProp: gradients over the root of a moving average of their squares.

use tensorfleet_client::{Graph, Variable};

use super::apply::RuleOptimizer;
use super::hyper::Hyper;
use super::rule::{Input, Recipe, Rule, Slot};

/// RMSProp. Slots `rms`, `momentum` and, if centered, `mg`: `w/RMSProp`, `w/RMSProp_1`, ….
pub type RmsProp = RuleOptimizer<RmsPropRule>;

/// The rule of [`RmsProp`].
pub struct RmsPropRule {
    learning_rate: Hyper,
    decay: Hyper,
    momentum: Hyper,
    epsilon: Hyper,
    centered: bool,
}

impl RmsProp {
    /// With this learning rate, decay 0.9, no momentum and epsilon 1e-10.
    pub fn new(learning_rate: impl Into<Hyper>) -> RmsProp {
        RuleOptimizer::of(RmsPropRule {
            learning_rate: learning_rate.into(),
            decay: 0.9.into(),
            momentum: 0.0.into(),
            epsilon: 1e-10.into(),
            centered: false,
        })
    }

    /// How slowly averages forget.
    #[must_use]
    pub fn decay(mut self, decay: impl Into<Hyper>) -> Self {
        self.rule.decay = decay.into();
        self
    }

    /// How much of the last step is repeated.
    #[must_use]
    pub fn momentum(mut self, momentum: impl Into<Hyper>) -> Self {
        self.rule.momentum = momentum.into();
        self
    }

    /// What keeps steps finite where gradients vanish.
    #[must_use]
    pub fn epsilon(mut self, epsilon: impl Into<Hyper>) -> Self {
        self.rule.epsilon = epsilon.into();
        self
    }

    /// Divides by the estimated variance instead of the second moment: subtracts the square of the mean.
    #[must_use]
    pub fn centered(mut self) -> Self {
        self.rule.centered = true;
        self
    }
}

impl Rule for RmsPropRule {
    fn name(&self) -> &'static str {
        "RMSProp"
    }

    fn slots(&self) -> Vec<Slot> {
        let mut slots = vec![Slot::filled("rms", 1.0)];
        if self.centered {
            slots.push(Slot::zeros("mg"));
        }
        slots.push(Slot::zeros("momentum"));
        slots
    }

    fn recipe(&self, g: &Graph, _: &[Variable]) -> Recipe {
        let mut inputs = vec![
            Input::Slot("rms"),
            Input::Slot("momentum"),
            Input::Number(self.learning_rate.tensor(g, "learning_rate")),
            Input::Number(self.decay.tensor(g, "decay")),
            Input::Number(self.momentum.tensor(g, "momentum")),
            Input::Number(self.epsilon.tensor(g, "epsilon")),
            Input::Gradient,
        ];
        if self.centered {
            inputs.insert(0, Input::Slot("mg"));
            return Recipe::new("CenteredRMSProp", inputs);
        }
        Recipe::new("RMSProp", inputs)
    }
}
