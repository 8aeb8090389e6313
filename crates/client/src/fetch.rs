//! What a run can fetch: tensors, nodes, variables, and tuples and lists of them.

use tensorfleet_status::{Result, internal};
use tensorfleet_tensor::Tensor;

use crate::operation::Operation;
use crate::output::Output;
use crate::variable::Variable;

/// What one run fetches, collected from a [`Fetch`].
#[derive(Clone, Debug, Default)]
pub struct FetchList {
    /// Names of tensors whose values come back, in order.
    pub tensors: Vec<String>,
    /// Names of nodes that only run.
    pub targets: Vec<String>,
}

/// The values that came back, in order.
#[derive(Debug)]
pub struct Fetched {
    values: std::vec::IntoIter<Tensor>,
}

impl Fetched {
    /// These values.
    pub fn new(values: Vec<Tensor>) -> Fetched {
        Fetched {
            values: values.into_iter(),
        }
    }

    /// The next value.
    pub fn take(&mut self) -> Result<Tensor> {
        let next = self.values.next();
        next.ok_or_else(|| internal!("fewer tensors came back than were fetched"))
    }
}

/// Something to fetch, and the shape of what comes back: a tensor for a tensor or variable, nothing for
/// a node, tuples for tuples, vectors for slices.
///
/// ```
/// use tensorfleet_client::{Graph, Session};
///
/// let g = Graph::new();
/// let (a, b) = (g.constant(1.0f32), g.constant(2.0f32));
/// let sum = &a + &b;
/// let (sum, all) = Session::new(&g)?.run((&sum, &[&a, &b][..]))?;
/// assert_eq!((sum.to_scalar::<f32>()?, all.len()), (3.0, 2));
/// # Ok::<(), tensorfleet_client::Status>(())
/// ```
pub trait Fetch {
    /// What comes back.
    type Value;

    /// Adds what is to be fetched.
    fn add_to(&self, list: &mut FetchList);

    /// Takes what came back, in the same order.
    fn value(&self, from: &mut Fetched) -> Result<Self::Value>;
}

impl Fetch for Output {
    type Value = Tensor;

    fn add_to(&self, list: &mut FetchList) {
        list.tensors.push(self.name());
    }

    fn value(&self, from: &mut Fetched) -> Result<Tensor> {
        from.take()
    }
}

impl Fetch for Variable {
    type Value = Tensor;

    fn add_to(&self, list: &mut FetchList) {
        self.snapshot().add_to(list);
    }

    fn value(&self, from: &mut Fetched) -> Result<Tensor> {
        from.take()
    }
}

impl Fetch for Operation {
    type Value = ();

    fn add_to(&self, list: &mut FetchList) {
        list.targets.push(self.name());
    }

    fn value(&self, _: &mut Fetched) -> Result<()> {
        Ok(())
    }
}

impl<F: Fetch + ?Sized> Fetch for &F {
    type Value = F::Value;

    fn add_to(&self, list: &mut FetchList) {
        (**self).add_to(list);
    }

    fn value(&self, from: &mut Fetched) -> Result<F::Value> {
        (**self).value(from)
    }
}

impl<F: Fetch> Fetch for [F] {
    type Value = Vec<F::Value>;

    fn add_to(&self, list: &mut FetchList) {
        for item in self {
            item.add_to(list);
        }
    }

    fn value(&self, from: &mut Fetched) -> Result<Vec<F::Value>> {
        self.iter().map(|item| item.value(from)).collect()
    }
}

impl<F: Fetch> Fetch for Vec<F> {
    type Value = Vec<F::Value>;

    fn add_to(&self, list: &mut FetchList) {
        self.as_slice().add_to(list);
    }

    fn value(&self, from: &mut Fetched) -> Result<Vec<F::Value>> {
        self.as_slice().value(from)
    }
}

impl<F: Fetch> Fetch for Option<F> {
    type Value = Option<F::Value>;

    fn add_to(&self, list: &mut FetchList) {
        if let Some(item) = self {
            item.add_to(list);
        }
    }

    fn value(&self, from: &mut Fetched) -> Result<Option<F::Value>> {
        self.as_ref().map(|item| item.value(from)).transpose()
    }
}

impl Fetch for () {
    type Value = ();

    fn add_to(&self, _: &mut FetchList) {}

    fn value(&self, _: &mut Fetched) -> Result<()> {
        Ok(())
    }
}

macro_rules! tuples {
    ($($name:ident),*) => {
        impl<$($name: Fetch),*> Fetch for ($($name,)*) {
            type Value = ($($name::Value,)*);

            fn add_to(&self, list: &mut FetchList) {
                #[allow(non_snake_case)]
                let ($($name,)*) = self;
                $($name.add_to(list);)*
            }

            fn value(&self, from: &mut Fetched) -> Result<Self::Value> {
                #[allow(non_snake_case)]
                let ($($name,)*) = self;
                Ok(($($name.value(from)?,)*))
            }
        }
    };
}

tuples!(A);
tuples!(A, B);
tuples!(A, B, C);
tuples!(A, B, C, D);
tuples!(A, B, C, D, E);
tuples!(A, B, C, D, E, F);
tuples!(A, B, C, D, E, F, G);
tuples!(A, B, C, D, E, F, G, H);
