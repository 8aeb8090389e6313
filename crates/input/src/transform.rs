//! What can be done to a dataset: one file for each kind of transformation.

mod batch;
mod cache;
mod interleave;
mod items;
mod prefetch;
mod repeat;
mod select;
mod shuffle;
mod stack;
