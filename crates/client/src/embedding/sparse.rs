//! One row for each example of a batch, out of as many ids as it has.

use tensorfleet_tensor::DType;

use crate::ops;
use crate::output::{Operand, Output};

use super::lookup::{Lookup, Strategy};
use super::table::{EmbeddingTable, Rows};

/// Ids of a batch, a varying number for each example: `values[i]` belongs to example `indices[i][0]`.
/// Examples are in order.
#[derive(Clone, Debug)]
pub struct SparseIds {
    /// Where each id is, `[count, 2]`.
    pub indices: Output,
    /// The ids.
    pub values: Output,
}

/// How the rows of one example become one row.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Combiner {
    /// Their weighted sum.
    Sum,
    /// Their weighted mean. TensorFlow's default.
    #[default]
    Mean,
    /// Their weighted sum over the root of the sum of squared weights.
    SqrtN,
}

/// One row for each example: the rows of its ids, combined.
///
/// ```
/// use tensorfleet_client::{Combiner, Graph, Session, SparseIds, embedding_lookup_sparse};
///
/// let g = Graph::new();
/// let table = g.constant([[1.0f32], [10.0], [100.0]]);
/// let ids = SparseIds {
///     indices: g.constant([[0i64, 0], [0, 1], [1, 0]]),
///     values: g.constant([0i64, 2, 1]),
/// };
/// let rows = embedding_lookup_sparse(&table, &ids).combiner(Combiner::Sum).output();
/// assert_eq!(Session::new(&g)?.run(&rows)?.slice::<f32>()?, [101.0, 10.0]);
/// # Ok::<(), tensorfleet_client::Status>(())
/// ```
pub fn embedding_lookup_sparse(
    table: &(impl EmbeddingTable + ?Sized),
    ids: &SparseIds,
) -> SparseLookup {
    SparseLookup {
        tables: table.tables(),
        ids: ids.clone(),
        weights: None,
        combiner: Combiner::default(),
        strategy: Strategy::default(),
        name: None,
    }
}

/// [`embedding_lookup_sparse`] in the making.
#[must_use = "nothing is added to the graph before `output`"]
pub struct SparseLookup {
    tables: Vec<Rows>,
    ids: SparseIds,
    weights: Option<Output>,
    combiner: Combiner,
    strategy: Strategy,
    name: Option<String>,
}

impl SparseLookup {
    /// A weight for each id; 1 by default.
    pub fn weights(mut self, weights: impl Operand) -> Self {
        self.weights = Some(weights.to_output());
        self
    }

    /// How rows become one; [`Combiner::Mean`] by default.
    pub fn combiner(mut self, combiner: Combiner) -> Self {
        self.combiner = combiner;
        self
    }

    /// Which part has which ids; [`Strategy::Mod`] by default.
    pub fn strategy(mut self, strategy: Strategy) -> Self {
        self.strategy = strategy;
        self
    }

    /// The name of its scope.
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Adds the lookup.
    #[track_caller]
    pub fn output(self) -> Output {
        let g = self.ids.values.graph().clone();
        let _scope = g.name_scope(self.name.as_deref().unwrap_or("embedding_lookup_sparse"));
        let column = self.ids.indices.slice(&[0, 0], &[-1, 1]).squeeze(&[1]);
        let examples = column.cast(DType::I32);
        // Each row is fetched once, however often it is wanted.
        let unique = ops::unique(&self.ids.values).outputs();
        let rows = Lookup {
            tables: self.tables.clone(),
            ids: unique.y,
            strategy: self.strategy,
            name: None,
        };
        let rows = rows.output();
        match &self.weights {
            None => match self.combiner {
                Combiner::Sum => ops::sparse_segment_sum(&rows, &unique.idx, &examples).output(),
                Combiner::Mean => ops::sparse_segment_mean(&rows, &unique.idx, &examples).output(),
                Combiner::SqrtN => {
                    ops::sparse_segment_sqrt_n(&rows, &unique.idx, &examples).output()
                }
            },
            Some(weights) => self.weighted(&rows.gather(&unique.idx), weights, &examples),
        }
    }

    fn weighted(&self, rows: &Output, weights: &Output, examples: &Output) -> Output {
        let weights = weights.cast(rows.dtype());
        let axes = rows.shape().rank().unwrap_or(2).max(1);
        let mut column = vec![1; axes];
        column[0] = -1;
        let weights = weights.reshape(&column);
        let sum = ops::segment_sum(rows * &weights, examples).output();
        let divisor = match self.combiner {
            Combiner::Sum => return sum,
            Combiner::Mean => ops::segment_sum(&weights, examples).output(),
            Combiner::SqrtN => ops::segment_sum(weights.square(), examples).output().sqrt(),
        };
        ops::div_no_nan(sum, divisor).output()
    }
}
