//! Embeddings as a layer.

use std::sync::Arc;

use tensorfleet_tensor::DType;

use crate::embedding::{EmbeddingTable, embedding_lookup};
use crate::init::{self, Initializer};
use crate::output::{Operand, Output};
use crate::partition::{PartitionedVariable, Partitioner};
use crate::variable_scope::Reuse;

/// A vector of `size` numbers for each of `count` ids, learnt. Its gradient is as sparse as the ids.
///
/// ```
/// use tensorfleet_client::{Graph, layers};
///
/// let g = Graph::new();
/// let ids = g.constant([[3i64, 14], [15, 9]]);
/// let vectors = layers::embedding(&ids, 1000, 16).output();
/// assert_eq!(vectors.shape().dims(), Some(&[2, 2, 16][..]));
/// assert_eq!(g.trainable_variables()[0].name(), "embedding/embeddings");
/// # g.check()?;
/// # Ok::<(), tensorfleet_client::Status>(())
/// ```
pub fn embedding(ids: impl Operand, count: i64, size: i64) -> Embedding {
    Embedding {
        ids: ids.to_output(),
        dims: [count, size],
        dtype: DType::F32,
        initializer: Arc::new(init::uniform(-0.05, 0.05)),
        partitioner: None,
        name: None,
        reuse: Reuse::Never,
    }
}

/// [`embedding`] in the making.
#[must_use = "nothing is added to the graph before `output`"]
pub struct Embedding {
    ids: Output,
    dims: [i64; 2],
    dtype: DType,
    initializer: Arc<dyn Initializer>,
    partitioner: Option<Arc<dyn Partitioner>>,
    name: Option<String>,
    reuse: Reuse,
}

impl Embedding {
    /// The initial vectors; uniform between -0.05 and 0.05 by default.
    pub fn initializer(mut self, initializer: impl Initializer + 'static) -> Self {
        self.initializer = Arc::new(initializer);
        self
    }

    /// Deals the vectors out to several variables, which may lie on several tasks.
    pub fn partitioner(mut self, partitioner: impl Partitioner + 'static) -> Self {
        self.partitioner = Some(Arc::new(partitioner));
        self
    }

    /// The element type; float by default.
    pub fn dtype(mut self, dtype: DType) -> Self {
        self.dtype = dtype;
        self
    }

    /// The name of its variable scope; by default `embedding` with a number that is free.
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Whether a layer of this name is used again.
    pub fn reuse(mut self, reuse: Reuse) -> Self {
        self.reuse = reuse;
        self
    }

    /// Adds the layer.
    #[track_caller]
    pub fn output(self) -> Output {
        let g = self.ids.graph().clone();
        let _scope = match &self.name {
            Some(name) => g.variable_scope(name, self.reuse),
            None => g.unique_variable_scope("embedding"),
        };
        let builder = g
            .get_variable("embeddings", &self.dims)
            .dtype(self.dtype)
            .initializer(self.initializer);
        match self.partitioner {
            None => embedding_lookup(&builder.build(), &self.ids).output(),
            Some(partitioner) => {
                let parts: PartitionedVariable = builder.partitioner(partitioner).build();
                let table: &dyn EmbeddingTable = &parts;
                embedding_lookup(table, &self.ids)
                    .strategy(crate::embedding::Strategy::Div)
                    .output()
            }
        }
    }
}
