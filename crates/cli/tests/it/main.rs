//! The real binary: what it prints, how it ends.

mod ask;
mod binary;
mod checkpoint;
mod demo;
mod doctor;
mod inspect;
mod readme;
mod serve;
mod signals;
mod tensorflow;
mod up;
