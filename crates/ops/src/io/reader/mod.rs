//! Readers: records out of files whose names come through a queue. The older kind of input pipeline is made of them:
//! names → queue → reader → decoder → queue of batches.
//!
//! | module | is |
//! |---|---|
//! | [`create`] | the ops that make readers |
//! | [`verbs`] | the ops that use them |
//! | `line` | the resource: requests stand in line, and hold no thread while the queue is empty |
//! | `source` | what each kind of reader makes of a unit of work |
//! | `state` | what a reader counts, and how that is written down |

pub(crate) mod create;
mod line;
mod source;
mod state;
pub(crate) mod verbs;

use tensorfleet_graph::{Exactness, Gradient, OpDef};

/// What ops on readers by handle have in common.
const BY_HANDLE: OpDef = OpDef {
    stateful: true,
    gradient: Gradient::Stop("files are not differentiated"),
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};
