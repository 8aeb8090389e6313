//! [`Dataset::interleave`]: several datasets in turns.

use std::sync::Arc;

use tensorfleet_status::{Result, invalid_argument};

use crate::dataset::{Dataset, Stream};
use crate::element::Element;

type Make = dyn Fn(Element) -> Result<Dataset> + Send + Sync;

impl Dataset {
    /// The elements of the datasets that `make` makes of the elements of this one: `cycle` of them are open at a time
    /// and yield `block` elements each in turn. The order is TensorFlow's.
    ///
    /// ```
    /// use tensorfleet_input::Dataset;
    /// use tensorfleet_tensor::Tensor;
    ///
    /// let tens = Dataset::from_elements([10i64, 20, 30].map(Tensor::scalar));
    /// let all = tens.interleave(2, 1, |ten| {
    ///     let ten = ten.at(0)?.to_scalar::<i64>()?;
    ///     Ok(Dataset::from_elements((ten..ten + 2).map(Tensor::scalar)))
    /// });
    /// let all: Vec<i64> = all.iter().map(|e| e?.at(0)?.to_scalar()).collect::<Result<_, _>>()?;
    /// assert_eq!(all, [10, 20, 11, 21, 30, 31]);
    /// # Ok::<(), tensorfleet_tensor::Status>(())
    /// ```
    ///
    /// Files in turns: [`Dataset::from_files`].
    pub fn interleave<F>(self, cycle: usize, block: usize, make: F) -> Dataset
    where
        F: Fn(Element) -> Result<Dataset> + Send + Sync + 'static,
    {
        if cycle == 0 || block == 0 {
            return Dataset::broken(invalid_argument!(
                "interleave: cycle is {cycle} and block {block}, both must be at least 1"
            ));
        }
        let make: Arc<Make> = Arc::new(make);
        Dataset::new(move |pass| {
            Ok(Box::new(Interleaved {
                inputs: Some(self.open(pass)?),
                make: make.clone(),
                pass,
                open: Vec::new(),
                cycle,
                block,
                turn: 0,
                yielded: 0,
            }))
        })
    }
}

struct Interleaved {
    /// `None` when it has ended.
    inputs: Option<Stream>,
    make: Arc<Make>,
    pass: u64,
    /// At most `cycle`; `None` where one has ended and the next is not open yet.
    open: Vec<Option<Stream>>,
    cycle: usize,
    block: usize,
    /// Whose turn it is, and how many elements it has yielded in it.
    turn: usize,
    yielded: usize,
}

impl Interleaved {
    fn end_turn(&mut self) {
        self.turn = (self.turn + 1) % self.cycle;
        self.yielded = 0;
    }

    /// Opens the next dataset in the present place; `false` if there is none.
    fn open_next(&mut self) -> Result<bool> {
        let Some(input) = self.inputs.as_mut().and_then(Iterator::next) else {
            self.inputs = None;
            return Ok(false);
        };
        let stream = (self.make)(input?)?.open(self.pass)?;
        match self.open.get_mut(self.turn) {
            Some(place) => *place = Some(stream),
            // Places are taken in order.
            None => self.open.push(Some(stream)),
        }
        Ok(true)
    }
}

impl Iterator for Interleaved {
    type Item = Result<Element>;

    fn next(&mut self) -> Option<Result<Element>> {
        loop {
            if let Some(Some(stream)) = self.open.get_mut(self.turn) {
                let Some(element) = stream.next() else {
                    if let Some(place) = self.open.get_mut(self.turn) {
                        *place = None;
                    }
                    self.end_turn();
                    continue;
                };
                self.yielded += 1;
                if self.yielded == self.block {
                    self.end_turn();
                }
                return Some(element);
            }
            match self.open_next() {
                Ok(true) => {}
                Ok(false) if self.open.iter().all(Option::is_none) => return None,
                Ok(false) => self.end_turn(),
                Err(status) => return Some(Err(status)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tensorfleet_tensor::Tensor;

    use super::*;

    fn interleaved(counts: &[usize], cycle: usize, block: usize) -> Vec<i64> {
        let counts: Vec<(i64, usize)> = (1..).zip(counts.iter().copied()).collect();
        let inputs = counts.clone().into_iter().map(|(i, _)| Tensor::scalar(i));
        let data = Dataset::from_elements(inputs.collect::<Vec<_>>());
        let data = data.interleave(cycle, block, move |input| {
            let value = input.at(0)?.to_scalar::<i64>()?;
            let count = counts[value as usize - 1].1;
            Ok(Dataset::from_elements(vec![Tensor::scalar(value); count]))
        });
        let value = |element: Result<Element>| element?.at(0)?.to_scalar::<i64>();
        data.iter().map(|element| value(element).unwrap()).collect()
    }

    #[test]
    fn order_is_tensorflows() {
        // What tf.data.Dataset.range(1, 6).interleave(…) gives for cycle_length 2 and block_length 4.
        let expected = [
            1, 1, 1, 1, 2, 2, 2, 2, 1, 1, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 3, 3, 4, 4, 5, 5, 5, 5, 5,
            5,
        ];
        assert_eq!(interleaved(&[6; 5], 2, 4), expected);
    }

    #[test]
    fn cycles_of_any_size_end() {
        assert_eq!(interleaved(&[2, 0, 1], 1, 1), [1, 1, 3]);
        assert_eq!(interleaved(&[2, 0, 1], 10, 1), [1, 3, 1]);
        assert_eq!(interleaved(&[0, 0], 2, 3), [0i64; 0]);
        assert_eq!(interleaved(&[], 2, 3), [0i64; 0]);
    }
}
