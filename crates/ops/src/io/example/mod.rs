//! Serialized `tf.train.Example`s as tensors: the decoders of input pipelines.
//!
//! Examples are read where they lie (`checkpoint::example`), a batch by as many threads as it is worth.
//!
//! | module | is |
//! |---|---|
//! | [`parse`] | the ops on Examples |
//! | [`parse_sequence`], [`parse_single_sequence`] | the ops on SequenceExamples |
//! | [`json`] | Examples out of JSON |
//! | `batch`, `sequence` | Examples and SequenceExamples column by column |
//! | `columns` | which columns there are, and how they look in the end |
//! | `values` | values whose number is not known before |

mod batch;
mod columns;
pub(crate) mod json;
pub(crate) mod parse;
mod parse_examples;
pub(crate) mod parse_sequence;
pub(crate) mod parse_single_sequence;
mod sequence;
mod sequence_examples;
mod values;

use tensorfleet_graph::{Exactness, Gradient, OpDef};

/// What the ops here have in common.
const PARSE: OpDef = OpDef {
    gradient: Gradient::Stop("records are not differentiated"),
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};
