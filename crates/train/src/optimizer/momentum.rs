//! Momentum: accum = momentum·accum + grad, var -= lr·accum.

use tensorfleet_client::{Graph, Variable};

use super::apply::RuleOptimizer;
use super::hyper::Hyper;
use super::rule::{Input, Recipe, Rule, Slot};

/// Gradient descent with momentum. Slot `momentum`: `w/Momentum`.
///
/// ```
/// use tensorfleet_train::Momentum;
///
/// let plain = Momentum::new(0.01, 0.9);
/// let nesterov = Momentum::new(0.01, 0.9).nesterov();
/// ```
pub type Momentum = RuleOptimizer<MomentumRule>;

/// The rule of [`Momentum`].
pub struct MomentumRule {
    learning_rate: Hyper,
    momentum: Hyper,
    nesterov: bool,
}

impl Momentum {
    /// With this learning rate and momentum.
    pub fn new(learning_rate: impl Into<Hyper>, momentum: impl Into<Hyper>) -> Momentum {
        RuleOptimizer::of(MomentumRule {
            learning_rate: learning_rate.into(),
            momentum: momentum.into(),
            nesterov: false,
        })
    }

    /// Nesterov's: as if the gradient were taken where the momentum leads.
    #[must_use]
    pub fn nesterov(mut self) -> Self {
        self.rule.nesterov = true;
        self
    }
}

impl Rule for MomentumRule {
    fn name(&self) -> &'static str {
        "Momentum"
    }

    fn slots(&self) -> Vec<Slot> {
        vec![Slot::zeros("momentum")]
    }

    fn recipe(&self, g: &Graph, _: &[Variable]) -> Recipe {
        let inputs = vec![
            Input::Slot("momentum"),
            Input::Number(self.learning_rate.tensor(g, "learning_rate")),
            Input::Gradient,
            Input::Number(self.momentum.tensor(g, "momentum")),
        ];
        Recipe {
            attrs: vec![("use_nesterov", self.nesterov)],
            ..Recipe::new("Momentum", inputs)
        }
    }
}
