//! [`RaggedVariant`]: a ragged tensor as one value of a variant tensor, in which maps over rows and datasets hand them on.

use std::any::Any;
use std::borrow::Cow;
use std::sync::Arc;

use tensorfleet_math::par::Par;
use tensorfleet_status::{Result, ensure};
use tensorfleet_tensor::{Bytes, Tensor, Variant, VariantObject};

/// The name under which they travel.
const TYPE_NAME: &str = "RaggedTensorVariant";

/// Splits from the outermost dimension inwards, and the values.
#[derive(Clone)]
pub(crate) struct RaggedVariant {
    pub(super) splits: Vec<Tensor>,
    pub(super) values: Tensor,
}

impl VariantObject for RaggedVariant {
    fn type_name(&self) -> &str {
        TYPE_NAME
    }

    fn encode(&self) -> Option<(Bytes, Vec<Tensor>)> {
        let tensors = self.splits.iter().chain([&self.values]);
        Some((Bytes::new(), tensors.cloned().collect()))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl RaggedVariant {
    /// The one in a variant, also if it came over the wire.
    pub(crate) fn of(variant: &Variant) -> Option<Cow<'_, RaggedVariant>> {
        match variant {
            Variant::Opaque(opaque) if opaque.type_name == TYPE_NAME => {
                let (values, splits) = opaque.tensors.split_last()?;
                Some(Cow::Owned(RaggedVariant {
                    splits: splits.to_vec(),
                    values: values.clone(),
                }))
            }
            other => other.downcast::<RaggedVariant>().map(Cow::Borrowed),
        }
    }

    pub(crate) fn into_variant(self) -> Variant {
        Variant::Object(Arc::new(self))
    }

    /// The same rows, with other values.
    pub(crate) fn with_values(&self, values: Tensor) -> RaggedVariant {
        RaggedVariant {
            splits: self.splits.clone(),
            values,
        }
    }

    pub(crate) fn values(&self) -> &Tensor {
        &self.values
    }

    /// The sum of two with the same rows.
    pub(crate) fn sum(
        &self,
        other: &RaggedVariant,
        par: &dyn Par,
        add: fn(&dyn Par, Tensor, Tensor) -> Result<Tensor>,
    ) -> Result<RaggedVariant> {
        ensure!(
            self.values.dtype() == other.values.dtype(),
            invalid_argument,
            "Can't add RaggedTensorVariants of different dtypes. One is {} and the other is {}",
            self.values.dtype(),
            other.values.dtype()
        );
        ensure!(
            self.splits.len() == other.splits.len(),
            invalid_argument,
            "Can't add RaggedTensorVariants of different ragged rank. {} vs. {}",
            self.splits.len(),
            other.splits.len()
        );
        for (own, foreign) in self.splits.iter().zip(&other.splits) {
            ensure!(
                own.dtype() == foreign.dtype() && own.bytes() == foreign.bytes(),
                invalid_argument,
                "Can't add RaggedTensorVariants with different row_splits."
            );
        }
        let values = add(par, self.values.clone(), other.values.clone())?;
        Ok(self.with_values(values))
    }
}
