//! [`FeedFnHook`]: feeds values that a function makes.

use tensorfleet_client::{Output, Tensor};
use tensorfleet_status::Result;

use super::{RunArgs, RunContext, SessionRunHook};

/// Feeds each run with what a function gives. OUT_OF_RANGE from it ends training.
///
/// ```
/// use tensorfleet_client::{DType, Graph, Tensor};
/// use tensorfleet_train::{FeedFnHook, MonitoredTrainingSession};
///
/// let g = Graph::new();
/// let x = g.placeholder(DType::F32, &[]);
/// let double = &x * 2.0;
/// let mut next = 0.0f32;
/// let hook = FeedFnHook::new(move || {
///     next += 1.0;
///     Ok(vec![(x.clone(), Tensor::scalar(next))])
/// });
/// let mut session = MonitoredTrainingSession::new(&g).hook(hook).start()?;
/// assert_eq!(session.run(&double)?.to_scalar::<f32>()?, 2.0);
/// assert_eq!(session.run(&double)?.to_scalar::<f32>()?, 4.0);
/// # Ok::<(), tensorfleet_client::Status>(())
/// ```
pub struct FeedFnHook<F> {
    feed: F,
}

impl<F> FeedFnHook<F>
where
    F: FnMut() -> Result<Vec<(Output, Tensor)>> + Send,
{
    /// With this function.
    pub fn new(feed: F) -> FeedFnHook<F> {
        FeedFnHook { feed }
    }
}

impl<F> SessionRunHook for FeedFnHook<F>
where
    F: FnMut() -> Result<Vec<(Output, Tensor)>> + Send,
{
    fn before_run(&mut self, _: &RunContext<'_>) -> Result<RunArgs> {
        let mut args = RunArgs::default();
        for (tensor, value) in (self.feed)()? {
            args = args.feed(&tensor, value);
        }
        Ok(args)
    }
}
