//! Whole pipelines, against plain vectors and over files.

mod files;
#[cfg(feature = "object-store")]
mod object_store;
mod prop;

use tensorfleet_input::{Dataset, Element};
use tensorfleet_tensor::{Result, Tensor};

/// The numbers from 0 on, one to an element.
fn numbers(count: usize) -> Dataset {
    Dataset::from_elements((0..count as i64).map(Tensor::scalar))
}

/// All numbers in the first components, batched or not.
fn values(elements: impl IntoIterator<Item = Result<Element>>) -> Vec<i64> {
    let values = |element: Result<Element>| {
        element
            .unwrap()
            .at(0)
            .unwrap()
            .slice::<i64>()
            .unwrap()
            .to_vec()
    };
    elements.into_iter().flat_map(values).collect()
}

fn sorted(mut values: Vec<i64>) -> Vec<i64> {
    values.sort_unstable();
    values
}
