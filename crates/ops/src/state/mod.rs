//! Variables by reference and by resource, scatter updates.
//!
//! Reading clones a tensor under the variable's lock: no copy. Updates write in place under that lock, and copy
//! first only while someone still holds what they read. So no reader ever sees half an update.

mod assign;
mod assign_update;
mod assign_variable;
mod cache;
mod count_up_to;
mod destroy_resource;
mod disable_copy_on_read;
mod is_variable_initialized;
mod mutex;
pub(crate) mod names;
mod read_variable;
mod resource_gather;
mod resource_strided_slice_assign;
mod scatter;
mod scatter_nd;
pub(crate) mod target;
mod temporary_variable;
#[cfg(test)]
pub(crate) mod tests;
mod var_handle;
mod var_is_initialized;
pub(crate) mod variable;
mod variable_shape;
mod variable_v2;

use tensorfleet_graph::Gradient;

use crate::Family;

pub(crate) static FAMILY: Family = Family {
    name: "state",
    ops: &[
        &assign::OP,
        &assign_variable::OP,
        &destroy_resource::OP,
        &disable_copy_on_read::OP,
        &is_variable_initialized::OP,
        &resource_strided_slice_assign::OP,
        &var_is_initialized::OP,
        &variable_shape::OP,
    ],
    tables: &[
        &assign_update::OPS,
        &count_up_to::OPS,
        &mutex::OPS,
        &read_variable::OPS,
        &resource_gather::OPS,
        &scatter::OPS,
        &scatter_nd::OPS,
        &temporary_variable::OPS,
        &var_handle::OPS,
        &variable_v2::OPS,
    ],
};

/// Of ops that change state.
pub(crate) const NO_GRADIENT: Gradient =
    Gradient::Stop("what is left behind in a variable is no function of the inputs");
