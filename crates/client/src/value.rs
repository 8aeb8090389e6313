//! [`IntoTensor`]: what can be written where a tensor's value is wanted.

use tensorfleet_status::{Result, invalid_argument};
use tensorfleet_tensor::{Element, Shape, TString, Tensor};

/// Scalars, arrays, nested arrays, slices and vectors become tensors.
///
/// ```
/// use tensorfleet_client::IntoTensor;
///
/// assert_eq!(0.5f32.into_tensor()?.shape().rank(), 0);
/// assert_eq!([[1i64, 2, 3], [4, 5, 6]].into_tensor()?.shape().dims(), [2, 3]);
/// assert_eq!(vec![vec![1.0f64; 4]; 3].into_tensor()?.shape().dims(), [3, 4]);
/// assert_eq!(["a", "b"].into_tensor()?.elements(), 2);
/// assert!(vec![vec![1.0f32; 2], vec![1.0; 3]].into_tensor().is_err());
/// # Ok::<(), tensorfleet_client::Status>(())
/// ```
pub trait IntoTensor {
    /// The tensor.
    fn into_tensor(self) -> Result<Tensor>;
}

impl IntoTensor for Tensor {
    fn into_tensor(self) -> Result<Tensor> {
        Ok(self)
    }
}

impl IntoTensor for &Tensor {
    fn into_tensor(self) -> Result<Tensor> {
        Ok(self.clone())
    }
}

impl IntoTensor for &str {
    fn into_tensor(self) -> Result<Tensor> {
        Ok(Tensor::string(self.to_owned()))
    }
}

impl IntoTensor for String {
    fn into_tensor(self) -> Result<Tensor> {
        Ok(Tensor::string(self))
    }
}

impl<const N: usize> IntoTensor for [&str; N] {
    fn into_tensor(self) -> Result<Tensor> {
        strings(&self)
    }
}

impl IntoTensor for &[&str] {
    fn into_tensor(self) -> Result<Tensor> {
        strings(self)
    }
}

impl IntoTensor for &[String] {
    fn into_tensor(self) -> Result<Tensor> {
        strings(self)
    }
}

fn strings<S: AsRef<str>>(texts: &[S]) -> Result<Tensor> {
    let texts: Vec<TString> = texts
        .iter()
        .map(|text| TString::copy_from_slice(text.as_ref().as_bytes()))
        .collect();
    Tensor::from_vec(Shape::vector(texts.len()), texts)
}

fn matrix<T: Element + Clone, const C: usize>(rows: &[[T; C]]) -> Result<Tensor> {
    Tensor::from_slice(Shape::matrix(rows.len(), C)?, rows.as_flattened())
}

macro_rules! elements {
    ($($type:ty),*) => {$(
        impl IntoTensor for $type {
            fn into_tensor(self) -> Result<Tensor> {
                Ok(Tensor::scalar(self))
            }
        }

        impl<const N: usize> IntoTensor for [$type; N] {
            fn into_tensor(self) -> Result<Tensor> {
                Ok(Tensor::vector(&self))
            }
        }

        impl<const R: usize, const C: usize> IntoTensor for [[$type; C]; R] {
            fn into_tensor(self) -> Result<Tensor> {
                matrix(&self)
            }
        }

        impl<const A: usize, const R: usize, const C: usize> IntoTensor for [[[$type; C]; R]; A] {
            fn into_tensor(self) -> Result<Tensor> {
                let shape = Shape::new(&[A as i64, R as i64, C as i64])?;
                Tensor::from_slice(shape, self.as_flattened().as_flattened())
            }
        }

        impl IntoTensor for &[$type] {
            fn into_tensor(self) -> Result<Tensor> {
                Ok(Tensor::vector(self))
            }
        }

        impl IntoTensor for Vec<$type> {
            fn into_tensor(self) -> Result<Tensor> {
                Tensor::from_vec(Shape::vector(self.len()), self)
            }
        }

        impl IntoTensor for Vec<Vec<$type>> {
            fn into_tensor(self) -> Result<Tensor> {
                let columns = self.first().map_or(0, Vec::len);
                if let Some(row) = self.iter().find(|row| row.len() != columns) {
                    return Err(invalid_argument!(
                        "rows of different lengths, {columns} and {}, are no matrix", row.len()
                    ));
                }
                Tensor::from_vec(Shape::matrix(self.len(), columns)?, self.concat())
            }
        }
    )*};
}

elements!(f32, f64, i8, u8, i16, u16, i32, u32, i64, u64, bool);
