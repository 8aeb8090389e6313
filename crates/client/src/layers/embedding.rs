//! Embeddings as a layer.

use std::sync::Arc;

use tensorfleet_tensor::DType;

use crate::embedding::{EmbeddingTable, Strategy, embedding_lookup};
use crate::init::{self, Initializer};
use crate::output::{Operand, Output};
use crate::partition::{PartitionedVariable, Partitioner};

use super::common::{Common, common_options};

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
        common: Common::new(),
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
    common: Common,
}

common_options!(Embedding);

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

    /// Adds the layer.
    #[track_caller]
    pub fn output(self) -> Output {
        self.common.layer(&self.ids, "embedding", || Ok(self.add()))
    }

    fn add(&self) -> Output {
        let g = self.ids.graph();
        let builder = g
            .get_variable("embeddings", &self.dims)
            .dtype(self.dtype)
            .trainable(self.common.trainable)
            .initializer(self.initializer.clone());
        match &self.partitioner {
            None => embedding_lookup(&builder.build(), &self.ids).output(),
            Some(partitioner) => {
                let parts: PartitionedVariable = builder.partitioner(partitioner.clone()).build();
                let table: &dyn EmbeddingTable = &parts;
                embedding_lookup(table, &self.ids)
                    .strategy(Strategy::Div)
                    .output()
            }
        }
    }
}
