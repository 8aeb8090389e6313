//! What all typed builders have: the macro that makes them, and how outputs are told apart.

use tensorfleet_kernel::{AttrList, AttrValue, Attrs, FuncRef};
use tensorfleet_tensor::{Bytes, DType, PartialShape, Tensor};

use crate::graph::Graph;
use crate::operation::{OpBuilder, Operation};
use crate::output::{Operand, Output};

/// Defines a typed builder: `Name { option = "attr": type; … } -> result`. The result is `none`, `one`,
/// `list "N"` (as many as the attribute says), or `Outputs { field, field: "N", … }`.
macro_rules! builder {
    ($(#[$doc:meta])* $name:ident { $($(#[$about:meta])* $option:ident = $attr:literal: $type:ty;)* } -> $($result:tt)*) => {
        $(#[$doc])*
        #[must_use = "nothing is added to the graph before `build`, `output` or `outputs`"]
        pub struct $name(crate::operation::OpBuilder);

        impl $name {
            $(
                $(#[$about])*
                #[inline]
                pub fn $option(self, value: $type) -> Self {
                    $name(self.0.attr($attr, crate::ops::builder::ToAttr::to_attr(value)))
                }
            )*

            /// The name, behind the prefix of the open name scopes; the op type by default.
            #[inline]
            pub fn name(self, name: &str) -> Self {
                $name(self.0.name(name))
            }

            /// A node that must run before.
            #[inline]
            pub fn control(self, op: &crate::operation::Operation) -> Self {
                $name(self.0.control(op))
            }

            /// The device, merged with the open device scopes.
            #[inline]
            pub fn device(self, device: &str) -> Self {
                $name(self.0.device(device))
            }

            /// Puts the node where this one is.
            #[inline]
            pub fn colocate_with(self, op: &crate::operation::Operation) -> Self {
                $name(self.0.colocate_with(op))
            }

            /// Adds the node.
            #[inline]
            #[track_caller]
            pub fn build(self) -> crate::operation::Operation {
                self.0.build()
            }
        }

        results!($name $($result)*);
    };
}

/// What a builder ends in besides `build`.
macro_rules! results {
    ($name:ident none) => {};
    ($name:ident one) => {
        impl $name {
            /// Adds the node and returns its output.
            #[inline]
            #[track_caller]
            pub fn output(self) -> crate::output::Output {
                self.0.output()
            }
        }
    };
    ($name:ident list $number:literal) => {
        impl $name {
            /// Adds the node and returns its outputs.
            #[inline]
            #[track_caller]
            pub fn outputs(self) -> Vec<crate::output::Output> {
                crate::ops::builder::Ports::of(self.0).list($number)
            }
        }
    };
    ($name:ident $outputs:ident { $($field:ident $(: $number:literal)?,)* }) => {
        #[doc = concat!("The outputs of [`", stringify!($name), "`].")]
        #[derive(Clone, Debug)]
        #[allow(missing_docs)] // the names are all that is known of them
        pub struct $outputs {
            $(pub $field: field!($($number)?),)*
        }

        impl $name {
            /// Adds the node and returns its outputs.
            #[inline]
            #[track_caller]
            pub fn outputs(self) -> $outputs {
                let mut ports = crate::ops::builder::Ports::of(self.0);
                $outputs { $($field: take!(ports $($number)?),)* }
            }
        }
    };
}

/// The type of one output, or of a list of them.
macro_rules! field {
    () => { crate::output::Output };
    ($number:literal) => { Vec<crate::output::Output> };
}

/// Takes the next output, or list of them.
macro_rules! take {
    ($ports:ident) => {
        $ports.one()
    };
    ($ports:ident $number:literal) => {
        $ports.list($number)
    };
}

/// A node's outputs, taken one by one.
pub(crate) struct Ports {
    op: Operation,
    /// What the program gave: tells the length of lists where the node could not be made.
    given: Attrs,
    next: usize,
}

impl Ports {
    #[track_caller]
    pub(crate) fn of(builder: OpBuilder) -> Ports {
        let given = builder.attrs().clone();
        Ports {
            op: builder.build(),
            given,
            next: 0,
        }
    }

    #[track_caller]
    pub(crate) fn one(&mut self) -> Output {
        let output = self.op.output(self.next);
        self.next += 1;
        output
    }

    #[track_caller]
    pub(crate) fn list(&mut self, number: &str) -> Vec<Output> {
        let value = self.op.attr(number);
        let length = match value.as_ref().or_else(|| self.given.get(number)) {
            Some(AttrValue::I(number)) => usize::try_from(*number).unwrap_or(0),
            Some(AttrValue::List(list)) => list.len(),
            _ => 0,
        };
        (0..length).map(|_| self.one()).collect()
    }
}

/// A node of the graph that `first` is of, with it as first input.
pub(crate) fn node_with(op: &str, first: impl Operand) -> OpBuilder {
    let first = first.to_output();
    first.graph().op(op).input(&first)
}

/// A node of the graph that the tensors are of, with them as first argument. Without any there is no graph
/// to be of: the mistake is kept in one of its own, and handed on when the result is used.
pub(crate) fn node_with_list(op: &str, first: &[impl Operand]) -> OpBuilder {
    match first.first() {
        Some(one) => one.to_output().graph().op(op).list(first),
        None => Graph::new().op(op).list(first),
    }
}

/// What an attribute can be given as.
pub(crate) trait ToAttr {
    fn to_attr(self) -> AttrValue;
}

macro_rules! to_attr {
    ($($type:ty => |$value:ident| $make:expr;)*) => {$(
        impl ToAttr for $type {
            fn to_attr(self) -> AttrValue {
                let $value = self;
                $make
            }
        }
    )*};
}

to_attr! {
    bool => |value| value.into();
    i64 => |value| value.into();
    f32 => |value| value.into();
    &str => |value| value.into();
    DType => |value| value.into();
    PartialShape => |value| value.into();
    Tensor => |value| value.into();
    FuncRef => |value| value.into();
    &[i64] => |value| value.to_vec().into();
    &[f32] => |value| AttrValue::List(AttrList::F(value.to_vec()));
    &[bool] => |value| AttrValue::List(AttrList::B(value.to_vec()));
    &[&str] => |value| AttrValue::List(AttrList::S(
        value.iter().map(|text| Bytes::copy_from_slice(text.as_bytes())).collect(),
    ));
    &[DType] => |value| value.to_vec().into();
    &[PartialShape] => |value| value.to_vec().into();
    &[Tensor] => |value| AttrValue::List(AttrList::Tensor(value.to_vec()));
    &[FuncRef] => |value| AttrValue::List(AttrList::Func(value.to_vec()));
}
