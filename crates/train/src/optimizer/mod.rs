//! Optimizers: they turn gradients into updates of variables.
//!
//! Every optimizer is a [`Rule`](rule::Rule) of one file: which slots it keeps beside a variable and what its
//! update op takes. What is common to all is here once: [`apply`] (slots, dense or sparse, the order of
//! updates and step), `slots`, `sparse`. Slots are named as in TensorFlow, so checkpoints are
//! interchangeable.

mod adadelta;
mod adagrad;
mod adagrad_da;
mod adam;
mod apply;
mod ftrl;
mod gradient_descent;
mod hyper;
mod momentum;
mod proximal_adagrad;
mod proximal_gradient_descent;
mod rms_prop;
pub(crate) mod rule;
mod slots;
mod sparse;

use tensorfleet_client::{Gradient, Operation, Output, Variable, gradients_from};
use tensorfleet_status::{Result, invalid_argument};

pub use adadelta::Adadelta;
pub use adagrad::Adagrad;
pub use adagrad_da::AdagradDA;
pub use adam::Adam;
pub use apply::RuleOptimizer;
pub use ftrl::Ftrl;
pub use gradient_descent::GradientDescent;
pub use hyper::Hyper;
pub use momentum::Momentum;
pub use proximal_adagrad::ProximalAdagrad;
pub use proximal_gradient_descent::ProximalGradientDescent;
pub use rms_prop::RmsProp;

/// A variable and its gradient, if one reaches it.
pub type GradAndVar = (Option<Gradient>, Variable);

/// How [`Optimizer::minimize_with`] goes about it.
#[derive(Clone, Debug, Default)]
pub struct Minimize {
    /// Counted up by one after all updates.
    pub global_step: Option<Variable>,
    /// What to change; all trainable variables of the graph by default.
    pub variables: Option<Vec<Variable>>,
    /// The gradient that flows into the loss; ones by default.
    pub grad_loss: Option<Output>,
    /// The name of the update; the optimizer's by default.
    pub name: Option<String>,
}

impl Minimize {
    /// Counts this step up.
    pub fn step(global_step: &Variable) -> Minimize {
        Minimize {
            global_step: Some(global_step.clone()),
            ..Minimize::default()
        }
    }

    /// Changes only these variables.
    #[must_use]
    pub fn variables(mut self, variables: &[Variable]) -> Minimize {
        self.variables = Some(variables.to_vec());
        self
    }

    /// Begins with this gradient of the loss.
    #[must_use]
    pub fn grad_loss(mut self, gradient: &Output) -> Minimize {
        self.grad_loss = Some(gradient.clone());
        self
    }

    /// Names the update.
    #[must_use]
    pub fn name(mut self, name: &str) -> Minimize {
        self.name = Some(name.to_owned());
        self
    }
}

/// Changes variables so that a loss falls.
///
/// ```
/// use tensorfleet_client::{Graph, Session, init};
/// use tensorfleet_train::{Adam, Minimize, Optimizer, get_or_create_global_step};
///
/// let g = Graph::new();
/// let w = g.variable("w", &[2]).initializer(init::ones()).build();
/// let loss = w.read().square().sum(&[]);
/// let step = get_or_create_global_step(&g)?;
/// let train = Adam::new(0.1).minimize_with(&loss, &Minimize::step(&step))?;
///
/// let session = Session::new(&g)?;
/// session.run(&g.global_variables_initializer())?;
/// let before = session.run(&loss)?.to_scalar::<f32>()?;
/// for _ in 0..10 {
///     session.run(&train)?;
/// }
/// assert!(session.run(&loss)?.to_scalar::<f32>()? < before / 2.0);
/// assert_eq!(session.run(&step)?.to_scalar::<i64>()?, 10);
/// # Ok::<(), tensorfleet_client::Status>(())
/// ```
pub trait Optimizer: Send + Sync {
    /// Adds the updates by these gradients to the graph; the result runs all of them, then counts up
    /// the step of `options`. Variables without a gradient stay as they are.
    fn apply_gradients(&self, gradients: &[GradAndVar], options: &Minimize) -> Result<Operation>;

    /// What the optimizer keeps beside a variable under this name (`"m"`, `"accumulator"`), once
    /// updates were added.
    fn slot(&self, variable: &Variable, slot: &str) -> Option<Variable>;

    /// The names of its slots.
    fn slot_names(&self) -> Vec<&'static str>;

    /// All variables that it made.
    fn variables(&self) -> Vec<Variable>;

    /// The gradients of the loss by the variables of `options`, to be changed (clipped, averaged)
    /// before they are applied.
    fn compute_gradients(&self, loss: &Output, options: &Minimize) -> Result<Vec<GradAndVar>> {
        let variables = match &options.variables {
            Some(variables) => variables.clone(),
            None => loss.graph().trainable_variables(),
        };
        if variables.is_empty() {
            return Err(invalid_argument!(
                "there are no variables to optimize: the graph has no trainable ones"
            ));
        }
        let start = std::slice::from_ref(&options.grad_loss);
        let grads = gradients_from(&[loss], start, &variables)?;
        Ok(grads.into_iter().zip(variables).collect())
    }

    /// Adds gradients and updates to the graph; the result makes one step.
    fn minimize(&self, loss: &Output) -> Result<Operation> {
        self.minimize_with(loss, &Minimize::default())
    }

    /// Like [`minimize`](Self::minimize), with options.
    fn minimize_with(&self, loss: &Output, options: &Minimize) -> Result<Operation> {
        let gradients = self.compute_gradients(loss, options)?;
        if gradients.iter().all(|(gradient, _)| gradient.is_none()) {
            return Err(invalid_argument!(
                "no gradient of loss '{}' reaches any of the variables {}; check that the loss depends on them by differentiable ops",
                loss.name(),
                names(&gradients)
            ));
        }
        self.apply_gradients(&gradients, options)
    }
}

/// The variables' names, for messages.
fn names(gradients: &[GradAndVar]) -> String {
    let names: Vec<&str> = gradients.iter().map(|(_, v)| v.name()).collect();
    names.join(", ")
}
