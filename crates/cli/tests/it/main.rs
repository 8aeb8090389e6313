//! The real binary: what it prints, how it ends.

mod ask;
mod binary;
mod serve;
mod signals;
