//! What rows can be looked up in.

use tensorfleet_tensor::DType;

use crate::ops;
use crate::output::Output;
use crate::partition::PartitionedVariable;
use crate::variable::Variable;

/// One table of rows.
#[derive(Clone, Debug)]
pub enum Rows {
    /// A variable: only the rows wanted are read, and its gradient has only these.
    Variable(Variable),
    /// A tensor.
    Output(Output),
}

impl Rows {
    pub(super) fn gather(&self, ids: &Output) -> Output {
        match self {
            Rows::Variable(variable) => variable.gather(ids),
            Rows::Output(output) => {
                let g = output.graph();
                let _near = g.colocate_with(&output.op());
                output.gather(ids)
            }
        }
    }

    pub(super) fn dims(&self) -> Option<Vec<i64>> {
        match self {
            Rows::Variable(variable) => Some(variable.dims().to_vec()),
            Rows::Output(output) => output.shape().dims().map(<[i64]>::to_vec),
        }
    }

    /// How many rows there are.
    pub(super) fn rows(&self) -> Output {
        match self {
            Rows::Variable(variable) => variable
                .graph()
                .constant(variable.dims().first().copied().unwrap_or(0)),
            Rows::Output(output) => {
                let dims = ops::shape(output).out_type(DType::I64).output();
                dims.slice(&[0], &[1]).squeeze(&[0])
            }
        }
    }
}

/// What rows can be looked up in: a variable, a partitioned one, a tensor, or a list of them.
pub trait EmbeddingTable {
    /// The tables, one for each part.
    fn tables(&self) -> Vec<Rows>;
}

impl EmbeddingTable for Variable {
    fn tables(&self) -> Vec<Rows> {
        vec![Rows::Variable(self.clone())]
    }
}

impl EmbeddingTable for Output {
    fn tables(&self) -> Vec<Rows> {
        vec![Rows::Output(self.clone())]
    }
}

impl EmbeddingTable for PartitionedVariable {
    fn tables(&self) -> Vec<Rows> {
        self.parts().iter().cloned().map(Rows::Variable).collect()
    }
}

impl<T: EmbeddingTable> EmbeddingTable for [T] {
    fn tables(&self) -> Vec<Rows> {
        self.iter().flat_map(EmbeddingTable::tables).collect()
    }
}

impl<T: EmbeddingTable> EmbeddingTable for Vec<T> {
    fn tables(&self) -> Vec<Rows> {
        self.as_slice().tables()
    }
}
