//! Queues, accumulators, stacks, arrays, lists, tables: state that tensors flow through.

mod tensor_array;

use crate::Family;

pub(crate) static FAMILY: Family = Family {
    name: "data_flow",
    ops: &[],
    tables: &[
        &tensor_array::close::OPS,
        &tensor_array::concat_split::OPS,
        &tensor_array::create::OPS,
        &tensor_array::element::OPS,
        &tensor_array::gather_scatter::OPS,
        &tensor_array::grad::OPS,
    ],
};
