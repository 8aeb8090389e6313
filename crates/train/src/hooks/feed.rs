//! [`FeedFnHook`]: feeds values that a function makes.

use tensorfleet_client::{Output, Tensor};
use tensorfleet_status::Result;

use super::{RunArgs, RunContext, SessionRunHook};

/// Feeds each run with what a function gives. OUT_OF_RANGE from it ends training.
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
