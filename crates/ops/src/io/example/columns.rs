//! [`Columns`]: which features are wanted of Examples, and as what.

use rustc_hash::FxHashMap;
use tensorfleet_status::{Result, ensure, invalid_argument};
use tensorfleet_tensor::{DType, PartialShape, Shape, TString, Tensor, UNKNOWN_DIM};

/// How a dense feature looks: always the same shape, or of any length in its first dimension.
#[derive(Clone)]
pub(super) struct Look {
    pub(super) shape: PartialShape,
    /// The number of elements; of a variable feature those of one step in the first dimension.
    pub(super) stride: usize,
    pub(super) is_variable: bool,
}

impl Look {
    /// The looks of the `dense_shapes` attribute.
    pub(super) fn all(shapes: &[PartialShape]) -> Result<Vec<Look>> {
        let looks = shapes.iter().enumerate();
        looks.map(|(index, shape)| Look::of(index, shape)).collect()
    }

    fn of(index: usize, shape: &PartialShape) -> Result<Look> {
        let dims = shape.dims();
        let inner = dims.map(|dims| dims.get(1..).unwrap_or_default());
        let (Some(dims), Some(inner)) = (dims, inner.filter(|inner| !inner.contains(&UNKNOWN_DIM)))
        else {
            return Err(invalid_argument!(
                "dense_shapes[{index}] has unknown rank or unknown inner dimensions: {shape}"
            ));
        };
        let is_variable = dims.first() == Some(&UNKNOWN_DIM);
        let stride = Shape::new(if is_variable { inner } else { dims })?.elements();
        Ok(Look {
            shape: shape.clone(),
            stride,
            is_variable,
        })
    }

    /// The dimensions behind the first.
    pub(super) fn inner(&self) -> &[i64] {
        self.shape
            .dims()
            .and_then(|dims| dims.get(1..))
            .unwrap_or_default()
    }

    /// Checks the default value of dense feature `index`.
    pub(super) fn check_default(&self, index: usize, default: &Tensor, dtype: DType) -> Result<()> {
        let shape = &self.shape;
        if self.is_variable {
            ensure!(
                default.elements() == 1,
                invalid_argument,
                "dense_shape[{index}] is a variable length shape: {shape}, therefore def_value[{index}] must contain a single element (the padding element).  But its shape is: {}",
                default.shape()
            );
        } else if default.elements() > 0 {
            ensure!(
                shape.admits(default.shape()),
                invalid_argument,
                "def_value[{index}].shape() == {} is not compatible with dense_shapes_[{index}] == {shape}",
                default.shape()
            );
        }
        ensure!(
            default.dtype() == dtype,
            invalid_argument,
            "dense_defaults[{index}].dtype() == {} != dense_types_[{index}] == {dtype}",
            default.dtype()
        );
        Ok(())
    }
}

/// What becomes of a feature.
pub(super) enum Form {
    /// A tensor with as many values for each Example.
    Fixed { look: Look, default: Tensor },
    /// A tensor as long as the longest Example needs it.
    Padded { look: Look, filler: Tensor },
    /// Indices, values, shape.
    Sparse,
    /// Values, and where each Example ends in them, in this dtype.
    Ragged(DType),
    /// Of a list of features: a tensor with one such row for each, as long as the longest list.
    Rows { row: Shape, may_be_missing: bool },
}

/// A feature that is wanted.
pub(super) struct Column {
    pub(super) key: TString,
    pub(super) dtype: DType,
    pub(super) form: Form,
}

impl Column {
    /// A dense feature.
    pub(super) fn dense(key: TString, dtype: DType, look: &Look, default: &Tensor) -> Column {
        let (look, default) = (look.clone(), default.clone());
        let form = match look.is_variable {
            true => Form::Padded {
                look,
                filler: default,
            },
            false => Form::Fixed { look, default },
        };
        Column { key, dtype, form }
    }

    /// A sparse or ragged feature.
    pub(super) fn of(key: TString, dtype: DType, form: Form) -> Column {
        Column { key, dtype, form }
    }

    pub(super) fn is_dense(&self) -> bool {
        !matches!(self.form, Form::Sparse | Form::Ragged(_))
    }

    /// The key as text, for errors.
    pub(super) fn name(&self) -> String {
        String::from_utf8_lossy(&self.key).into_owned()
    }
}

/// All features that are wanted.
pub(super) struct Columns {
    columns: Vec<Column>,
    /// The first column of each key.
    index: FxHashMap<TString, usize>,
    /// For each column the next one of the same key.
    next: Vec<Option<usize>>,
}

impl Columns {
    /// These features.
    pub(super) fn new(columns: Vec<Column>) -> Columns {
        let mut index = FxHashMap::default();
        let mut next = vec![None; columns.len()];
        for (at, column) in columns.iter().enumerate().rev() {
            if let Some(next) = next.get_mut(at) {
                *next = index.insert(column.key.clone(), at);
            }
        }
        Columns {
            columns,
            index,
            next,
        }
    }

    /// These features, no two of them with the same key.
    pub(super) fn distinct(columns: Vec<Column>) -> Result<Columns> {
        let columns = Columns::new(columns);
        ensure!(
            columns.next.iter().all(Option::is_none),
            internal,
            "Could not avoid collision. This should not happen."
        );
        Ok(columns)
    }

    /// The next column with the key of the one at this place.
    pub(super) fn next(&self, at: usize) -> Option<(usize, &Column)> {
        let next = (*self.next.get(at)?)?;
        Some((next, self.columns.get(next)?))
    }

    pub(super) fn all(&self) -> &[Column] {
        &self.columns
    }

    /// The tensors of all columns in the order of outputs: first of the sparse columns, then of the dense ones, then of
    /// the ragged ones, each time the first tensor of every column before the second.
    pub(super) fn in_order(&self, tensors: Vec<Vec<Tensor>>) -> Vec<Tensor> {
        let mut placed = Vec::new();
        for (column, tensors) in self.columns.iter().zip(tensors) {
            let group = match column.form {
                Form::Sparse => 0,
                Form::Fixed { .. } | Form::Padded { .. } | Form::Rows { .. } => 1,
                Form::Ragged(_) => 2,
            };
            let tensors = tensors.into_iter().enumerate();
            placed.extend(tensors.map(|(part, tensor)| ((group, part), tensor)));
        }
        placed.sort_by_key(|(place, _)| *place);
        placed.into_iter().map(|(_, tensor)| tensor).collect()
    }

    /// The first feature with this key, and its place.
    pub(super) fn find(&self, key: &[u8]) -> Option<(usize, &Column)> {
        let at = *self.index.get(key)?;
        Some((at, self.columns.get(at)?))
    }
}
