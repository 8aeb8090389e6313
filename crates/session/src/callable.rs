//! [`Callable`]: a signature prepared once, called with positional feeds.

use std::sync::Arc;

use tensorfleet_passes::Signature;
use tensorfleet_status::{Result, invalid_argument};
use tensorfleet_tensor::Tensor;

use crate::metadata::RunMetadata;
use crate::options::RunOptions;
use crate::prepared::Prepared;
use crate::session::Session;

/// What a callable feeds, fetches and runs.
#[derive(Clone, Debug, Default)]
pub struct CallableOptions {
    /// Fed tensors in the order of the arguments.
    pub feeds: Vec<String>,
    /// Fetched tensors in the order of the results.
    pub fetches: Vec<String>,
    /// Nodes to run besides.
    pub targets: Vec<String>,
    /// Options of every call.
    pub run: RunOptions,
}

/// A part of a session's graph, ready to be called. Dropping it releases it.
#[derive(Clone)]
pub struct Callable {
    prepared: Arc<Prepared>,
    run: RunOptions,
}

impl Session {
    /// Prepares a callable; what is wrong with its names shows here.
    pub fn make_callable(&self, options: CallableOptions) -> Result<Callable> {
        let prepared = self.prepare(Signature {
            feeds: options.feeds,
            fetches: options.fetches,
            targets: options.targets,
        })?;
        Ok(Callable {
            prepared,
            run: options.run,
        })
    }

    /// Calls with one tensor per feed.
    pub fn call(&self, callable: &Callable, feeds: &[Tensor]) -> Result<Vec<Tensor>> {
        self.call_traced(callable, feeds)
            .map(|(tensors, _)| tensors)
    }

    /// Like [`call`](Self::call); also tells what happened if the callable's options ask to.
    pub fn call_traced(
        &self,
        callable: &Callable,
        feeds: &[Tensor],
    ) -> Result<(Vec<Tensor>, RunMetadata)> {
        let wanted = callable.prepared.feed_types.len();
        if feeds.len() != wanted {
            return Err(invalid_argument!(
                "expected {wanted} feed tensors, but got {}",
                feeds.len()
            ));
        }
        self.run_prepared(&callable.prepared, &callable.run, feeds.to_vec())
    }
}
