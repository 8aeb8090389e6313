//! [`Dataset::repeat`] and [`Dataset::repeat_forever`]: several epochs in one iteration.

use tensorfleet_status::Result;

use crate::dataset::{Dataset, Stream};
use crate::element::Element;

/// Below a dataset that repeats for ever, each of its passes has this many passes of its own.
const ENDLESS_PASSES: u64 = 1 << 32;

impl Dataset {
    /// The dataset `count` times over. A [`shuffle`](Dataset::shuffle) before it orders each time anew.
    pub fn repeat(self, count: u64) -> Dataset {
        self.repeated(Some(count))
    }

    /// The dataset over and over; a dataset without elements ends all the same.
    pub fn repeat_forever(self) -> Dataset {
        self.repeated(None)
    }

    fn repeated(self, count: Option<u64>) -> Dataset {
        Dataset::new(move |pass| {
            Ok(Box::new(Repeated {
                dataset: self.clone(),
                next_pass: pass.wrapping_mul(count.unwrap_or(ENDLESS_PASSES)),
                left: count,
                current: None,
                any: true,
            }))
        })
    }
}

struct Repeated {
    dataset: Dataset,
    next_pass: u64,
    /// Epochs to come; `None` for no end of them.
    left: Option<u64>,
    current: Option<Stream>,
    /// Whether the current epoch had elements.
    any: bool,
}

impl Repeated {
    /// Opens the next epoch, unless there is none.
    fn begin_epoch(&mut self) -> Option<Result<Stream>> {
        if self.left == Some(0) || !self.any {
            return None;
        }
        self.left = self.left.map(|left| left - 1);
        let pass = self.next_pass;
        self.next_pass = pass.wrapping_add(1);
        self.any = false;
        Some(self.dataset.open(pass))
    }
}

impl Iterator for Repeated {
    type Item = Result<Element>;

    fn next(&mut self) -> Option<Result<Element>> {
        loop {
            let stream = match &mut self.current {
                Some(stream) => stream,
                None => match self.begin_epoch()? {
                    Ok(stream) => self.current.insert(stream),
                    Err(status) => return Some(Err(status)),
                },
            };
            match stream.next() {
                Some(element) => {
                    self.any = true;
                    return Some(element);
                }
                None => self.current = None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tensorfleet_tensor::Tensor;

    use super::*;

    #[test]
    fn repeats_as_often_as_said() {
        let three = Dataset::from_elements((0..3i32).map(Tensor::scalar));
        assert_eq!(three.clone().repeat(4).iter().count(), 12);
        assert_eq!(three.clone().repeat(0).iter().count(), 0);
        assert_eq!(three.repeat_forever().iter().take(100).count(), 100);
        let nothing = Dataset::from_elements(Vec::<Tensor>::new());
        assert_eq!(nothing.clone().repeat_forever().iter().count(), 0);
        assert_eq!(nothing.repeat(u64::MAX).iter().count(), 0);
    }
}
