//! Rows by id out of one table or many.

use tensorfleet_tensor::DType;

use crate::graph::Graph;
use crate::operators::number_like;
use crate::ops;
use crate::output::{Operand, Output};

use super::table::{EmbeddingTable, Rows};

/// Which part has which ids.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Strategy {
    /// Id `i` is in part `i mod parts`: neighbours lie apart. TensorFlow's default.
    #[default]
    Mod,
    /// The first ids are in the first part, and so on: as a partitioned variable is cut.
    Div,
}

/// The rows of these ids: the result has the shape of `ids` with a row in place of each id.
///
/// ```
/// use tensorfleet_client::{Graph, Session, Strategy, embedding_lookup, fixed_size_partitioner, init};
///
/// let g = Graph::new();
/// let values = tensorfleet_client::Tensor::from_slice(tensorfleet_client::Shape::new(&[5, 1])?, &[0.0f32, 1.0, 2.0, 3.0, 4.0])?;
/// let table = g
///     .get_variable("table", &[5, 1])
///     .initializer(init::tensor(values))
///     .partitioner(fixed_size_partitioner(2, 0))
///     .build();
/// let rows = embedding_lookup(&table, g.constant([4i64, 0, 3])).strategy(Strategy::Div).output();
/// let session = Session::new(&g)?;
/// session.run(&g.global_variables_initializer())?;
/// assert_eq!(session.run(&rows)?.slice::<f32>()?, [4.0, 0.0, 3.0]);
/// # Ok::<(), tensorfleet_client::Status>(())
/// ```
pub fn embedding_lookup(table: &(impl EmbeddingTable + ?Sized), ids: impl Operand) -> Lookup {
    Lookup {
        tables: table.tables(),
        ids: ids.to_output(),
        strategy: Strategy::Mod,
        name: None,
    }
}

/// [`embedding_lookup`] in the making.
#[must_use = "nothing is added to the graph before `output`"]
pub struct Lookup {
    pub(super) tables: Vec<Rows>,
    pub(super) ids: Output,
    pub(super) strategy: Strategy,
    pub(super) name: Option<String>,
}

impl Lookup {
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
        let g = self.ids.graph().clone();
        let _scope = g.name_scope(self.name.as_deref().unwrap_or("embedding_lookup"));
        match self.tables.as_slice() {
            _ if self.ids.is_void() => self.ids,
            [] => g.fail(tensorfleet_status::invalid_argument!(
                "embedding_lookup: there is no table to look into"
            )),
            [table] => table.gather(&self.ids),
            tables => self.looked_up(&g, tables),
        }
    }

    fn looked_up(&self, g: &Graph, tables: &[Rows]) -> Output {
        let flat = self.ids.reshape(&[-1]);
        let (part, local) = match self.strategy {
            Strategy::Mod => {
                let count = number_like(&flat, tables.len() as f64);
                let local = ops::floor_div(&flat, &count).output();
                (ops::floor_mod(&flat, &count).output(), local)
            }
            Strategy::Div => self.divide(&flat, tables),
        };
        let part = part.cast(DType::I32);
        let count = tables.len() as i64;
        let positions = ops::range(g.constant(0i32), flat.size(), g.constant(1i32)).output();
        let local = ops::dynamic_partition(local, &part, count).outputs();
        let positions = ops::dynamic_partition(positions, &part, count).outputs();
        let rows: Vec<Output> = tables
            .iter()
            .zip(&local)
            .map(|(table, ids)| table.gather(ids))
            .collect();
        let joined = ops::parallel_dynamic_stitch(&positions, &rows).output();
        let row = tables
            .first()
            .and_then(Rows::dims)
            .map(|dims| dims[1.min(dims.len())..].to_vec());
        self.shape_like_ids(g, &joined, row)
    }

    /// Part and position in it, where the first parts are longer by one if the ids do not divide evenly.
    fn divide(&self, flat: &Output, tables: &[Rows]) -> (Output, Output) {
        let counts: Vec<Output> = tables.iter().map(Rows::rows).collect();
        let total = ops::add_n(&counts).output().cast(flat.dtype());
        let parts = number_like(flat, tables.len() as f64);
        let each = ops::floor_div(&total, &parts).output();
        let extras = ops::floor_mod(&total, &parts).output();
        let longer = &each + number_like(flat, 1.0);
        let behind = flat - &extras;
        let in_longer = ops::floor_div(flat, &longer).output();
        let in_shorter = ops::floor_div(&behind, &each).output();
        let part = in_longer.maximum(in_shorter);
        let local = ops::select_v2(
            part.less(&extras),
            ops::floor_mod(flat, &longer).output(),
            ops::floor_mod(&behind, &each).output(),
        );
        (part, local.output())
    }

    /// Rows in the shape of the ids.
    fn shape_like_ids(&self, g: &Graph, joined: &Output, row: Option<Vec<i64>>) -> Output {
        let row_dims = match &row {
            Some(row) => g.constant(row.iter().map(|dim| *dim as i32).collect::<Vec<_>>()),
            None => joined.shape_tensor().slice(&[1], &[-1]),
        };
        let dims = [self.ids.shape_tensor(), row_dims];
        let dims = ops::concat_v2(&dims, g.constant(0i32)).output();
        let output = ops::reshape(joined, dims).output();
        if let (Some(ids), Some(row)) = (self.ids.shape().dims(), row) {
            output.set_shape(&[ids, &row].concat());
        }
        output
    }
}
