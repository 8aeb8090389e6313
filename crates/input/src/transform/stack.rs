//! Stacks tensors along a new dimension 0. Each is copied once, to its place in the result.

use tensorfleet_status::{Result, invalid_argument};
use tensorfleet_tensor::{Shape, Tensor, Word, by_word};

use crate::element::Element;

/// Whether the shapes of the tensors of a component may differ.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Rows {
    /// They may not.
    Equal,
    /// The smaller ones are filled up.
    Padded,
}

/// One element of all the elements, which are at least one.
pub(super) fn stack(elements: &[Element], rows: Rows) -> Result<Element> {
    let Some(first) = elements.first() else {
        return Ok(Element::default());
    };
    for (number, element) in elements.iter().enumerate() {
        if element.len() != first.len() {
            return Err(invalid_argument!(
                "element {number} has {} components, the first one {}: all must have the same",
                element.len(),
                first.len()
            ));
        }
    }
    let tensors = (0..first.len()).map(|index| {
        let parts = elements.iter().map(|element| element.at(index));
        let parts = parts.collect::<Result<Vec<&Tensor>>>()?;
        stack_tensors(&parts, rows).map_err(|status| status.context(first.component(index)))
    });
    Ok(Element::with_names(
        tensors.collect::<Result<_>>()?,
        first.shared_names(),
    ))
}

fn stack_tensors(parts: &[&Tensor], rows: Rows) -> Result<Tensor> {
    let Some(first) = parts.first() else {
        return Err(invalid_argument!("there is nothing to stack"));
    };
    for (number, part) in parts.iter().enumerate() {
        if part.dtype() != first.dtype() {
            return Err(invalid_argument!(
                "it is {} in element {number} and {} in the first one: convert it by map",
                part.dtype(),
                first.dtype()
            ));
        }
    }
    let row = match rows {
        Rows::Equal => equal_shape(parts)?,
        Rows::Padded => largest_shape(parts)?,
    };
    let shape = Shape::vector(parts.len()).concat(&row)?;
    let all_equal = parts.iter().all(|part| part.shape().dims() == row);
    if all_equal {
        let mut out = Tensor::new(first.dtype(), shape)?;
        by_word!(first.dtype(), W => copy_rows::<W>(parts, &mut out)?);
        return Ok(out);
    }
    let mut out = Tensor::zeros(first.dtype(), shape)?;
    by_word!(first.dtype(), W => paste_rows::<W>(parts, &row, &mut out)?);
    Ok(out)
}

fn equal_shape(parts: &[&Tensor]) -> Result<Vec<i64>> {
    let first = parts.first().map_or(&[][..], |part| part.shape().dims());
    for (number, part) in parts.iter().enumerate() {
        if part.shape().dims() != first {
            return Err(invalid_argument!(
                "its shape is {} in element {number} and {} in the first one: use padded_batch, or give all one shape by map",
                part.shape(),
                Shape::new(first)?
            ));
        }
    }
    Ok(first.to_vec())
}

fn largest_shape(parts: &[&Tensor]) -> Result<Vec<i64>> {
    let mut largest = parts
        .first()
        .map_or_else(Vec::new, |part| part.shape().dims().to_vec());
    for (number, part) in parts.iter().enumerate() {
        if part.rank() != largest.len() {
            return Err(invalid_argument!(
                "its rank is {} in element {number} and {} in the first one: padding needs equal ranks",
                part.rank(),
                largest.len()
            ));
        }
        for (dim, part_dim) in largest.iter_mut().zip(part.shape().dims()) {
            *dim = (*dim).max(*part_dim);
        }
    }
    Ok(largest)
}

/// Fills `out` with rows of equal size.
fn copy_rows<W: Word>(parts: &[&Tensor], out: &mut Tensor) -> Result<()> {
    let row_len = out.elements() / parts.len().max(1);
    if row_len == 0 {
        return Ok(());
    }
    let rows = out.words_mut::<W>()?.chunks_exact_mut(row_len);
    for (row, part) in rows.zip(parts) {
        row.clone_from_slice(part.words::<W>()?);
    }
    Ok(())
}

/// Puts each part into the first corner of its row.
fn paste_rows<W: Word>(parts: &[&Tensor], row_dims: &[i64], out: &mut Tensor) -> Result<()> {
    let row_len = out.elements() / parts.len().max(1);
    if row_len == 0 {
        return Ok(());
    }
    let rows = out.words_mut::<W>()?.chunks_exact_mut(row_len);
    for (row, part) in rows.zip(parts) {
        paste(part.words::<W>()?, part.shape().dims(), row, row_dims);
    }
    Ok(())
}

/// Puts a block into the first corner of one that is at least as large in every dimension.
fn paste<W: Word>(from: &[W], from_dims: &[i64], to: &mut [W], to_dims: &[i64]) {
    if from.is_empty() {
        return;
    }
    match (from_dims, to_dims) {
        ([count, from_rest @ ..], [to_count, to_rest @ ..]) if !from_rest.is_empty() => {
            let from_rows = from.chunks_exact(from.len() / *count as usize);
            let to_rows = to.chunks_exact_mut(to.len() / *to_count as usize);
            for (from, to) in from_rows.zip(to_rows) {
                paste(from, from_rest, to, to_rest);
            }
        }
        _ => {
            for (to, from) in to.iter_mut().zip(from) {
                to.clone_from(from);
            }
        }
    }
}

#[cfg(test)]
mod tests {

    use tensorfleet_tensor::TString;

    use super::*;

    fn matrix(rows: usize, columns: usize, from: i32) -> Tensor {
        let values: Vec<i32> = (from..).take(rows * columns).collect();
        Tensor::from_vec(Shape::matrix(rows, columns).unwrap(), values).unwrap()
    }

    fn stacked(parts: &[Tensor], rows: Rows) -> Result<Tensor> {
        let elements: Vec<Element> = parts.iter().cloned().map(Element::from).collect();
        Ok(stack(&elements, rows)?.at(0)?.clone())
    }

    #[test]
    fn equal_rows_of_every_kind() {
        let out = stacked(&[matrix(2, 2, 0), matrix(2, 2, 4)], Rows::Equal).unwrap();
        assert_eq!(out.shape().dims(), [2, 2, 2]);
        assert_eq!(out.slice::<i32>().unwrap(), [0, 1, 2, 3, 4, 5, 6, 7]);
        let flags = [Tensor::scalar(true), Tensor::scalar(false)];
        let out = stacked(&flags, Rows::Equal).unwrap();
        assert_eq!(out.slice::<bool>().unwrap(), [true, false]);
        let texts = [Tensor::string("a"), Tensor::string("b")];
        let out = stacked(&texts, Rows::Padded).unwrap();
        assert_eq!(out.slice::<TString>().unwrap(), ["a", "b"]);
        let empty = stacked(&[matrix(0, 3, 0), matrix(0, 3, 0)], Rows::Equal).unwrap();
        assert_eq!(empty.shape().dims(), [2, 0, 3]);
    }

    #[test]
    fn smaller_rows_are_padded_in_every_dimension() {
        let parts = [matrix(1, 3, 1), matrix(2, 2, 4), matrix(0, 0, 0)];
        let out = stacked(&parts, Rows::Padded).unwrap();
        assert_eq!(out.shape().dims(), [3, 2, 3]);
        let expected = [1, 2, 3, 0, 0, 0, 4, 5, 0, 6, 7, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(out.slice::<i32>().unwrap(), expected);
        let texts = [
            Tensor::vector(&[TString::from("a")]),
            Tensor::vector::<TString>(&[]),
        ];
        let out = stacked(&texts, Rows::Padded).unwrap();
        assert_eq!(out.slice::<TString>().unwrap(), ["a", ""]);
    }

    #[test]
    fn says_which_component_of_which_element_differs() {
        let named = |x: Tensor| Element::named([("x", x)]);
        let check = |elements: &[Element], rows: Rows, words: &[&str]| {
            let error = stack(elements, rows).unwrap_err();
            for word in words {
                assert!(error.message().contains(word), "{error}");
            }
        };
        let one = named(matrix(1, 1, 0));
        let two = named(matrix(1, 2, 0));
        let words = ["component \"x\"", "[1,2] in element 1", "padded_batch"];
        check(&[one.clone(), two], Rows::Equal, &words);
        let other = named(Tensor::scalar(1.0f32));
        check(&[one.clone(), other], Rows::Equal, &["float in element 1"]);
        let flat = named(Tensor::vector(&[1i32]));
        check(&[one.clone(), flat], Rows::Padded, &["rank is 1"]);
        check(&[one, Element::default()], Rows::Equal, &["0 components"]);
    }
}
