//! [`Store`]: the elements of a queue, in the order in which they leave.

use std::collections::VecDeque;

use tensorfleet_math::random::Philox;

use super::spec::{Kind, Spec, Tuple};

/// The elements of a queue.
pub(super) enum Store {
    /// In the order they came.
    Fifo(VecDeque<Tuple>),
    /// The smallest number first.
    Priority(Heap),
    /// In an order drawn from a random stream.
    Shuffle(Vec<Tuple>, Words),
}

impl Store {
    /// An empty store. `entropy` seeds a stream for which the node gives no seeds.
    pub(super) fn new(spec: &Spec, entropy: impl Fn() -> i64) -> Store {
        match spec.kind {
            Kind::Fifo | Kind::PaddingFifo => Store::Fifo(VecDeque::new()),
            Kind::Priority => Store::Priority(Heap::default()),
            Kind::RandomShuffle => {
                let (seed, seed2) = match spec.seeds {
                    (0, 0) => (entropy(), entropy()),
                    seeds => seeds,
                };
                Store::Shuffle(Vec::new(), Words::new(Philox::new(seed, seed2)))
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Store::Fifo(elements) => elements.len(),
            Store::Priority(heap) => heap.elements.len(),
            Store::Shuffle(elements, _) => elements.len(),
        }
    }

    pub(super) fn push(&mut self, tuple: Tuple) {
        match self {
            Store::Fifo(elements) => elements.push_back(tuple),
            Store::Priority(heap) => heap.push(tuple),
            Store::Shuffle(elements, _) => elements.push(tuple),
        }
    }

    pub(super) fn pop(&mut self) -> Option<Tuple> {
        match self {
            Store::Fifo(elements) => elements.pop_front(),
            Store::Priority(heap) => heap.pop(),
            Store::Shuffle(elements, _) if elements.is_empty() => None,
            Store::Shuffle(elements, words) => {
                let index = words.next() as usize % elements.len();
                Some(elements.swap_remove(index))
            }
        }
    }

    /// Takes back what was popped, first popped first.
    pub(super) fn restore(&mut self, taken: Vec<Tuple>) {
        let taken = taken.into_iter().rev();
        match self {
            Store::Fifo(elements) => taken.for_each(|tuple| elements.push_front(tuple)),
            Store::Priority(heap) => taken.for_each(|tuple| heap.push(tuple)),
            Store::Shuffle(elements, _) => elements.extend(taken),
        }
    }
}

/// A random stream word by word.
pub(super) struct Words {
    philox: Philox,
    sample: [u32; 4],
    used: usize,
}

impl Words {
    fn new(philox: Philox) -> Words {
        Words {
            philox,
            sample: [0; 4],
            used: 4,
        }
    }

    fn next(&mut self) -> u32 {
        if self.used == self.sample.len() {
            self.sample = self.philox.next_sample();
            self.used = 0;
        }
        self.used += 1;
        self.sample[self.used - 1]
    }
}

/// A binary heap that breaks ties as C++'s `std::priority_queue` does: equal priorities leave in the
/// order in which TensorFlow lets them leave.
#[derive(Default)]
pub(super) struct Heap {
    elements: Vec<(i64, Tuple)>,
}

impl Heap {
    fn push(&mut self, tuple: Tuple) {
        let priority = tuple.first().and_then(|first| first.to_scalar().ok());
        self.elements.push((priority.unwrap_or_default(), tuple));
        self.rise(self.elements.len() - 1);
    }

    fn rise(&mut self, mut hole: usize) {
        while hole > 0 {
            let parent = (hole - 1) / 2;
            if self.elements[parent].0 <= self.elements[hole].0 {
                return;
            }
            self.elements.swap(parent, hole);
            hole = parent;
        }
    }

    fn pop(&mut self) -> Option<Tuple> {
        let last = self.elements.pop()?;
        let Some(first) = self.elements.first_mut() else {
            return Some(last.1);
        };
        let (_, smallest) = std::mem::replace(first, last);
        // The hole sinks to the bottom by the smaller child, of equal ones the right; then what was last rises.
        let (mut hole, len) = (0, self.elements.len());
        while 2 * hole + 2 < len {
            let (left, right) = (2 * hole + 1, 2 * hole + 2);
            let child = if self.elements[right].0 > self.elements[left].0 {
                left
            } else {
                right
            };
            self.elements.swap(hole, child);
            hole = child;
        }
        if 2 * hole + 2 == len {
            self.elements.swap(hole, 2 * hole + 1);
            hole = 2 * hole + 1;
        }
        self.rise(hole);
        Some(smallest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tensorfleet_tensor::Tensor;

    #[test]
    fn heaps_give_the_smallest_first() {
        let mut heap = Heap::default();
        let numbers = [5i64, 3, 9, 3, -1, 7, 3, 0, 12, 5];
        for (index, number) in numbers.iter().enumerate() {
            heap.push(vec![Tensor::scalar(*number), Tensor::scalar(index as i64)]);
        }
        let mut sorted = numbers;
        sorted.sort_unstable();
        for expected in sorted {
            let tuple = heap.pop().unwrap();
            assert_eq!(tuple[0].to_scalar::<i64>().unwrap(), expected);
        }
        assert!(heap.pop().is_none());
    }
}
