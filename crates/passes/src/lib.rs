//! Graph in, graph out: feeds and fetches, prune, fold, dedupe, inline.
//!
//! A pass never changes results beyond floating-point reassociation that TensorFlow itself does, never
//! drops a state change, and leaves a consistent graph. Which passes run is the session's choice.

mod feeds;
mod prune;

pub use feeds::{Boundary, Signature, rewrite};
pub use prune::prune;
