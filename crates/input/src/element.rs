//! [`Element`]: what a dataset yields.

use std::sync::Arc;

use tensorfleet_status::{Result, not_found, out_of_range};
use tensorfleet_tensor::Tensor;

/// Names of components, shared by all elements of a dataset.
pub(crate) type Names = Arc<[String]>;

/// One element of a dataset: its components, by position and, if they have names, by name.
///
/// ```
/// use tensorfleet_input::Element;
/// use tensorfleet_tensor::Tensor;
///
/// let element = Element::named([("x", Tensor::vector(&[1.0f32, 2.0])), ("y", Tensor::scalar(3i64))]);
/// assert_eq!(element.get("y")?.to_scalar::<i64>()?, 3);
/// assert_eq!(element.at(0)?.elements(), 2);
/// let feeds = element.feeds([("y", "label:0"), ("x", "image:0")])?; // for Session::run
/// assert_eq!(feeds[1].0, "image:0");
/// # Ok::<(), tensorfleet_tensor::Status>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Element {
    tensors: Vec<Tensor>,
    /// As many as tensors.
    names: Option<Names>,
}

impl Element {
    /// An element of these components.
    pub fn new(tensors: impl Into<Vec<Tensor>>) -> Element {
        Element {
            tensors: tensors.into(),
            names: None,
        }
    }

    /// An element of components with names.
    pub fn named<N: Into<String>>(components: impl IntoIterator<Item = (N, Tensor)>) -> Element {
        let components = components.into_iter();
        let (names, tensors): (Vec<String>, Vec<Tensor>) = components
            .map(|(name, tensor)| (name.into(), tensor))
            .unzip();
        Element {
            tensors,
            names: Some(names.into()),
        }
    }

    /// Components under names that others share; the caller has as many of both.
    pub(crate) fn with_names(tensors: Vec<Tensor>, names: Option<Names>) -> Element {
        Element { tensors, names }
    }

    /// The number of components.
    pub fn len(&self) -> usize {
        self.tensors.len()
    }

    /// Whether there are no components.
    pub fn is_empty(&self) -> bool {
        self.tensors.is_empty()
    }

    /// The components in order.
    pub fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    /// The components, given away.
    pub fn into_tensors(self) -> Vec<Tensor> {
        self.tensors
    }

    /// The names in order, if there are any.
    pub fn names(&self) -> Option<&[String]> {
        self.names.as_deref()
    }

    pub(crate) fn shared_names(&self) -> Option<Names> {
        self.names.clone()
    }

    /// The component of this name.
    pub fn get(&self, name: &str) -> Result<&Tensor> {
        let names = self.names.as_deref().unwrap_or_default();
        let place = names.iter().position(|known| known == name);
        match place.and_then(|place| self.tensors.get(place)) {
            Some(tensor) => Ok(tensor),
            None if names.is_empty() => Err(not_found!(
                "no component \"{name}\": the element's components have no names, ask by position"
            )),
            None => Err(not_found!(
                "no component \"{name}\": the element has {}",
                names.join(", ")
            )),
        }
    }

    /// The component at this position.
    pub fn at(&self, index: usize) -> Result<&Tensor> {
        self.tensors.get(index).ok_or_else(|| {
            out_of_range!(
                "no component {index}: the element has {}",
                self.tensors.len()
            )
        })
    }

    /// Components by name, each with what it feeds: a tensor's name or handle, as sessions take them.
    pub fn feeds<'n, K>(
        &self,
        fed: impl IntoIterator<Item = (&'n str, K)>,
    ) -> Result<Vec<(K, Tensor)>> {
        let feed = |(name, key)| Ok((key, self.get(name)?.clone()));
        fed.into_iter().map(feed).collect()
    }

    /// Names and components; a component without a name has an empty one.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &Tensor)> {
        self.tensors.iter().enumerate().map(|(index, tensor)| {
            let name = self.names.as_deref().and_then(|names| names.get(index));
            (name.map_or("", String::as_str), tensor)
        })
    }

    /// How errors call a component.
    pub(crate) fn component(&self, index: usize) -> String {
        match self.names.as_deref().and_then(|names| names.get(index)) {
            Some(name) => format!("component \"{name}\""),
            None => format!("component {index}"),
        }
    }
}

impl From<Tensor> for Element {
    fn from(tensor: Tensor) -> Element {
        Element::new([tensor])
    }
}

impl From<Vec<Tensor>> for Element {
    fn from(tensors: Vec<Tensor>) -> Element {
        Element::new(tensors)
    }
}

impl<const N: usize> From<[Tensor; N]> for Element {
    fn from(tensors: [Tensor; N]) -> Element {
        Element::new(tensors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_components_are_errors_that_name_what_there_is() {
        let element = Element::named([("x", Tensor::scalar(1i32)), ("y", Tensor::scalar(2i32))]);
        let error = element.get("z").unwrap_err();
        assert_eq!(error.message(), "no component \"z\": the element has x, y");
        let error = Element::from(Tensor::scalar(1i32)).get("z").unwrap_err();
        assert!(error.message().contains("by position"), "{error}");
        assert!(element.at(2).is_err());
        assert_eq!(
            (element.component(1), element.len()),
            ("component \"y\"".into(), 2)
        );
    }
}
