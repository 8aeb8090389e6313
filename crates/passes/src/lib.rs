//! Graph in, graph out: feeds and fetches, prune, inline, lower, fold, dedupe, partition.
//!
//! A pass never changes results beyond floating-point reassociation that TensorFlow itself does, never
//! drops a state change, and leaves a consistent graph. *Roots* are the nodes that must run: they keep
//! their names through all passes. Which passes run is the session's choice.

mod bypass;
mod control_flow;
mod dedupe;
mod feeds;
mod fold;
mod inline;
mod lower;
mod partition;
mod place;
mod prune;
mod reads;
mod roots;
mod stand_ins;
mod unread;

use std::sync::Arc;

use tensorfleet_graph::Graph;
use tensorfleet_kernel::StepEnv;
use tensorfleet_status::Result;

pub use bypass::bypass_identities;
pub use dedupe::dedupe;
pub use feeds::{Boundary, Rewritten, Signature, rewrite};
pub use fold::fold;
pub use inline::inline;
pub use lower::lower;
pub use partition::{Part, PartDevice, PartitionOptions, partition};
pub use place::{Assignments, DeviceSet, PlaceDevice, PlaceOptions, Placement, place};
pub use prune::prune;
pub use reads::{read_after_updates, read_after_writes_in_place};
pub use roots::Roots;
pub use unread::drop_unread;

/// Which passes [`optimize`] runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassOptions {
    /// Replace calls by the bodies they call, and functional control flow by Switch, Merge and frames if `lower`.
    pub inline: bool,
    /// Replace functional control flow where the client asked for it; otherwise it runs as calls.
    pub lower: bool,
    /// Compute what depends on constants only.
    pub fold: bool,
    /// Merge nodes that compute the same, and skip identities.
    pub dedupe: bool,
    /// Do not compute what nobody reads.
    pub unread: bool,
}

impl PassOptions {
    /// Everything.
    pub const ALL: PassOptions = PassOptions {
        inline: true,
        lower: true,
        fold: true,
        dedupe: true,
        unread: true,
    };
    /// Nothing.
    pub const NONE: PassOptions = PassOptions {
        inline: false,
        lower: false,
        fold: false,
        dedupe: false,
        unread: false,
    };
}

/// Runs the chosen passes. `env` is what folding runs kernels in.
pub fn optimize(
    mut graph: Graph,
    roots: &Roots,
    options: PassOptions,
    env: &Arc<StepEnv>,
) -> Result<Graph> {
    let mut roots = roots.clone();
    if !graph.library().is_empty() {
        graph.name_calls();
    }
    if options.inline && !graph.library().is_empty() {
        graph = inline(graph, &mut roots, options.lower)?;
    } else if !graph.library().is_empty() {
        graph = inline::inline_gradients(graph, &mut roots)?;
    }
    let roots = &roots;
    if options.unread {
        graph = drop_unread(graph, roots)?;
    }
    if options.dedupe {
        graph = bypass_identities(graph, roots)?;
    }
    if options.fold {
        graph = fold(graph, roots, env)?;
    }
    if options.dedupe {
        graph = dedupe(graph, roots)?;
    }
    Ok(graph)
}
