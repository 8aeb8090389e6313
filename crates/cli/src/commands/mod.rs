//! One module per command; each takes its arguments and somewhere to print.

pub(crate) mod checkpoint;
pub(crate) mod inspect;
pub(crate) mod ops;
pub(crate) mod run;
