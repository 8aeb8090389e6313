//! [`Dataset::batch`] and [`Dataset::padded_batch`]: several elements become one.

use tensorfleet_status::{Result, invalid_argument};

use super::stack::{Rows, stack};
use crate::dataset::{Dataset, Stream};
use crate::element::Element;

impl Dataset {
    /// Elements of `size` elements each: every component gets a new dimension 0. What is left at the end makes a
    /// smaller batch, or with `drop_remainder` none.
    ///
    /// ```
    /// use tensorfleet_input::Dataset;
    /// use tensorfleet_tensor::Tensor;
    ///
    /// let batches = Dataset::from_elements((0..10i64).map(Tensor::scalar)).batch(4, false);
    /// let sizes: Vec<usize> = batches.iter().map(|batch| batch.unwrap().tensors()[0].elements()).collect();
    /// assert_eq!(sizes, [4, 4, 2]);
    /// ```
    pub fn batch(self, size: usize, drop_remainder: bool) -> Dataset {
        self.batched(size, drop_remainder, Rows::Equal)
    }

    /// Like [`batch`](Dataset::batch), for components whose sizes differ: each is filled up to the largest of the
    /// batch, with zeros, `false` or empty strings behind.
    ///
    /// ```
    /// use tensorfleet_input::Dataset;
    /// use tensorfleet_tensor::Tensor;
    ///
    /// let words = Dataset::from_elements([Tensor::vector(&[1i64]), Tensor::vector(&[2i64, 3])]);
    /// let batch = words.padded_batch(2, false).iter().next().unwrap()?;
    /// assert_eq!(batch.at(0)?.slice::<i64>()?, [1, 0, 2, 3]);
    /// # Ok::<(), tensorfleet_tensor::Status>(())
    /// ```
    pub fn padded_batch(self, size: usize, drop_remainder: bool) -> Dataset {
        self.batched(size, drop_remainder, Rows::Padded)
    }

    fn batched(self, size: usize, drop_remainder: bool, rows: Rows) -> Dataset {
        if size == 0 {
            return Dataset::broken(invalid_argument!("batch: a batch has at least 1 element"));
        }
        self.then(move |stream| Batched {
            stream,
            size,
            drop_remainder,
            rows,
        })
    }
}

struct Batched {
    stream: Stream,
    size: usize,
    drop_remainder: bool,
    rows: Rows,
}

impl Iterator for Batched {
    type Item = Result<Element>;

    fn next(&mut self) -> Option<Result<Element>> {
        let elements = self.stream.by_ref().take(self.size);
        let elements = match elements.collect::<Result<Vec<Element>>>() {
            Ok(elements) => elements,
            Err(status) => return Some(Err(status)),
        };
        let too_few = self.drop_remainder && elements.len() < self.size;
        if elements.is_empty() || too_few {
            return None;
        }
        Some(stack(&elements, self.rows).map_err(|status| status.context("batch")))
    }
}
