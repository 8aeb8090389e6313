//! Datasets whose elements are those of another: hints to TensorFlow's optimizer and how it is told what the program expects.
//!
//! TensorFlow: ModelDataset, OptimizeDataset, OptionsDataset, FinalizeDataset and AssertNextDataset(input_dataset: variant, …) ->
//! handle: variant; so are the limits on threads, of which we have those of the server. AssertCardinalityDataset counts.
//! WrapDatasetVariant and UnwrapDatasetVariant hand a dataset through.

use std::task::{Poll, Waker, ready};

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, failed_precondition};

use crate::dataset::home::Place;
use crate::dataset::kernel::{self, DATASET, TYPES};
use crate::dataset::value::{Dataset, INFINITE, Iterate, Next, Stage};

const SCRIPT: Script = script(
    "all of them",
    "zero = int64[]{0}
     one = int64[]{1}
     two = int64[]{2}
     three = int64[]{3}
     ten = int64[]{10}
     numbers = RangeDataset(zero, three, one) {output_types=[DT_INT64], output_shapes=[[]]}
     no = string[0]{}
     range = string[1]{Range}
     o = OptionsDataset(numbers) {serialized_options='', output_types=[DT_INT64], output_shapes=[[]]}
     f = FinalizeDataset(o) {output_types=[DT_INT64], output_shapes=[[]]}
     m = ModelDataset(f) {output_types=[DT_INT64], output_shapes=[[]]}
     p = OptimizeDataset(m, no) {output_types=[DT_INT64], output_shapes=[[]]}
     q = OptimizeDatasetV2(p, no, no, no) {output_types=[DT_INT64], output_shapes=[[]]}
     x = MaxIntraOpParallelismDataset(q, two) {output_types=[DT_INT64], output_shapes=[[]]}
     t = PrivateThreadPoolDataset(x, two) {output_types=[DT_INT64], output_shapes=[[]]}
     w = WrapDatasetVariant(t)
     u = UnwrapDatasetVariant(w)
     a = AssertCardinalityDataset(u, three) {output_types=[DT_INT64], output_shapes=[[]]}
     b = AssertCardinalityDataset(numbers, two) {output_types=[DT_INT64], output_shapes=[[]]}
     c = AssertCardinalityDataset(numbers, ten) {output_types=[DT_INT64], output_shapes=[[]]}
     next = AssertNextDataset(numbers, no) {output_types=[DT_INT64], output_shapes=[[]]}
     plain = NonSerializableDataset(next) {output_types=[DT_INT64], output_shapes=[[]]}
     n = DatasetCardinality(plain)
     i = IteratorV2() {output_types=[DT_INT64], output_shapes=[[]], shared_name='', container=''}
     make_i = MakeIterator(a, i)
     next_i = IteratorGetNext(i) {output_types=[DT_INT64], output_shapes=[[]]}
     j = IteratorV2() {output_types=[DT_INT64], output_shapes=[[]], shared_name='', container=''}
     make_j = MakeIterator(b, j)
     next_j = IteratorGetNext(j) {output_types=[DT_INT64], output_shapes=[[]]}
     k = IteratorV2() {output_types=[DT_INT64], output_shapes=[[]], shared_name='', container=''}
     make_k = MakeIterator(c, k)
     next_k = IteratorGetNext(k) {output_types=[DT_INT64], output_shapes=[[]]}",
    &[
        "run make_i, make_j, make_k",
        "fetch next_i => int64[]{0}",
        "fetch next_i => int64[]{1}",
        "fetch next_i => int64[]{2}",
        "fetch next_i fails OUT_OF_RANGE End of sequence",
        "fetch next_j => int64[]{0}",
        "fetch next_j => int64[]{1}",
        "fetch next_j fails FAILED_PRECONDITION Input dataset was expected to contain 2 elements but contained at least 3 elements.",
        "fetch next_k => int64[]{0}",
        "fetch next_k => int64[]{1}",
        "fetch next_k => int64[]{2}",
        "fetch next_k fails FAILED_PRECONDITION Input dataset was expected to contain 10 elements but contained only 3 elements.",
        "fetch n => int64[]{3}",
    ],
);

const PASS: OpDef = OpDef {
    inputs: &["input_dataset: variant"],
    kernels: &[cpu(&[], build)],
    scripts: &[SCRIPT],
    ..DATASET
};

pub(crate) static OPS: [OpDef; 12] = [
    OpDef {
        name: "AssertCardinalityDataset",
        inputs: &["input_dataset: variant", "cardinality: int64"],
        attrs: TYPES,
        kernels: &[cpu(&[], build_counted)],
        ..PASS
    },
    OpDef {
        name: "AssertNextDataset",
        inputs: &["input_dataset: variant", "transformations: string"],
        attrs: TYPES,
        ..PASS
    },
    OpDef {
        name: "FinalizeDataset",
        attrs: &[
            "has_captured_ref: bool = false",
            "output_types: list(type) >= 1",
            "output_shapes: list(shape) >= 1",
        ],
        ..PASS
    },
    OpDef {
        name: "MaxIntraOpParallelismDataset",
        inputs: &["input_dataset: variant", "max_intra_op_parallelism: int64"],
        attrs: TYPES,
        ..PASS
    },
    OpDef {
        name: "ModelDataset",
        attrs: &[
            "algorithm: int = 0",
            "cpu_budget: int = 0",
            "ram_budget: int = 0",
            "output_types: list(type) >= 1",
            "output_shapes: list(shape) >= 1",
        ],
        ..PASS
    },
    OpDef {
        name: "NonSerializableDataset",
        attrs: TYPES,
        ..PASS
    },
    OpDef {
        name: "OptimizeDataset",
        inputs: &["input_dataset: variant", "optimizations: string"],
        attrs: OPTIMIZE,
        ..PASS
    },
    OpDef {
        name: "OptimizeDatasetV2",
        inputs: &[
            "input_dataset: variant",
            "optimizations_enabled: string",
            "optimizations_disabled: string",
            "optimizations_default: string",
        ],
        attrs: OPTIMIZE,
        ..PASS
    },
    OpDef {
        name: "OptionsDataset",
        attrs: &[
            "serialized_options: string",
            "output_types: list(type) >= 1",
            "output_shapes: list(shape) >= 1",
            "metadata: string = ''",
        ],
        ..PASS
    },
    OpDef {
        name: "PrivateThreadPoolDataset",
        inputs: &["input_dataset: variant", "num_threads: int64"],
        attrs: TYPES,
        ..PASS
    },
    OpDef {
        name: "UnwrapDatasetVariant",
        inputs: &["input_handle: variant"],
        outputs: &["output_handle: variant"],
        kernels: &[cpu(&[], build_same)],
        scripts: &[SCRIPT],
        ..DATASET
    },
    OpDef {
        name: "WrapDatasetVariant",
        inputs: &["input_handle: variant"],
        outputs: &["output_handle: variant"],
        kernels: &[cpu(&[], build_same)],
        scripts: &[SCRIPT],
        ..DATASET
    },
];

const OPTIMIZE: &[&str] = &[
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "optimization_configs: list(string) = []",
];

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    kernel::build(node, |ctx| Ok(Pass([Dataset::input(ctx, 0)?])))
}

fn build_same(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        Dataset::input(ctx, 0)?;
        let dataset = ctx.take(0)?;
        ctx.set(0, dataset);
        Ok(())
    })
}

fn build_counted(node: &NodeInfo) -> Result<AnyKernel> {
    kernel::build(node, |ctx| {
        Ok(Counted {
            input: [Dataset::input(ctx, 0)?],
            count: kernel::scalar(ctx, 1, "cardinality")?,
        })
    })
}

struct Pass([Dataset; 1]);

impl Stage for Pass {
    fn iterate(&self, place: &Place) -> Result<Box<dyn Iterate>> {
        self.0[0].iterate(place)
    }

    fn cardinality(&self) -> i64 {
        self.0[0].cardinality()
    }

    fn inputs(&self) -> &[Dataset] {
        &self.0
    }
}

struct Counted {
    input: [Dataset; 1],
    count: i64,
}

impl Stage for Counted {
    fn iterate(&self, place: &Place) -> Result<Box<dyn Iterate>> {
        Ok(Box::new(Counting {
            input: self.input[0].iterate(place)?,
            count: self.count,
            seen: 0,
        }))
    }

    fn cardinality(&self) -> i64 {
        self.count
    }

    fn inputs(&self) -> &[Dataset] {
        &self.input
    }
}

struct Counting {
    input: Box<dyn Iterate>,
    count: i64,
    seen: i64,
}

impl Iterate for Counting {
    fn next(&mut self, waker: &Waker) -> Next {
        let next = ready!(self.input.next(waker))?;
        if next.is_some() {
            self.seen += 1;
        }
        let elements = |count: i64| match count {
            INFINITE => "an infinite number of elements".to_owned(),
            1 => "1 element".to_owned(),
            count => format!("{count} elements"),
        };
        if next.is_none() && self.seen != self.count {
            return Poll::Ready(Err(failed_precondition!(
                "Input dataset was expected to contain {} but contained only {}.",
                elements(self.count),
                elements(self.seen)
            )));
        }
        if next.is_some() && self.count != INFINITE && self.seen > self.count {
            return Poll::Ready(Err(failed_precondition!(
                "Input dataset was expected to contain {} but contained at least {}.",
                elements(self.count),
                elements(self.seen)
            )));
        }
        Poll::Ready(Ok(next))
    }
}
