//! [`NanTensorHook`]: ends training when the loss is not a number.

use tensorfleet_client::Output;
use tensorfleet_status::{Result, invalid_argument};

use super::{RunArgs, RunContext, RunValues, SessionRunHook};

/// Watches a loss. When it is not a number, training ends, with an error unless told otherwise. The last
/// checkpoint was written before and is good.
///
/// ```
/// use tensorfleet_client::{Graph, init};
/// use tensorfleet_train::{MonitoredTrainingSession, NanTensorHook};
///
/// let g = Graph::new();
/// let w = g.variable("w", &[]).initializer(init::constant(-1.0)).build();
/// let loss = w.read().log();
/// let mut session = MonitoredTrainingSession::new(&g).hook(NanTensorHook::new(&loss)).start()?;
/// assert!(session.run(&w).is_err());
/// assert!(session.should_stop());
/// # Ok::<(), tensorfleet_client::Status>(())
/// ```
pub struct NanTensorHook {
    loss: Output,
    fail: bool,
}

impl NanTensorHook {
    /// Watches this loss.
    pub fn new(loss: &Output) -> NanTensorHook {
        NanTensorHook {
            loss: loss.clone(),
            fail: true,
        }
    }

    /// Ends training without an error.
    #[must_use]
    pub fn only_stop(mut self) -> Self {
        self.fail = false;
        self
    }
}

impl SessionRunHook for NanTensorHook {
    fn before_run(&mut self, _: &RunContext<'_>) -> Result<RunArgs> {
        Ok(RunArgs::fetch(&self.loss))
    }

    fn after_run(&mut self, context: &mut RunContext<'_>, values: &RunValues<'_>) -> Result<()> {
        let loss = values.of(&self.loss)?;
        let is_nan = match loss.dtype() {
            tensorfleet_client::DType::F64 => loss.slice::<f64>()?.iter().any(|v| v.is_nan()),
            _ => loss.slice::<f32>()?.iter().any(|v| v.is_nan()),
        };
        if !is_nan {
            return Ok(());
        }
        let name = self.loss.name();
        if self.fail {
            return Err(invalid_argument!(
                "Model diverged with loss = NaN ({name}); lower the learning rate or clip gradients, and go on from the last checkpoint"
            ));
        }
        tracing::error!("Model diverged with loss = NaN ({name}); training ends");
        context.request_stop();
        Ok(())
    }
}
