//! [`Dataset::take`], [`Dataset::skip`] and [`Dataset::shard`]: elements by their position.
//!
//! Errors are no elements: they are never skipped.

use tensorfleet_status::{Result, invalid_argument};

use crate::dataset::{Dataset, Stream};
use crate::element::Element;

impl Dataset {
    /// The first `count` elements.
    pub fn take(self, count: usize) -> Dataset {
        self.then(move |stream| stream.take(count))
    }

    /// All but the first `count` elements.
    pub fn skip(self, count: usize) -> Dataset {
        self.then(move |stream| Skipping {
            stream,
            first: count,
            between: 0,
        })
    }

    /// Every `num_tasks`-th element, from the one at `task_index` on: each of `num_tasks` workers sees other
    /// elements, and together they see all. Shard before shuffling, so that all workers divide the same order.
    ///
    /// ```
    /// use tensorfleet_input::Dataset;
    /// use tensorfleet_tensor::Tensor;
    ///
    /// let numbers = Dataset::from_elements((0..7i64).map(Tensor::scalar));
    /// let mine = numbers.shard(3, 1);
    /// let mine: Vec<i64> = mine.iter().map(|e| e?.at(0)?.to_scalar()).collect::<Result<_, _>>()?;
    /// assert_eq!(mine, [1, 4]);
    /// # Ok::<(), tensorfleet_tensor::Status>(())
    /// ```
    pub fn shard(self, num_tasks: usize, task_index: usize) -> Dataset {
        if task_index >= num_tasks {
            return Dataset::broken(invalid_argument!(
                "shard: task index {task_index} is not below the number of tasks, {num_tasks}: indices start at 0"
            ));
        }
        self.then(move |stream| Skipping {
            stream,
            first: task_index,
            between: num_tasks - 1,
        })
    }
}

/// Leaves elements out.
struct Skipping {
    stream: Stream,
    /// How many before the next one that counts.
    first: usize,
    /// How many after each.
    between: usize,
}

impl Iterator for Skipping {
    type Item = Result<Element>;

    fn next(&mut self) -> Option<Result<Element>> {
        while self.first > 0 {
            match self.stream.next() {
                Some(Ok(_)) => self.first -= 1,
                ended_or_failed => return ended_or_failed,
            }
        }
        self.first = self.between;
        self.stream.next()
    }
}

#[cfg(test)]
mod tests {
    use tensorfleet_status::internal;
    use tensorfleet_tensor::Tensor;

    use super::*;

    #[test]
    fn errors_are_not_skipped() {
        let failing = || {
            Dataset::from_generator(|| {
                let good = Ok(Element::from(Tensor::scalar(1i32)));
                [good, Err(internal!("bad"))]
            })
        };
        for data in [failing().skip(5), failing().shard(4, 3), failing().skip(2)] {
            assert_eq!(data.iter().next().unwrap().unwrap_err().message(), "bad");
        }
    }

    #[test]
    fn refuses_a_shard_that_is_not_there() {
        let data = Dataset::from_elements([Tensor::scalar(1i32)]);
        for (tasks, index) in [(0, 0), (2, 2)] {
            let error = data.clone().shard(tasks, index).iter().next().unwrap();
            assert!(error.unwrap_err().message().contains("task index"));
        }
    }
}
