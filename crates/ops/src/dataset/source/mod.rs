//! Where pipelines begin: tensors, ranges, files.

pub(super) mod files;
pub(super) mod generator;
pub(super) mod range;
pub(super) mod sparse;
pub(super) mod tensors;
