//! [`Dataset`], the recipe, and [`Elements`], one iteration of it.
//!
//! A dataset knows how to open a stream of elements for a *pass*: a number that only transformations with random
//! numbers look at, and that those which iterate what is below them several times hand down, always another one.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tensorfleet_status::{Result, Status};

use crate::element::Element;

/// An open iteration. Behind an error it need not make sense: [`Elements`] stops there.
pub(crate) type Stream = Box<dyn Iterator<Item = Result<Element>> + Send>;

type Open = dyn Fn(u64) -> Result<Stream> + Send + Sync;

/// A source of elements and what is done to them; cheap to clone. See the [crate's documentation](crate).
///
/// ```
/// use tensorfleet_input::{Dataset, Element};
/// use tensorfleet_tensor::Tensor;
///
/// let numbers = Dataset::from_elements((0..10i64).map(|i| Element::new([Tensor::scalar(i)])));
/// let even = numbers.filter(|element| Ok(element.at(0)?.to_scalar::<i64>()? % 2 == 0));
/// let batches = even.batch(3, false);
/// for _epoch in 0..2 {
///     let sizes: Vec<usize> = batches.iter().map(|batch| Ok(batch?.at(0)?.elements())).collect::<Result<_, _>>()?;
///     assert_eq!(sizes, [3, 2]);
/// }
/// # Ok::<(), tensorfleet_tensor::Status>(())
/// ```
#[derive(Clone)]
pub struct Dataset {
    open: Arc<Open>,
    /// How often [`iter`](Dataset::iter) was called; clones count together.
    passes: Arc<AtomicU64>,
}

impl Dataset {
    pub(crate) fn new(open: impl Fn(u64) -> Result<Stream> + Send + Sync + 'static) -> Dataset {
        Dataset {
            open: Arc::new(open),
            passes: Arc::new(AtomicU64::new(0)),
        }
    }

    /// A dataset that was asked for wrongly: it yields the error that says so.
    pub(crate) fn broken(status: Status) -> Dataset {
        Dataset::new(move |_| Err(status.clone()))
    }

    /// A dataset of what `change` makes of the stream of this one.
    pub(crate) fn then<S>(self, change: impl Fn(Stream) -> S + Send + Sync + 'static) -> Dataset
    where
        S: Iterator<Item = Result<Element>> + Send + 'static,
    {
        Dataset::new(move |pass| Ok(Box::new(change(self.open(pass)?))))
    }

    /// Opens the stream of a pass.
    pub(crate) fn open(&self, pass: u64) -> Result<Stream> {
        (self.open)(pass)
    }

    /// Iterates. The first call is pass 0, the next one pass 1, …: [`shuffle`](Dataset::shuffle) orders each pass anew.
    pub fn iter(&self) -> Elements {
        self.pass(self.passes.fetch_add(1, Ordering::Relaxed))
    }

    /// Iterates as the call of [`iter`](Dataset::iter) with this number does: for whoever resumes at an epoch.
    pub fn pass(&self, pass: u64) -> Elements {
        Elements {
            opened: Some(self.open(pass)),
        }
    }
}

impl fmt::Debug for Dataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dataset")
            .field("passes", &self.passes)
            .finish_non_exhaustive()
    }
}

impl IntoIterator for &Dataset {
    type Item = Result<Element>;
    type IntoIter = Elements;

    fn into_iter(self) -> Elements {
        self.iter()
    }
}

/// One iteration of a [`Dataset`]. The first error is its last item.
pub struct Elements {
    /// `None` when it is over: nothing below is kept alive then.
    opened: Option<Result<Stream>>,
}

impl Iterator for Elements {
    type Item = Result<Element>;

    fn next(&mut self) -> Option<Result<Element>> {
        let next = match self.opened.as_mut()? {
            Ok(stream) => stream.next(),
            Err(status) => Some(Err(status.clone())),
        };
        if !matches!(next, Some(Ok(_))) {
            self.opened = None;
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use tensorfleet_status::internal;
    use tensorfleet_tensor::Tensor;

    use super::*;

    #[test]
    fn first_error_is_the_last_item() {
        let items = || {
            let good = Ok(Element::from(Tensor::scalar(1i32)));
            [good.clone(), Err(internal!("bad")), good].into_iter()
        };
        let mut elements = Dataset::from_generator(items).iter();
        assert!(elements.next().unwrap().is_ok());
        assert_eq!(elements.next().unwrap().unwrap_err().message(), "bad");
        assert!(elements.next().is_none());
        let mut broken = Dataset::broken(internal!("asked wrongly")).iter();
        assert!(broken.next().unwrap().is_err());
        assert!(broken.next().is_none());
    }
}
