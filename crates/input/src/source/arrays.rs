//! [`Dataset::from_tensor_slices`]: tensors cut along dimension 0.

use tensorfleet_status::{Result, invalid_argument};
use tensorfleet_tensor::{Shape, Tensor};

use crate::dataset::Dataset;
use crate::element::Element;

impl Dataset {
    /// One element for each index of dimension 0, which all tensors must have alike. Elements share the memory of
    /// the tensors.
    ///
    /// ```
    /// use tensorfleet_input::Dataset;
    /// use tensorfleet_tensor::{Shape, Tensor};
    ///
    /// let x = Tensor::from_slice(Shape::new(&[3, 2])?, &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
    /// let y = Tensor::vector(&[0i64, 1, 0]);
    /// let last = Dataset::from_tensor_slices([x, y])?.iter().last().unwrap()?;
    /// assert_eq!(last.at(0)?.slice::<f32>()?, [5.0, 6.0]);
    /// # Ok::<(), tensorfleet_tensor::Status>(())
    /// ```
    pub fn from_tensor_slices(tensors: impl Into<Element>) -> Result<Dataset> {
        let whole = tensors.into();
        let mut rows = None;
        let mut row_shapes = Vec::with_capacity(whole.len());
        for (index, tensor) in whole.tensors().iter().enumerate() {
            let Some((&count, row_shape)) = tensor.shape().dims().split_first() else {
                return Err(invalid_argument!(
                    "{} is a scalar: only tensors of rank 1 or more can be cut along dimension 0",
                    whole.component(index)
                ));
            };
            let expected = *rows.get_or_insert(count);
            if count != expected {
                return Err(invalid_argument!(
                    "{} has {count} rows, {} has {expected}: they must be equal",
                    whole.component(index),
                    whole.component(0)
                ));
            }
            row_shapes.push(Shape::new(row_shape)?);
        }
        let Some(rows) = rows else {
            return Err(invalid_argument!(
                "no tensors given: there is nothing to cut"
            ));
        };
        let rows = usize::try_from(rows).unwrap_or(0);
        let slices = std::sync::Arc::new((whole, row_shapes));
        Ok(Dataset::new(move |_| {
            let slices = slices.clone();
            Ok(Box::new((0..rows).map(move |row| {
                let (whole, row_shapes) = &*slices;
                let tensors = whole.tensors().iter().zip(row_shapes);
                let tensors = tensors.map(|(tensor, shape)| cut(tensor, row, shape));
                let tensors = tensors.collect::<Result<Vec<Tensor>>>()?;
                Ok(Element::with_names(tensors, whole.shared_names()))
            })))
        }))
    }
}

fn cut(tensor: &Tensor, row: usize, shape: &Shape) -> Result<Tensor> {
    tensor.rows(row, 1)?.reshaped(shape.clone())
}

#[cfg(test)]
mod tests {
    use tensorfleet_tensor::DType;

    use super::*;

    #[test]
    fn slices_keep_names_types_and_memory() {
        let x = Tensor::zeros(DType::F64, Shape::new(&[4, 3]).unwrap()).unwrap();
        let name = Tensor::vector(&["a", "b", "c", "d"].map(tensorfleet_tensor::TString::from));
        let flag = Tensor::vector(&[true, false, true, false]);
        let whole = Element::named([("x", x.clone()), ("name", name), ("flag", flag)]);
        let data = Dataset::from_tensor_slices(whole).unwrap();
        let elements: Vec<Element> = data.iter().map(Result::unwrap).collect();
        assert_eq!(elements.len(), 4);
        let third = &elements[2];
        assert_eq!(third.names().unwrap(), ["x", "name", "flag"]);
        assert_eq!(third.get("x").unwrap().shape().dims(), [3]);
        let row = x.rows(2, 1).unwrap();
        assert!(third.get("x").unwrap().shares_memory_with(&row));
        assert_eq!(
            third
                .get("name")
                .unwrap()
                .to_scalar::<tensorfleet_tensor::TString>()
                .unwrap(),
            "c"
        );
        assert!(third.get("flag").unwrap().to_scalar::<bool>().unwrap());
    }

    #[test]
    fn refuses_what_cannot_be_cut() {
        let check = |tensors: Vec<Tensor>, word: &str| {
            let error = Dataset::from_tensor_slices(tensors).err().unwrap();
            assert!(error.message().contains(word), "{error}");
        };
        check(vec![], "no tensors");
        check(vec![Tensor::scalar(1i32)], "component 0 is a scalar");
        let (three, two) = (Tensor::vector(&[1i32, 2, 3]), Tensor::vector(&[1i32, 2]));
        check(
            vec![three, two],
            "component 1 has 2 rows, component 0 has 3",
        );
    }
}
