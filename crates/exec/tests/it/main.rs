//! The executor, driven directly: chains, branches, loops, waiting and failing kernels.

mod failures;
mod harness;
mod lent;
mod loops;
mod order;
