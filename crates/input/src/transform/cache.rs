//! [`Dataset::cache`]: what is below is computed once.

use std::sync::{Arc, Mutex, PoisonError};

use tensorfleet_status::Result;

use crate::dataset::{Dataset, Stream};
use crate::element::Element;

/// All elements, once an iteration has come to their end.
type Kept = Mutex<Option<Arc<[Element]>>>;

impl Dataset {
    /// Keeps all elements in memory. They are known after the first iteration that comes to the end; those before it,
    /// or beside it, compute their own. Shuffle behind it, not before: the order is kept too.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicUsize, Ordering};
    /// use tensorfleet_input::Dataset;
    /// use tensorfleet_tensor::Tensor;
    ///
    /// static COMPUTED: AtomicUsize = AtomicUsize::new(0);
    /// let slow = Dataset::from_elements((0..3i64).map(Tensor::scalar)).map(|element| {
    ///     COMPUTED.fetch_add(1, Ordering::Relaxed);
    ///     Ok(element)
    /// });
    /// assert_eq!(slow.cache().repeat(5).iter().count(), 15);
    /// assert_eq!(COMPUTED.load(Ordering::Relaxed), 3);
    /// ```
    pub fn cache(self) -> Dataset {
        let kept = Arc::new(Kept::default());
        Dataset::new(move |pass| {
            let known = kept.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if let Some(known) = known {
                let element = move |index| known.get(index).cloned().map(Ok);
                return Ok(Box::new((0..).map_while(element)));
            }
            Ok(Box::new(Keeping {
                stream: self.open(pass)?,
                seen: Some(Vec::new()),
                kept: kept.clone(),
            }))
        })
    }
}

struct Keeping {
    stream: Stream,
    /// `None` once it is known that these are not all.
    seen: Option<Vec<Element>>,
    kept: Arc<Kept>,
}

impl Iterator for Keeping {
    type Item = Result<Element>;

    fn next(&mut self) -> Option<Result<Element>> {
        let next = self.stream.next();
        match &next {
            Some(Ok(element)) => {
                if let Some(seen) = &mut self.seen {
                    seen.push(element.clone());
                }
            }
            Some(Err(_)) => self.seen = None,
            None => {
                if let Some(seen) = self.seen.take() {
                    let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
                    kept.get_or_insert_with(|| seen.into());
                }
            }
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tensorfleet_status::internal;
    use tensorfleet_tensor::Tensor;

    use super::*;

    #[test]
    fn only_whole_iterations_are_kept() {
        let opened = Arc::new(AtomicUsize::new(0));
        let count = opened.clone();
        let data = Dataset::from_generator(move || {
            let fails = count.fetch_add(1, Ordering::Relaxed) == 1;
            (0..3i64).map(move |i| match i {
                2 if fails => Err(internal!("bad")),
                i => Ok(Element::from(Tensor::scalar(i))),
            })
        })
        .cache();
        assert_eq!(data.iter().take(2).count(), 2);
        assert!(data.iter().any(|element| element.is_err()));
        for _ in 0..3 {
            assert_eq!(data.iter().filter(Result::is_ok).count(), 3);
        }
        assert_eq!(opened.load(Ordering::Relaxed), 3);
    }
}
