//! `GroupByWindowDataset`: elements of one kind are gathered, and a function makes a dataset of as many as another says.
//!
//! TensorFlow: GroupByWindowDataset(input_dataset: variant, key_func_other_arguments, reduce_func_other_arguments,
//! window_size_func_other_arguments) -> handle: variant, with key_func(element) -> key: int64, window_size_func(key) -> int64 and
//! reduce_func(key, window: variant) -> dataset: variant. At the end what is left of each key comes, in the order of the keys.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::{Poll, Waker, ready};

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, NodeInfo};
use tensorfleet_status::{Result, ensure, internal, invalid_argument};
use tensorfleet_tensor::{DType, Tensor};

use super::window;
use crate::dataset::call::{Call, Function, FunctionOf};
use crate::dataset::home::Place;
use crate::dataset::kernel::{self, DATASET};
use crate::dataset::value::{
    AtEnd, Dataset, Element, INFINITE, Iterate, Next, Spec, Stage, UNKNOWN,
};

const SCRIPT: Script = script(
    "by remainder",
    "fn rest(x: int64, by: int64) -> k {
         k = FloorMod(x, by)
     }
     fn two(k: int64) -> n {
         n = int64[]{2}
     }
     fn less(k: int64) -> n {
         n = Sub(k, k)
     }
     fn joined(k: int64, w: variant) -> d {
         ten = int64[]{10}
         keep = bool[]{false}
         d = BatchDatasetV2(w, ten, keep) {output_types=[DT_INT64], output_shapes=[[?]]}
     }
     fn number(k: int64, w: variant) -> k {
     }
     zero = int64[]{0}
     one = int64[]{1}
     two = int64[]{2}
     three = int64[]{3}
     ten = int64[]{10}
     seven = int64[]{7}
     numbers = RangeDataset(zero, seven, one) {output_types=[DT_INT64], output_shapes=[[]]}
     a = GroupByWindowDataset(numbers, [three], [], []) {key_func=rest, reduce_func=joined, window_size_func=two, output_types=[DT_INT64], output_shapes=[[?]]}
     b = GroupByWindowDataset(numbers, [three], [], []) {key_func=rest, reduce_func=joined, window_size_func=less, output_types=[DT_INT64], output_shapes=[[?]]}
     c = GroupByWindowDataset(numbers, [three], [], []) {key_func=rest, reduce_func=number, window_size_func=two, output_types=[DT_INT64], output_shapes=[[?]]}
     n = DatasetCardinality(a)
     i = IteratorV2() {output_types=[DT_INT64], output_shapes=[[?]], shared_name='', container=''}
     make_i = MakeIterator(a, i)
     next_i = IteratorGetNext(i) {output_types=[DT_INT64], output_shapes=[[?]]}
     j = IteratorV2() {output_types=[DT_INT64], output_shapes=[[?]], shared_name='', container=''}
     make_j = MakeIterator(b, j)
     next_j = IteratorGetNext(j) {output_types=[DT_INT64], output_shapes=[[?]]}
     k = IteratorV2() {output_types=[DT_INT64], output_shapes=[[?]], shared_name='', container=''}
     make_k = MakeIterator(c, k)
     next_k = IteratorGetNext(k) {output_types=[DT_INT64], output_shapes=[[?]]}",
    &[
        "run make_i, make_j, make_k",
        "fetch next_i => int64[2]{0, 3}",
        "fetch next_i => int64[2]{1, 4}",
        "fetch next_i => int64[2]{2, 5}",
        "fetch next_i => int64[1]{6}",
        "fetch next_i fails OUT_OF_RANGE End of sequence",
        "fetch next_j fails INVALID_ARGUMENT Window size must be greater than zero, but got 0.",
        "fetch next_k fails INVALID_ARGUMENT `reduce_func` must return a single scalar of dtype DT_VARIANT.",
        "fetch n => int64[]{-2}",
    ],
);

pub(crate) static OP: OpDef = OpDef {
    name: "GroupByWindowDataset",
    inputs: &[
        "input_dataset: variant",
        "key_func_other_arguments: Tkey_func_other_arguments",
        "reduce_func_other_arguments: Treduce_func_other_arguments",
        "window_size_func_other_arguments: Twindow_size_func_other_arguments",
    ],
    attrs: &[
        "key_func: func",
        "reduce_func: func",
        "window_size_func: func",
        "Tkey_func_other_arguments: list(type) >= 0",
        "Treduce_func_other_arguments: list(type) >= 0",
        "Twindow_size_func_other_arguments: list(type) >= 0",
        "output_types: list(type) >= 1",
        "output_shapes: list(shape) >= 1",
        "metadata: string = ''",
    ],
    kernels: &[cpu(&[], build)],
    scripts: &[SCRIPT],
    ..DATASET
};

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let key = FunctionOf::attrs(node, "key_func", "Tkey_func_other_arguments")?;
    let reduce = FunctionOf::attrs(node, "reduce_func", "Treduce_func_other_arguments")?;
    let size = FunctionOf::attrs(
        node,
        "window_size_func",
        "Twindow_size_func_other_arguments",
    )?;
    let name = node.attrs.func("reduce_func")?.name.clone();
    kernel::build(node, move |ctx| {
        let (reduces, sizes) = (key.end(1), reduce.end(key.end(1)));
        Ok(Group {
            input: [Dataset::input(ctx, 0)?],
            functions: Functions {
                key: key.read(ctx, 1)?,
                reduce: reduce.read(ctx, reduces)?,
                size: size.read(ctx, sizes)?,
                reduce_name: name.clone(),
            },
        })
    })
}

#[derive(Clone)]
struct Functions {
    key: Function,
    reduce: Function,
    size: Function,
    reduce_name: Arc<str>,
}

struct Group {
    input: [Dataset; 1],
    functions: Functions,
}

impl Stage for Group {
    fn iterate(&self, place: &Place) -> Result<Box<dyn Iterate>> {
        Ok(Box::new(Grouping {
            input: self.input[0].iterate(place)?,
            spec: self.input[0].spec().clone(),
            functions: self.functions.clone(),
            place: place.clone(),
            ended: false,
            sizes: BTreeMap::new(),
            groups: BTreeMap::new(),
            doing: Doing::Asking,
        }))
    }

    fn cardinality(&self) -> i64 {
        match self.input[0].cardinality() {
            INFINITE => INFINITE,
            _ => UNKNOWN,
        }
    }

    fn inputs(&self) -> &[Dataset] {
        &self.input
    }
}

struct Grouping {
    input: Box<dyn Iterate>,
    spec: Arc<Spec>,
    functions: Functions,
    place: Place,
    ended: bool,
    sizes: BTreeMap<i64, usize>,
    groups: BTreeMap<i64, Vec<Element>>,
    doing: Doing,
}

/// What is under way.
enum Doing {
    /// The next element.
    Asking,
    /// Which key this element has.
    Key(Element, Call),
    /// How many elements of this key are one window.
    Size(Element, i64, Call),
    /// What is made of a window.
    Reduce(Call),
    /// The elements of what was made.
    Giving(Box<dyn Iterate>),
}

/// The one int64 that a function returned.
fn number(results: &[Tensor], what: &str) -> Result<i64> {
    match results {
        [one] if one.dtype() == DType::I64 && one.elements() == 1 => one.to_scalar::<i64>(),
        _ => Err(invalid_argument!("`{what}` must return a scalar int64.")),
    }
}

fn window_size(results: &[Tensor]) -> Result<usize> {
    let size = number(results, "window_size_func")?;
    ensure!(
        size > 0,
        invalid_argument,
        "Window size must be greater than zero, but got {size}."
    );
    Ok(size as usize)
}

impl Grouping {
    /// Adds an element to its group; a full one becomes a window.
    fn add(&mut self, key: i64, element: Element) -> Result<()> {
        let size = self.sizes.get(&key).copied().unwrap_or(1);
        let group = self.groups.entry(key).or_default();
        group.push(element);
        self.doing = Doing::Asking;
        if group.len() >= size {
            self.flush(key)?;
        }
        Ok(())
    }

    fn flush(&mut self, key: i64) -> Result<()> {
        let elements = self.groups.remove(&key).unwrap_or_default();
        let window = window::of(elements, self.spec.clone())?;
        let args = vec![Tensor::scalar(key), window.to_tensor()];
        self.doing = Doing::Reduce(self.functions.reduce.call(&self.place.home, args));
        Ok(())
    }

    fn opened(&self, results: Result<Vec<Tensor>>) -> Result<Box<dyn Iterate>> {
        let results = results.map_err(|status| {
            internal!(
                "Got error code {} and message: {{\n{}\n}} \nfrom running user-defined function {}: ",
                status.code().name(),
                status.message(),
                self.functions.reduce_name
            )
        })?;
        match results.as_slice() {
            [one] if one.dtype() == DType::Variant && one.rank() == 0 => {
                Dataset::of(one)?.iterate(&self.place)
            }
            _ => Err(invalid_argument!(
                "`reduce_func` must return a single scalar of dtype DT_VARIANT."
            )),
        }
    }

    /// Goes on with what is under way; an element if there is one.
    fn advance(&mut self, waker: &Waker) -> Poll<Result<Option<Element>>> {
        match &mut self.doing {
            Doing::Asking if self.ended => {
                if let Some(key) = self.groups.keys().next().copied() {
                    self.flush(key)?;
                }
            }
            Doing::Asking => match ready!(self.input.next(waker))? {
                Some(element) => {
                    let home = &self.place.home;
                    let call = self.functions.key.call(home, element.clone());
                    self.doing = Doing::Key(element, call);
                }
                None => {
                    self.ended = true;
                    self.input = Box::new(AtEnd);
                }
            },
            Doing::Key(element, call) => {
                let results = ready!(call.poll(waker));
                let element = std::mem::take(element);
                self.doing = Doing::Asking;
                let key = number(&results?, "key_func")?;
                if self.sizes.contains_key(&key) {
                    self.add(key, element)?;
                } else {
                    let args = vec![Tensor::scalar(key)];
                    let call = self.functions.size.call(&self.place.home, args);
                    self.doing = Doing::Size(element, key, call);
                }
            }
            Doing::Size(element, key, call) => {
                let results = ready!(call.poll(waker));
                let (element, key) = (std::mem::take(element), *key);
                self.doing = Doing::Asking;
                let size = window_size(&results?)?;
                self.sizes.insert(key, size);
                self.add(key, element)?;
            }
            Doing::Reduce(call) => {
                let results = ready!(call.poll(waker));
                self.doing = Doing::Asking;
                self.doing = Doing::Giving(self.opened(results)?);
            }
            Doing::Giving(current) => match ready!(current.next(waker))? {
                Some(element) => return Poll::Ready(Ok(Some(element))),
                None => self.doing = Doing::Asking,
            },
        }
        Poll::Ready(Ok(None))
    }

    fn is_over(&self) -> bool {
        self.ended && self.groups.is_empty() && matches!(self.doing, Doing::Asking)
    }
}

impl Iterate for Grouping {
    fn next(&mut self, waker: &Waker) -> Next {
        while !self.is_over() {
            let next = ready!(self.advance(waker))?;
            if next.is_some() {
                return Poll::Ready(Ok(next));
            }
        }
        Poll::Ready(Ok(None))
    }
}
