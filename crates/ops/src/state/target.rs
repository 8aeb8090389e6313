//! [`Target`]: the variable that an op changes, behind a ref edge or a resource handle.

use std::sync::{Arc, RwLockWriteGuard};
use std::time::{Duration, Instant};

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
    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, Option<Tensor>> {
        match self {
            Target::Ref(var) => var.write(),
            Target::Resource(var) => var.write(),
        }
    }

    /// Equal for the same variable, and an order in which locks are taken.
    pub(crate) fn address(&self) -> usize {
        match self {
            Target::Ref(var) => Arc::as_ptr(var).addr(),
            Target::Resource(var) => Arc::as_ptr(var).addr(),
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
    pub(crate) fn uninitialized(&self, ctx: &KernelCtx<'_>) -> Status {
        match self {
            Target::Ref(var) => {
                failed_precondition!("Attempting to use uninitialized value {}", var.name())
            }
            Target::Resource(var) => var.missing(&ctx.env().resources),
        }
    }
}

/// Tables smaller than this are copied without ado.
const WORTH_WAITING: usize = 1 << 20;
/// Bytes copied in a microsecond, memory that is touched for the first time.
const COPY_RATE: usize = 4 << 10;

/// Called with the lock held before few rows of a value are written: waits for readers to let go of it.
///
/// A reader holds the tensor it read, not the lock, and a value that is held is copied before it is
/// written: right for dense updates, but a table of which a few rows change would be copied whole. Most
/// readers (a gather of some rows) are done in a moment. So we wait for as long as the copy would take
/// and copy only if someone still reads then: at worst twice the time of the copy. No new reader
/// can come in meanwhile, as the lock is ours.
pub(crate) fn settle(tensor: &mut Tensor) {
    if tensor.is_unique() {
        return;
    }
    let bytes = tensor.byte_size();
    if bytes < WORTH_WAITING {
        return;
    }
    let patience = Duration::from_micros((bytes / COPY_RATE) as u64);
    let begin = Instant::now();
    let mut pause = Duration::from_micros(5);
    while begin.elapsed() < patience {
        std::thread::sleep(pause);
        if tensor.is_unique() {
            return;
        }
        pause = (pause * 2).min(Duration::from_micros(200));
    }
}
