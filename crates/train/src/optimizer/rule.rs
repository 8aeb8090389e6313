//! [`Rule`]: what is particular to one optimizer.

use tensorfleet_client::{Graph, IndexedSlices, Operation, Output, Variable};
use tensorfleet_status::Result;

use super::apply::Target;

/// What one optimizer keeps and how it changes a variable.
pub trait Rule: Send + Sync {
    /// The default name of updates and of most slots.
    fn name(&self) -> &'static str;

    /// Whether the settings make sense.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// What is kept beside every variable, in the order of making, which decides on the suffixes of names.
    fn slots(&self) -> Vec<Slot> {
        Vec::new()
    }

    /// Scalars kept once for all variables: name and initial value.
    fn scalars(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }

    /// The update, with the tensors it takes; called once for all variables, in the name scope of the
    /// update. `scalars` are the variables of [`scalars`](Self::scalars).
    fn recipe(&self, g: &Graph, scalars: &[Variable]) -> Recipe;

    /// Whether rows that occur twice in a sparse gradient must be summed before
    /// [`apply_sparse`](Self::apply_sparse).
    fn wants_unique_rows(&self) -> bool {
        true
    }

    /// The update by some rows; by the sparse form of the op unless the optimizer has none.
    fn apply_sparse(
        &self,
        recipe: &Recipe,
        target: &Target<'_>,
        rows: &IndexedSlices,
    ) -> Result<Operation> {
        target.apply_sparse(recipe, rows)
    }
}

/// One variable kept beside a variable, of its shape.
pub struct Slot {
    /// What the optimizer calls it.
    pub(crate) key: &'static str,
    /// All elements at the beginning.
    pub(crate) initial: f64,
}

impl Slot {
    /// All zero at the beginning.
    pub(crate) fn zeros(key: &'static str) -> Slot {
        Slot { key, initial: 0.0 }
    }

    /// All `initial` at the beginning.
    pub(crate) fn filled(key: &'static str, initial: f64) -> Slot {
        Slot { key, initial }
    }
}

/// An update op and its inputs behind the variable.
pub struct Recipe {
    /// `Momentum` for `ApplyMomentum`, `ResourceApplyMomentum`, `SparseApplyMomentum`, ….
    pub(crate) op: &'static str,
    pub(crate) inputs: Vec<Input>,
    pub(crate) attrs: Vec<(&'static str, bool)>,
    /// Scalars multiplied by these factors when all variables are updated.
    pub(crate) afterwards: Vec<(Variable, Output)>,
}

impl Recipe {
    pub(crate) fn new(op: &'static str, inputs: Vec<Input>) -> Recipe {
        Recipe {
            op,
            inputs,
            attrs: Vec::new(),
            afterwards: Vec::new(),
        }
    }

    /// Number `index` among the [`Input::Number`]s, in the dtype of the target.
    pub(crate) fn number(&self, index: usize, target: &Target<'_>) -> Option<Output> {
        let numbers = self.inputs.iter().filter_map(|input| match input {
            Input::Number(number) => Some(number),
            _ => None,
        });
        let number = numbers.into_iter().nth(index)?;
        Some(number.cast(target.variable.dtype()))
    }
}

/// One input of an update op.
pub(crate) enum Input {
    /// The slot of this key.
    Slot(&'static str),
    /// A scalar, cast to the variable's dtype.
    Number(Output),
    /// A tensor taken as it is.
    AsIs(Output),
    /// The gradient; its rows and their indices for the sparse form.
    Gradient,
}
