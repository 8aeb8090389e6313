//! [`Dataset::map`] and [`Dataset::filter`]: one element after the other.

use tensorfleet_status::Result;

use crate::dataset::Dataset;
use crate::element::Element;

impl Dataset {
    /// What `change` makes of each element.
    ///
    /// ```
    /// use tensorfleet_input::{Dataset, Element};
    /// use tensorfleet_tensor::Tensor;
    ///
    /// let halves = Dataset::from_elements((0..3).map(|i| Tensor::scalar(i as f32)))
    ///     .map(|element| Ok(Element::named([("half", Tensor::scalar(element.at(0)?.to_scalar::<f32>()? / 2.0))])));
    /// let last = halves.iter().last().unwrap()?;
    /// assert_eq!(last.get("half")?.to_scalar::<f32>()?, 1.0);
    /// # Ok::<(), tensorfleet_tensor::Status>(())
    /// ```
    pub fn map<F>(self, change: F) -> Dataset
    where
        F: Fn(Element) -> Result<Element> + Clone + Send + Sync + 'static,
    {
        self.then(move |stream| {
            let change = change.clone();
            stream.map(move |element| change(element?))
        })
    }

    /// The elements that `keep` wants.
    ///
    /// ```
    /// use tensorfleet_input::Dataset;
    /// use tensorfleet_tensor::Tensor;
    ///
    /// let even = Dataset::from_elements((0..10i64).map(Tensor::scalar))
    ///     .filter(|element| Ok(element.at(0)?.to_scalar::<i64>()? % 2 == 0));
    /// assert_eq!(even.iter().count(), 5);
    /// ```
    pub fn filter<F>(self, keep: F) -> Dataset
    where
        F: Fn(&Element) -> Result<bool> + Clone + Send + Sync + 'static,
    {
        self.then(move |stream| {
            let keep = keep.clone();
            stream.filter_map(move |element| match element {
                Ok(element) => match keep(&element) {
                    Ok(kept) => kept.then_some(Ok(element)),
                    Err(status) => Some(Err(status)),
                },
                Err(status) => Some(Err(status)),
            })
        })
    }
}
