//! [`Target`]: the variable that an op changes, behind a ref edge or a resource handle.

use std::sync::{Arc, RwLockWriteGuard};

use tensorfleet_kernel::{KernelCtx, RefVar, Value};
use tensorfleet_status::{Result, Status, failed_precondition};
use tensorfleet_tensor::Tensor;

use super::variable::{self, Variable};

/// A variable to be changed.
pub(crate) enum Target {
    /// The state of a `VariableV2`.
    Ref(Arc<RefVar>),
    /// The state behind a handle.
    Resource(Arc<Variable>),
}

impl Target {
    /// The variable of input `index`, a reference or a handle.
    pub(crate) fn of(ctx: &KernelCtx<'_>, index: usize) -> Result<Target> {
        let by_reference = ctx
            .node()
            .input_types
            .get(index)
            .is_some_and(|port| port.is_ref);
        if by_reference {
            Ok(Target::Ref(ctx.input_ref(index)?.clone()))
        } else {
            Ok(Target::Resource(variable::find(ctx, index)?))
        }
    }

    /// Exclusive access.
    fn write(&self) -> RwLockWriteGuard<'_, Option<Tensor>> {
        match self {
            Target::Ref(var) => var.write(),
            Target::Resource(var) => var.write(),
        }
    }

    /// Changes the value under the variable's lock; an error if there is none.
    pub(crate) fn update<R>(
        &self,
        ctx: &KernelCtx<'_>,
        change: impl FnOnce(&mut Tensor) -> Result<R>,
    ) -> Result<R> {
        if let Some(tensor) = &mut *self.write() {
            return change(tensor);
        }
        Err(self.uninitialized(ctx))
    }

    /// Passes the reference on as output 0; handles have no such output.
    pub(crate) fn forward(self, ctx: &mut KernelCtx<'_>) {
        if let Target::Ref(var) = self {
            ctx.set_value(0, Value::Ref(var));
        }
    }

    #[cold]
    fn uninitialized(&self, ctx: &KernelCtx<'_>) -> Status {
        match self {
            Target::Ref(var) => {
                failed_precondition!("Attempting to use uninitialized value {}", var.name())
            }
            Target::Resource(var) => var.missing(&ctx.env().resources),
        }
    }
}
