//! [`Dataset::shuffle`]: random order by a buffer, reproducible by its seed.

use tensorfleet_math::random::Philox;
use tensorfleet_status::{Result, invalid_argument};

use crate::dataset::{Dataset, Stream};
use crate::element::Element;

impl Dataset {
    /// The elements in random order: each is drawn from a buffer of the next `buffer` ones. A buffer as large as the
    /// dataset shuffles it evenly.
    ///
    /// The order depends on the seed and on the pass alone: every epoch has another one, and a program that runs
    /// again sees the same.
    ///
    /// ```
    /// use tensorfleet_input::Dataset;
    /// use tensorfleet_tensor::Tensor;
    ///
    /// let shuffled = || Dataset::from_elements((0..100i64).map(Tensor::scalar)).shuffle(100, 42);
    /// let order = |data: &Dataset| -> Vec<i64> {
    ///     data.iter().map(|element| element.unwrap().at(0).unwrap().to_scalar().unwrap()).collect()
    /// };
    /// let data = shuffled();
    /// let (first, second) = (order(&data), order(&data));
    /// assert_ne!(first, second);
    /// assert_eq!(first, order(&shuffled()));
    /// ```
    pub fn shuffle(self, buffer: usize, seed: u64) -> Dataset {
        if buffer == 0 {
            return Dataset::broken(invalid_argument!(
                "shuffle: the buffer must hold at least 1 element, better all of an epoch"
            ));
        }
        Dataset::new(move |pass| {
            Ok(Box::new(Shuffled {
                stream: Some(self.open(pass)?),
                capacity: buffer,
                buffer: Vec::new(),
                random: Philox::from_key_counter(seed, [0, pass]),
            }))
        })
    }
}

struct Shuffled {
    /// `None` when it has ended.
    stream: Option<Stream>,
    capacity: usize,
    buffer: Vec<Element>,
    random: Philox,
}

impl Shuffled {
    /// A number below `len`, which is not 0. A sample's 64 bits make the bias of any real length invisible.
    fn draw(&mut self, len: usize) -> usize {
        let [low, high, ..] = self.random.next_sample();
        let sample = u64::from(low) | u64::from(high) << 32;
        ((u128::from(sample) * len as u128) >> 64) as usize
    }
}

impl Iterator for Shuffled {
    type Item = Result<Element>;

    fn next(&mut self) -> Option<Result<Element>> {
        while self.buffer.len() < self.capacity
            && let Some(stream) = &mut self.stream
        {
            match stream.next() {
                Some(Ok(element)) => self.buffer.push(element),
                Some(Err(status)) => return Some(Err(status)),
                None => self.stream = None,
            }
        }
        if self.buffer.is_empty() {
            return None;
        }
        let drawn = self.draw(self.buffer.len());
        Some(Ok(self.buffer.swap_remove(drawn)))
    }
}

#[cfg(test)]
mod tests {
    use tensorfleet_tensor::Tensor;

    use super::*;

    fn values(elements: impl Iterator<Item = Result<Element>>) -> Vec<i64> {
        let value = |element: Result<Element>| element?.at(0)?.to_scalar::<i64>();
        elements.map(|element| value(element).unwrap()).collect()
    }

    #[test]
    fn epochs_differ_and_passes_can_be_named() {
        let data = Dataset::from_elements((0..50i64).map(Tensor::scalar)).shuffle(50, 1);
        let epochs = data.clone().repeat(3);
        let all = values(epochs.iter());
        let (first, second, third) = (&all[..50], &all[50..100], &all[100..]);
        assert!(first != second && second != third && first != third);
        assert_eq!(values(data.pass(1)), second);
        assert_ne!(values(epochs.pass(1)), all);
    }

    #[test]
    fn elements_leave_the_buffer_and_never_much_too_early() {
        let data = Dataset::from_elements((0..1000i64).map(Tensor::scalar)).shuffle(10, 3);
        let order = values(data.iter());
        let moved = order.iter().zip(0i64..).filter(|(value, at)| *value != at);
        assert!(moved.count() > 500);
        // Element `i` cannot come before it is in the buffer.
        assert!(order.iter().zip(0..).all(|(value, at)| *value < at + 10));
        let same = Dataset::from_elements((0..9i64).map(Tensor::scalar)).shuffle(1, 3);
        assert_eq!(values(same.iter()), (0..9).collect::<Vec<_>>());
    }

    #[test]
    fn orders_are_even() {
        let mut first = [0u32; 4];
        let data = Dataset::from_elements((0..4i64).map(Tensor::scalar)).shuffle(4, 9);
        for pass in 0..4000 {
            first[values(data.pass(pass).take(1))[0] as usize] += 1;
        }
        assert!(
            first.iter().all(|count| (850..1150).contains(count)),
            "{first:?}"
        );
    }
}
