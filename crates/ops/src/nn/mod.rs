//! Neural network ops: convolutions, pooling, activations, losses, normalisation.

use crate::Family;

pub(crate) static FAMILY: Family = Family {
    name: "nn",
    ops: &[],
    tables: &[],
};
