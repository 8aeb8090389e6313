//! Rows by id: out of a variable, a partitioned one, or many; with sparse gradients.

mod lookup;
mod sparse;
mod table;

pub use lookup::{Lookup, Strategy, embedding_lookup};
pub use sparse::{Combiner, SparseIds, SparseLookup, embedding_lookup_sparse};
pub use table::{EmbeddingTable, Rows};
