//! [`PartialProgress`]: what of a partial run was fed and fetched so far, and what may come next.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::{FxHashMap, FxHashSet};
use tensorfleet_graph::{Graph, Output};
use tensorfleet_status::{Result, invalid_argument};
use tensorfleet_tensor::{DType, Tensor};

/// The bookkeeping of one partial run.
pub struct PartialProgress {
    graph: Arc<Graph>,
    feed_types: FxHashMap<String, DType>,
    fetches: FxHashSet<String>,
    missing: Mutex<Missing>,
}

struct Missing {
    feeds: FxHashSet<String>,
    fetches: FxHashSet<String>,
}

impl PartialProgress {
    /// Nothing fed, nothing fetched. `graph` is the one the names were found in.
    pub fn new(
        graph: Arc<Graph>,
        feeds: &[String],
        feed_types: &[DType],
        fetches: &[String],
    ) -> PartialProgress {
        PartialProgress {
            graph,
            feed_types: feeds
                .iter()
                .cloned()
                .zip(feed_types.iter().copied())
                .collect(),
            fetches: fetches.iter().cloned().collect(),
            missing: Mutex::new(Missing {
                feeds: feeds.iter().cloned().collect(),
                fetches: fetches.iter().cloned().collect(),
            }),
        }
    }

    /// Whether all feeds were fed and all fetches fetched.
    pub fn is_used_up(&self) -> bool {
        let missing = self.lock();
        missing.feeds.is_empty() && missing.fetches.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, Missing> {
        self.missing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the next feeds and fetches off the list, or says why they cannot come now.
    pub fn advance(&self, feeds: &[(&str, Tensor)], fetches: &[&str]) -> Result<()> {
        let mut progress = self.lock();
        for (name, tensor) in feeds {
            match self.feed_types.get(*name) {
                None => {
                    return Err(invalid_argument!(
                        "The feed {name} was not specified in partial_run_setup."
                    ));
                }
                Some(dtype) if *dtype != tensor.dtype() => {
                    return Err(invalid_argument!(
                        "tensor {name} was fed with {}, but it is {dtype}",
                        tensor.dtype()
                    ));
                }
                Some(_) if !progress.feeds.contains(*name) => {
                    return Err(invalid_argument!("The feed {name} has already been fed."));
                }
                Some(_) => {}
            }
        }
        for name in fetches {
            if !self.fetches.contains(*name) {
                return Err(invalid_argument!(
                    "The fetch {name} was not specified in partial_run_setup."
                ));
            }
            if !progress.fetches.contains(*name) {
                return Err(invalid_argument!(
                    "The fetch {name} has already been fetched."
                ));
            }
        }
        let mut missing = progress.feeds.clone();
        for (name, _) in feeds {
            missing.remove(*name);
        }
        for name in fetches {
            if let Some(feed) = self.needed_feed(name, &missing) {
                return Err(invalid_argument!(
                    "Fetch {name} can't be computed from the feeds that have been fed so far. It needs {feed}."
                ));
            }
        }
        progress.feeds = missing;
        for name in fetches {
            progress.fetches.remove(*name);
        }
        Ok(())
    }

    /// One of the missing feeds that a fetch depends on.
    fn needed_feed(&self, fetch: &str, missing: &FxHashSet<String>) -> Option<String> {
        let feeds: FxHashMap<Output, &String> = missing
            .iter()
            .filter_map(|name| Some((self.graph.find_output(name)?, name)))
            .collect();
        let given: FxHashSet<Output> = self
            .feed_types
            .keys()
            .filter_map(|name| self.graph.find_output(name))
            .collect();
        let mut seen = FxHashSet::default();
        let mut stack = vec![self.graph.find_output(fetch)?];
        while let Some(output) = stack.pop() {
            if let Some(name) = feeds.get(&output) {
                return Some((*name).clone());
            }
            if given.contains(&output) || !seen.insert(output) {
                continue;
            }
            let node = self.graph.node(output.node);
            stack.extend(node.inputs.iter().copied());
            stack.extend(node.control_inputs.iter().map(|id| Output::from(*id)));
        }
        None
    }
}
