//! [`FinalOpsHook`]: evaluates tensors at the end.

use std::sync::{Arc, Mutex, PoisonError};

use tensorfleet_client::{Output, Session, Tensor};
use tensorfleet_status::Result;

use super::SessionRunHook;

/// Evaluates tensors once, when training has ended well.
///
/// ```
/// use tensorfleet_client::{Graph, init};
/// use tensorfleet_train::{FinalOpsHook, MonitoredTrainingSession};
///
/// let g = Graph::new();
/// let w = g.variable("w", &[]).initializer(init::ones()).build();
/// let double = w.assign(w.read() * 2.0);
/// let hook = FinalOpsHook::new(&[w.snapshot()]);
/// let values = hook.values();
/// let mut session = MonitoredTrainingSession::new(&g).hook(hook).start()?;
/// session.run(&double)?;
/// session.close()?;
/// assert_eq!(values.values().unwrap()[0].to_scalar::<f32>()?, 2.0);
/// # Ok::<(), tensorfleet_client::Status>(())
/// ```
pub struct FinalOpsHook {
    tensors: Vec<Output>,
    feeds: Vec<(Output, Tensor)>,
    values: FinalOps,
}

/// Where the values will be.
#[derive(Clone, Default)]
pub struct FinalOps {
    values: Arc<Mutex<Option<Vec<Tensor>>>>,
}

impl FinalOps {
    /// The values, once training has ended.
    pub fn values(&self) -> Option<Vec<Tensor>> {
        let values = self.values.lock();
        values.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl FinalOpsHook {
    /// These tensors.
    pub fn new(tensors: &[&Output]) -> FinalOpsHook {
        FinalOpsHook {
            tensors: tensors.iter().map(|tensor| (*tensor).clone()).collect(),
            feeds: Vec::new(),
            values: FinalOps::default(),
        }
    }

    /// With this fed.
    #[must_use]
    pub fn feed(mut self, tensor: &Output, value: Tensor) -> Self {
        self.feeds.push((tensor.clone(), value));
        self
    }

    /// Where the values will be.
    pub fn values(&self) -> FinalOps {
        self.values.clone()
    }
}

impl SessionRunHook for FinalOpsHook {
    fn end(&mut self, session: &Session) -> Result<()> {
        let feeds: Vec<(&Output, Tensor)> = self
            .feeds
            .iter()
            .map(|(tensor, value)| (tensor, value.clone()))
            .collect();
        let values = session.run_fed(&feeds, &self.tensors)?;
        let mut place = self
            .values
            .values
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *place = Some(values);
        Ok(())
    }
}
