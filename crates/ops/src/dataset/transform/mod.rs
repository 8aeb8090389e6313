//! What stands between the beginning of a pipeline and its end.

pub(super) mod ahead;
pub(super) mod batch;
pub(super) mod cache;
pub(super) mod combine;
pub(super) mod count;
pub(super) mod directed;
pub(super) mod filter;
pub(super) mod flat_map;
pub(super) mod group;
pub(super) mod ignore_errors;
pub(super) mod interleave;
pub(super) mod map;
pub(super) mod padded;
pub(super) mod pass;
pub(super) mod rebatch;
pub(super) mod repeat;
pub(super) mod scan;
pub(super) mod seeds;
pub(super) mod shuffle;
pub(super) mod unbatch;
pub(super) mod unique;
pub(super) mod window;
