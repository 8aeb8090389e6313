//! Ops that make, move and cut tensors without computing with them.

mod bincount;
mod bincount_rows;
mod bitcast;
mod bounds;
mod broadcast_args;
mod broadcast_to;
mod concat;
mod concat_offset;
mod constant;
mod count_sparse;
mod deep_copy;
mod diag;
mod diagonals;
mod dynamic_partition;
mod dynamic_stitch;
mod empty;
mod ensure_shape;
mod expand_dims;
mod fill;
mod fingerprint;
pub(crate) mod gather;
mod gather_grad;
pub(crate) mod gather_nd;
pub(crate) mod grads;
mod identity;
mod identity_n;
mod inplace;
mod invert_permutation;
mod keys;
mod list_diff;
mod matrix_band_part;
mod matrix_diag;
mod matrix_diag_part;
mod matrix_set_diag;
mod mirror_pad;
pub(crate) mod moves;
pub(crate) mod nd;
mod no_op;
mod nth_element;
mod one_hot;
mod pack;
mod pad;
mod parallel_concat;
mod pass_through;
mod placeholder;
mod range;
mod reshape;
mod reverse;
mod reverse_sequence;
mod roll;
pub(crate) mod row_update;
mod scatter_grad;
pub(crate) mod scatter_nd;
mod select;
mod shape;
mod slice;
pub(crate) mod slicing;
mod space_to_batch;
mod space_to_depth;
mod split;
mod squeeze;
mod strided_slice;
mod strided_slice_grad;
mod strided_slice_update;
mod tile;
mod top_k;
mod top_k_grad;
mod transpose;
mod unique;
mod unravel_index;
mod where_;
mod zeros_like;

use crate::Family;

pub(crate) static FAMILY: Family = Family {
    name: "array",
    ops: &[
        &bitcast::OP,
        &broadcast_to::OP,
        &concat_offset::OP,
        &constant::OP,
        &deep_copy::OP,
        &dynamic_partition::OP,
        &empty::OP,
        &ensure_shape::OP,
        &expand_dims::OP,
        &fill::OP,
        &fingerprint::OP,
        &gather_nd::OP,
        &identity::OP,
        &identity_n::OP,
        &invert_permutation::OP,
        &list_diff::OP,
        &no_op::OP,
        &nth_element::OP,
        &one_hot::OP,
        &pack::OP,
        &parallel_concat::OP,
        &range::OP,
        &reshape::OP,
        &reverse_sequence::OP,
        &roll::OP,
        &slice::OP,
        &squeeze::OP,
        &strided_slice::OP,
        &strided_slice_grad::OP,
        &tile::OP,
        &unravel_index::OP,
        &where_::OP,
    ],
    tables: &[
        &bincount::OPS,
        &bincount_rows::OPS,
        &count_sparse::OPS,
        &bounds::OPS,
        &broadcast_args::OPS,
        &concat::OPS,
        &diag::OPS,
        &dynamic_stitch::OPS,
        &gather::OPS,
        &inplace::OPS,
        &matrix_band_part::OPS,
        &matrix_diag::OPS,
        &matrix_diag_part::OPS,
        &matrix_set_diag::OPS,
        &mirror_pad::OPS,
        &pad::OPS,
        &pass_through::OPS,
        &placeholder::OPS,
        &reverse::OPS,
        &scatter_nd::OPS,
        &select::OPS,
        &shape::OPS,
        &space_to_batch::OPS,
        &space_to_depth::OPS,
        &split::OPS,
        &strided_slice_update::OPS,
        &top_k::OPS,
        &transpose::OPS,
        &unique::OPS,
        &zeros_like::OPS,
    ],
};
