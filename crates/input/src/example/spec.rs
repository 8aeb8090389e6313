//! [`ExampleSpec`]: which features are wanted, and as what.

use std::collections::BTreeSet;

use tensorfleet_status::{Result, invalid_argument};
use tensorfleet_tensor::{DType, Shape, Tensor};

/// The features to take from Examples, in the order of the components they become. Dtypes are float, int64 and
/// string, as an Example has no others; features that are not named are left out.
///
/// ```
/// use tensorfleet_input::ExampleSpec;
/// use tensorfleet_tensor::{DType, Tensor};
///
/// let spec = ExampleSpec::new()
///     .fixed("image", DType::F32, &[28, 28])       // must be there, with 784 values
///     .fixed_or("weight", Tensor::scalar(1.0f32))  // 1 where it is missing
///     .padded("words", DType::I64)                 // as many as there are
///     .sparse("tags", DType::String);              // tags/indices, tags/values, tags/shape
/// ```
#[derive(Clone, Debug, Default)]
pub struct ExampleSpec {
    pub(super) features: Vec<Feature>,
}

#[derive(Clone, Debug)]
pub(super) struct Feature {
    pub(super) name: String,
    pub(super) dtype: DType,
    pub(super) layout: Layout,
}

#[derive(Clone, Debug)]
pub(super) enum Layout {
    /// Always these dimensions; the default is for Examples without the feature.
    Fixed {
        dims: Vec<i64>,
        default: Option<Tensor>,
    },
    /// A vector of any length; in a batch all are as long as the longest.
    Padded,
    /// Three components: where values are, the values, the shape.
    Sparse,
}

impl ExampleSpec {
    /// No features yet.
    pub fn new() -> ExampleSpec {
        ExampleSpec::default()
    }

    /// A feature that every Example has, with as many values as the shape has elements.
    #[must_use]
    pub fn fixed(self, name: impl Into<String>, dtype: DType, dims: &[i64]) -> ExampleSpec {
        let layout = Layout::Fixed {
            dims: dims.to_vec(),
            default: None,
        };
        self.with(name, dtype, layout)
    }

    /// A feature with the dtype and the shape of `default`, which Examples without it get.
    #[must_use]
    pub fn fixed_or(self, name: impl Into<String>, default: Tensor) -> ExampleSpec {
        let dtype = default.dtype();
        let layout = Layout::Fixed {
            dims: default.shape().dims().to_vec(),
            default: Some(default),
        };
        self.with(name, dtype, layout)
    }

    /// A feature with any number of values, as a vector. In a batch the shorter ones end in zeros or empty strings.
    #[must_use]
    pub fn padded(self, name: impl Into<String>, dtype: DType) -> ExampleSpec {
        self.with(name, dtype, Layout::Padded)
    }

    /// A feature with any number of values, as a sparse tensor: the components `name/indices`, `name/values` and
    /// `name/shape`, as `SparseTensor` and the sparse ops take them.
    #[must_use]
    pub fn sparse(self, name: impl Into<String>, dtype: DType) -> ExampleSpec {
        self.with(name, dtype, Layout::Sparse)
    }

    fn with(mut self, name: impl Into<String>, dtype: DType, layout: Layout) -> ExampleSpec {
        self.features.push(Feature {
            name: name.into(),
            dtype,
            layout,
        });
        self
    }

    /// The names of the components.
    pub(super) fn components(&self) -> Vec<String> {
        let mut names = Vec::new();
        for Feature { name, layout, .. } in &self.features {
            match layout {
                Layout::Fixed { .. } | Layout::Padded => names.push(name.clone()),
                Layout::Sparse => {
                    names.extend(
                        ["indices", "values", "shape"].map(|part| format!("{name}/{part}")),
                    );
                }
            }
        }
        names
    }

    /// Refuses what no Example can give.
    pub(super) fn check(&self) -> Result<()> {
        if self.features.is_empty() {
            return Err(invalid_argument!("the ExampleSpec names no features"));
        }
        for Feature {
            name,
            dtype,
            layout,
        } in &self.features
        {
            if !matches!(dtype, DType::F32 | DType::I64 | DType::String) {
                return Err(invalid_argument!(
                    "feature \"{name}\" is asked for as {dtype}: Examples have float, int64 and string; convert it by map"
                ));
            }
            if let Layout::Fixed { dims, .. } = layout {
                Shape::new(dims).map_err(|status| {
                    status.context(format!("feature \"{name}\" needs all its dimensions"))
                })?;
            }
        }
        let mut seen = BTreeSet::new();
        let components = self.components();
        match components.iter().find(|name| !seen.insert(*name)) {
            Some(twice) => Err(invalid_argument!("component \"{twice}\" is named twice")),
            None => Ok(()),
        }
    }
}
