//! Datasets of any Rust iterator.

use tensorfleet_status::Result;

use crate::dataset::Dataset;
use crate::element::Element;

impl Dataset {
    /// A dataset of the elements that an iterable has: a vector, an array, an iterator that can be cloned.
    ///
    /// ```
    /// use tensorfleet_input::Dataset;
    /// use tensorfleet_tensor::Tensor;
    ///
    /// let squares = Dataset::from_elements((0..5i64).map(|i| Tensor::scalar(i * i)));
    /// assert_eq!(squares.iter().count(), 5);
    /// assert_eq!(squares.iter().count(), 5); // each iteration begins anew
    /// ```
    pub fn from_elements<I>(elements: I) -> Dataset
    where
        I: IntoIterator<Item: Into<Element>, IntoIter: Send + 'static>
            + Clone
            + Send
            + Sync
            + 'static,
    {
        Dataset::new(move |_| {
            let elements = elements.clone().into_iter();
            Ok(Box::new(elements.map(|element| Ok(element.into()))))
        })
    }

    /// A dataset of what an iterator yields; `make` makes a new one for each iteration.
    ///
    /// ```
    /// use tensorfleet_input::{Dataset, Element};
    /// use tensorfleet_tensor::Tensor;
    ///
    /// let numbers = Dataset::from_generator(|| (0..).map(|i: i64| Ok(Element::from(Tensor::scalar(i)))));
    /// let third = numbers.iter().nth(2).unwrap()?;
    /// assert_eq!(third.at(0)?.to_scalar::<i64>()?, 2);
    /// # Ok::<(), tensorfleet_tensor::Status>(())
    /// ```
    pub fn from_generator<I>(make: impl Fn() -> I + Send + Sync + 'static) -> Dataset
    where
        I: IntoIterator<Item = Result<Element>, IntoIter: Send + 'static>,
    {
        Dataset::new(move |_| Ok(Box::new(make().into_iter())))
    }
}
