//! Turns op examples into graphs, runs them on our session and on real TensorFlow, and compares.
//!
//! [`cases`] makes the graphs, [`run`] runs one here, [`reference`] runs many there, [`compare`] judges,
//! [`gradient`] checks gradient rules against numeric differences, [`bench`] times whole graphs,
//! [`sim`] runs whole clusters under seeds, [`builders`] writes the client's functions for all ops. For tests and benches only.

pub mod bench;
pub mod builders;
pub mod cases;
pub mod compare;
mod expand;
pub mod gradient;
pub mod literal;
pub mod reference;
pub mod run;
mod script;
pub mod sim;
