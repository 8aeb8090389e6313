//! FTRL-Proximal: follow the regularised leader, per coordinate.

use tensorfleet_client::{Graph, Variable};
use tensorfleet_status::{Result, invalid_argument};

use super::apply::RuleOptimizer;
use super::hyper::{self, Hyper};
use super::rule::{Input, Recipe, Rule, Slot};

/// FTRL, for wide sparse linear models. Slots `accum` and `linear`: `w/Ftrl`, `w/Ftrl_1`.
///
/// ```
/// use tensorfleet_train::Ftrl;
///
/// let wide = Ftrl::new(0.05).regularization(0.001, 0.001).l2_shrinkage(0.0001);
/// ```
pub type Ftrl = RuleOptimizer<FtrlRule>;

/// The rule of [`Ftrl`].
pub struct FtrlRule {
    learning_rate: Hyper,
    learning_rate_power: f64,
    initial_accumulator: f64,
    l1: f64,
    l2: f64,
    l2_shrinkage: f64,
    beta: f64,
}

impl Ftrl {
    /// With this learning rate and no penalties.
    pub fn new(learning_rate: impl Into<Hyper>) -> Ftrl {
        RuleOptimizer::of(FtrlRule {
            learning_rate: learning_rate.into(),
            learning_rate_power: -0.5,
            initial_accumulator: 0.1,
            l1: 0.0,
            l2: 0.0,
            l2_shrinkage: 0.0,
            beta: 0.0,
        })
    }

    /// How the learning rate falls: -0.5 by default, 0 for never.
    #[must_use]
    pub fn learning_rate_power(mut self, power: f64) -> Self {
        self.rule.learning_rate_power = power;
        self
    }

    /// What the accumulators begin with, 0.1 by default.
    #[must_use]
    pub fn initial_accumulator(mut self, value: f64) -> Self {
        self.rule.initial_accumulator = value;
        self
    }

    /// The penalties on |w| and w².
    #[must_use]
    pub fn regularization(mut self, l1: f64, l2: f64) -> Self {
        (self.rule.l1, self.rule.l2) = (l1, l2);
        self
    }

    /// A penalty on the size of weights that acts on the gradient, where `l2` only steadies.
    #[must_use]
    pub fn l2_shrinkage(mut self, l2_shrinkage: f64) -> Self {
        self.rule.l2_shrinkage = l2_shrinkage;
        self
    }

    /// The paper's beta, 0 by default.
    #[must_use]
    pub fn beta(mut self, beta: f64) -> Self {
        self.rule.beta = beta;
        self
    }
}

impl Rule for FtrlRule {
    fn name(&self) -> &'static str {
        "Ftrl"
    }

    fn check(&self) -> Result<()> {
        if self.learning_rate_power > 0.0 {
            return Err(invalid_argument!(
                "learning_rate_power {} must be negative or zero",
                self.learning_rate_power
            ));
        }
        hyper::not_negative("initial_accumulator", self.initial_accumulator)?;
        hyper::not_negative("l1", self.l1)?;
        hyper::not_negative("l2", self.l2)?;
        hyper::not_negative("l2_shrinkage", self.l2_shrinkage)
    }

    fn slots(&self) -> Vec<Slot> {
        vec![
            Slot::filled("accum", self.initial_accumulator),
            Slot::zeros("linear"),
        ]
    }

    fn recipe(&self, g: &Graph, _: &[Variable]) -> Recipe {
        let learning_rate = self.learning_rate.tensor(g, "learning_rate");
        let mut l2 = g.named_constant("l2_regularization_strength", self.l2 as f32);
        if self.beta != 0.0 {
            // The ops know no beta; in l2 it has the same effect.
            let smallest = g.constant(1e-36f32);
            l2 = l2 + self.beta / (learning_rate.maximum(smallest) * 2.0);
        }
        let mut inputs = vec![
            Input::Slot("accum"),
            Input::Slot("linear"),
            Input::Gradient,
            Input::Number(learning_rate),
            Input::Number(g.named_constant("l1_regularization_strength", self.l1 as f32)),
            Input::Number(l2),
        ];
        let power = g.named_constant("learning_rate_power", self.learning_rate_power as f32);
        let op = if self.l2_shrinkage > 0.0 {
            let name = "l2_shrinkage_regularization_strength";
            let shrinkage = g.named_constant(name, self.l2_shrinkage as f32);
            inputs.push(Input::Number(shrinkage));
            "FtrlV2"
        } else {
            "Ftrl"
        };
        inputs.push(Input::Number(power));
        Recipe::new(op, inputs)
    }
}
