//! Queues, accumulators, stacks, arrays, lists, tables: state that tensors flow through.

mod accumulator;
mod batching;
mod composite;
pub(crate) mod keeper;
pub(crate) mod optional;
pub(crate) mod queue;
mod stack;
mod staging;
mod tensor_array;
mod tensor_list;
pub(crate) mod tensor_map;
pub(crate) mod variant_number;

use crate::Family;

pub(crate) static FAMILY: Family = Family {
    name: "data_flow",
    ops: &[
        &batching::batch::OP,
        &batching::function::OP,
        &batching::unbatch::OP,
        &batching::unbatch_grad::OP,
        &tensor_list::concat_lists::OP,
    ],
    tables: &[
        &accumulator::ops::OPS,
        &accumulator::sparse::OPS,
        &composite::OPS,
        &optional::OPS,
        &queue::barrier_ops::OPS,
        &queue::close::OPS,
        &queue::create::OPS,
        &queue::dequeue::OPS,
        &queue::enqueue::OPS,
        &stack::OPS,
        &staging::map_ops::OPS,
        &staging::stage::OPS,
        &tensor_array::close::OPS,
        &tensor_array::concat_split::OPS,
        &tensor_array::create::OPS,
        &tensor_array::element::OPS,
        &tensor_array::gather_scatter::OPS,
        &tensor_array::grad::OPS,
        &tensor_list::concat_split::OPS,
        &tensor_list::create::OPS,
        &tensor_list::gather_scatter::OPS,
        &tensor_list::item::OPS,
        &tensor_list::length::OPS,
        &tensor_list::push_pop::OPS,
        &tensor_list::stack::OPS,
        &tensor_map::OPS,
    ],
};
