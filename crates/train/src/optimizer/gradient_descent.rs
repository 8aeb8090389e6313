//! Gradient descent: var -= lr·grad.

use tensorfleet_client::{Graph, IndexedSlices, Operation, Variable};
use tensorfleet_status::{Result, internal};

use super::apply::{RuleOptimizer, Target};
use super::hyper::Hyper;
use super::rule::{Input, Recipe, Rule};

/// Plain gradient descent.
///
/// ```
/// use tensorfleet_client::{Graph, Session, init};
/// use tensorfleet_train::{GradientDescent, Optimizer};
///
/// let g = Graph::new();
/// let w = g.variable("w", &[]).initializer(init::constant(3.0)).build();
/// let train = GradientDescent::new(0.5).minimize(&w.read().square())?;
/// let session = Session::new(&g)?;
/// session.run(w.initializer())?;
/// session.run(&train)?;
/// assert_eq!(session.run(&w)?.to_scalar::<f32>()?, 0.0);
/// # Ok::<(), tensorfleet_client::Status>(())
/// ```
pub type GradientDescent = RuleOptimizer<GradientDescentRule>;

/// The rule of [`GradientDescent`].
pub struct GradientDescentRule {
    learning_rate: Hyper,
}

impl GradientDescent {
    /// With this learning rate.
    pub fn new(learning_rate: impl Into<Hyper>) -> GradientDescent {
        RuleOptimizer::of(GradientDescentRule {
            learning_rate: learning_rate.into(),
        })
    }
}

impl Rule for GradientDescentRule {
    fn name(&self) -> &'static str {
        "GradientDescent"
    }

    fn recipe(&self, g: &Graph, _: &[Variable]) -> Recipe {
        let learning_rate = self.learning_rate.tensor(g, "learning_rate");
        Recipe::new(
            "GradientDescent",
            vec![Input::Number(learning_rate), Input::Gradient],
        )
    }

    // Rows add up by themselves.
    fn wants_unique_rows(&self) -> bool {
        false
    }

    fn apply_sparse(
        &self,
        recipe: &Recipe,
        target: &Target<'_>,
        rows: &IndexedSlices,
    ) -> Result<Operation> {
        let learning_rate = recipe
            .number(0, target)
            .ok_or_else(|| internal!("the recipe has no learning rate"))?;
        let (op, change) = if target.variable.is_resource() {
            ("ResourceScatterAdd", -&rows.values * learning_rate)
        } else {
            ("ScatterSub", &rows.values * learning_rate)
        };
        let g = target.variable.graph();
        let node = g.op(op).input(target.variable.handle());
        Ok(node.input(&rows.indices).input(change).build())
    }
}
