//! Random numbers, bit-exact with TensorFlow for given seeds.

use crate::Family;

pub(crate) static FAMILY: Family = Family {
    name: "random",
    ops: &[],
    tables: &[],
};
