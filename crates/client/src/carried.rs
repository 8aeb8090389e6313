//! [`Carried`]: what conditionals return and loops carry from one iteration to the next.

use crate::operation::Operation;
use crate::output::Output;

/// Tensors in some order: one, a tuple, an array or a vector of them. An [`Operation`] stands for its effect and
/// carries no tensor; `()` carries nothing.
pub trait Carried: Sized {
    /// The tensors.
    fn outputs(&self) -> Vec<Output>;

    /// Nodes that are to run beside.
    fn operations(&self) -> Vec<Operation> {
        Vec::new()
    }

    /// The same form with other tensors, taken in order. `node` runs everything.
    #[must_use]
    fn like(&self, outputs: &mut dyn Iterator<Item = Output>, node: &Operation) -> Self;
}

impl Carried for Output {
    fn outputs(&self) -> Vec<Output> {
        vec![self.clone()]
    }

    fn like(&self, outputs: &mut dyn Iterator<Item = Output>, _: &Operation) -> Output {
        outputs.next().unwrap_or_else(|| self.clone())
    }
}

impl Carried for Operation {
    fn outputs(&self) -> Vec<Output> {
        Vec::new()
    }

    fn operations(&self) -> Vec<Operation> {
        vec![self.clone()]
    }

    fn like(&self, _: &mut dyn Iterator<Item = Output>, node: &Operation) -> Operation {
        node.clone()
    }
}

impl Carried for () {
    fn outputs(&self) -> Vec<Output> {
        Vec::new()
    }

    fn like(&self, _: &mut dyn Iterator<Item = Output>, _: &Operation) {}
}

impl<T: Carried> Carried for Vec<T> {
    fn outputs(&self) -> Vec<Output> {
        self.iter().flat_map(T::outputs).collect()
    }

    fn operations(&self) -> Vec<Operation> {
        self.iter().flat_map(T::operations).collect()
    }

    fn like(&self, outputs: &mut dyn Iterator<Item = Output>, node: &Operation) -> Vec<T> {
        self.iter().map(|item| item.like(outputs, node)).collect()
    }
}

impl<T: Carried, const N: usize> Carried for [T; N] {
    fn outputs(&self) -> Vec<Output> {
        self.iter().flat_map(T::outputs).collect()
    }

    fn operations(&self) -> Vec<Operation> {
        self.iter().flat_map(T::operations).collect()
    }

    fn like(&self, outputs: &mut dyn Iterator<Item = Output>, node: &Operation) -> [T; N] {
        self.each_ref().map(|item| item.like(outputs, node))
    }
}

macro_rules! tuples {
    ($($name:ident),*) => {
        impl<$($name: Carried),*> Carried for ($($name,)*) {
            fn outputs(&self) -> Vec<Output> {
                #[allow(non_snake_case)]
                let ($($name,)*) = self;
                [$($name.outputs()),*].concat()
            }

            fn operations(&self) -> Vec<Operation> {
                #[allow(non_snake_case)]
                let ($($name,)*) = self;
                [$($name.operations()),*].concat()
            }

            fn like(&self, outputs: &mut dyn Iterator<Item = Output>, node: &Operation) -> Self {
                #[allow(non_snake_case)]
                let ($($name,)*) = self;
                ($($name.like(outputs, node),)*)
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
