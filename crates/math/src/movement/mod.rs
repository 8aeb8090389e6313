//! Data movement: elements change places, not values.
//!
//! Functions on slices of any [`Item`] (strings, plain numbers, byte arrays) have a twin `…_bytes` that takes raw bytes and an
//! element size, so one compilation serves all dtypes of that size. A destination is dense and row-major and is written whole.
//!
//! | ops | call |
//! |---|---|
//! | Transpose, StridedSlice, Slice, Split, ReverseV2, BroadcastTo, Tile, Space/DepthTo… | [`copy_view`] of a [`View`] |
//! | StridedSliceAssign, StridedSliceGrad (on zeros), SliceGrad | [`paste_view`]; adding instead of writing: [`add_view`] |
//! | ConcatV2, Pack, Pad(V2), MirrorPad and its gradient | [`concat`], [`pad`], [`remap`] with [`mirrored`], [`remap_add`] |
//! | GatherV2, ResourceGather, GatherNd | [`gather`], with [`flatten_coordinates`] for Nd |
//! | Scatter{Add,…}, ScatterNd…, DynamicStitch | [`scatter`], with [`flatten_coordinates`] for Nd |
//! | ScatterUpdate, TensorScatterUpdate | [`scatter_update_bytes`] |
//! | OneHot, Where, Unique, TopK, DynamicPartition | [`one_hot`], [`coordinates_of`], [`unique`], [`top_k`], [`partition_positions`] |
//!
//! Indices come from data: a bad one is returned as [`BadIndex`] before anything is written. Shapes come from callers who have
//! checked them: a mismatch is a bug there and panics.

pub(crate) mod cell;
mod chosen;
mod copy;
mod gather;
mod index;
mod join;
pub(crate) mod mover;
mod overwrite;
mod pick;
pub(crate) mod prefetch;
mod remap;
pub(crate) mod scatter;
mod sized;
#[cfg(target_arch = "x86_64")]
mod squares;
#[cfg(test)]
mod tests;
mod top_k;
mod view;

pub use chosen::{Chosen, coordinates_of};
pub use copy::{add_view, copy_view, paste_view};
pub use gather::{Gather, gather, gather_bytes};
pub use index::{BadIndex, Index, check_indices, flatten_coordinates, partition_positions};
pub use join::{concat, pad};
pub use overwrite::scatter_update_bytes;
pub use pick::{Unique, one_hot, unique, unique_by};
pub use remap::{mirrored, remap, remap_add};
pub use scatter::{Updates, scatter, scatter_fill_bytes};
pub use sized::{
    concat_bytes, copy_view_bytes, one_hot_bytes, pad_bytes, paste_view_bytes, remap_bytes,
};
pub use top_k::{is_in_top_k, top_k};
pub use view::{View, dense_strides};

use cell::by_size;

/// An element that can be moved: anything that can be cloned and shared between threads.
pub trait Item: Clone + Send + Sync {}

impl<T: Clone + Send + Sync> Item for T {}
