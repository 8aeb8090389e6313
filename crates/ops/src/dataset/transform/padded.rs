//! `PaddedBatchDataset`, `PaddedBatchDatasetV2`: some elements as one, padded where their shapes differ.
//!
//! TensorFlow: PaddedBatchDataset(input_dataset: variant, batch_size: int64, padded_shapes: N * int64, padding_values:
//! Toutput_types) -> handle: variant, V2 with drop_remainder: bool. A dimension of -1 is as large as the largest.

use std::sync::Arc;

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::par::Par;
use tensorfleet_status::{Result, data_loss, ensure, invalid_argument};
use tensorfleet_tensor::{Dims, Shape, Tensor};

use super::batch::{Gathering, batches};
use crate::array::moves;
use crate::data_flow::queue::corner;
use crate::dataset::home::Place;
use crate::dataset::kernel::{self, DATASET};
use crate::dataset::value::{Dataset, Element, Iterate, Stage};

const SCRIPT: Script = script(
    "rows of several lengths",
    "fn shaped(x: int64) -> y, s {
         one = int64[1]{1}
         dims = Mul(x, one)
         y = Fill(dims, x)
         s = AsString(x)
     }
     zero = int64[]{0}
     one = int64[]{1}
     two = int64[]{2}
     three = int64[]{3}
     ten = int64[]{10}
     numbers = RangeDataset(zero, three, one) {output_types=[DT_INT64], output_shapes=[[]]}
     drop = bool[]{true}
     any = int64[1]{-1}
     at_least = int64[1]{3}
     none = int64[0]{}
     small = int64[1]{1}
     pad = int64[]{9}
     text = string[]{-}
     uneven = MapDataset(numbers, []) {f=shaped, output_types=[DT_INT64, DT_STRING], output_shapes=[[?], []]}
     a = PaddedBatchDataset(uneven, three, [any, none], [pad, text]) {output_shapes=[[?,?], [?]]}
     b = PaddedBatchDatasetV2(uneven, two, [at_least, none], [pad, text], drop) {output_shapes=[[2,3], [2]]}
     c = PaddedBatchDatasetV2(uneven, three, [small, none], [pad, text], drop) {output_shapes=[[?,1], [?]]}
     d = PaddedBatchDatasetV2(uneven, three, [none, none], [pad, text], drop) {output_shapes=[[?], [?]]}
     wrong = PaddedBatchDataset(uneven, three, [any, none], [text, text]) {output_shapes=[[?,?], [?]]}
     count_wrong = DatasetCardinality(wrong)
     whole = DatasetToSingleElement(a) {output_types=[DT_INT64, DT_STRING], output_shapes=[[?,?], [?]]}
     j = IteratorV2() {output_types=[DT_INT64, DT_STRING], output_shapes=[[2,3], [2]], shared_name='', container=''}
     make_j = MakeIterator(b, j)
     next_j = IteratorGetNext(j) {output_types=[DT_INT64, DT_STRING], output_shapes=[[2,3], [2]]}
     k = IteratorV2() {output_types=[DT_INT64, DT_STRING], output_shapes=[[?,1], [?]], shared_name='', container=''}
     make_k = MakeIterator(c, k)
     next_k = IteratorGetNext(k) {output_types=[DT_INT64, DT_STRING], output_shapes=[[?,1], [?]]}
     l = IteratorV2() {output_types=[DT_INT64, DT_STRING], output_shapes=[[?], [?]], shared_name='', container=''}
     make_l = MakeIterator(d, l)
     next_l = IteratorGetNext(l) {output_types=[DT_INT64, DT_STRING], output_shapes=[[?], [?]]}",
    &[
        "run make_j",
        "fetch whole:0, whole:1 => int64[3,2]{9, 9, 1, 9, 2, 2}; string[3]{0, 1, 2}",
        "fetch next_j:0, next_j:1 => int64[2,3]{9, 9, 9, 1, 9, 9}; string[2]{0, 1}",
        "fetch next_j:0 fails OUT_OF_RANGE End of sequence",
        "run make_k",
        "fetch next_k:0 fails DATA_LOSS Attempted to pad to a smaller size than the input element.",
        "fetch count_wrong fails INVALID_ARGUMENT Mismatched type between padding value 0 and input dataset's component 0: string vs. int64",
        "run make_l",
        "fetch next_l:0 fails INVALID_ARGUMENT All elements in a batch must have the same rank as the padded shape",
    ],
);

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "PaddedBatchDataset",
        inputs: &[
            "input_dataset: variant",
            "batch_size: int64",
            "padded_shapes: N * int64",
            "padding_values: Toutput_types",
        ],
        attrs: &[
            "Toutput_types: list(type) >= 1",
            "output_shapes: list(shape) >= 1",
            "N: int >= 1",
            "metadata: string = ''",
        ],
        kernels: &[cpu(&[], |node| build(node, false))],
        scripts: &[SCRIPT],
        ..DATASET
    },
    OpDef {
        name: "PaddedBatchDatasetV2",
        inputs: &[
            "input_dataset: variant",
            "batch_size: int64",
            "padded_shapes: N * int64",
            "padding_values: Toutput_types",
            "drop_remainder: bool",
        ],
        attrs: &[
            "parallel_copy: bool = false",
            "Toutput_types: list(type) >= 1",
            "output_shapes: list(shape) >= 1",
            "N: int >= 1",
            "metadata: string = ''",
        ],
        kernels: &[cpu(&[], |node| build(node, true))],
        scripts: &[SCRIPT],
        ..DATASET
    },
];

fn build(node: &NodeInfo, may_drop: bool) -> Result<AnyKernel> {
    let shapes = usize::try_from(node.attrs.int("N")?)
        .map_err(|_| invalid_argument!("N must not be negative"))?;
    let values = node.attrs.port_types("Toutput_types")?.len();
    kernel::build(node, move |ctx| {
        let input = Dataset::input(ctx, 0)?;
        let components = input.spec().types.len();
        let size = super::batch::size(ctx, 1)?;
        ensure!(
            shapes == components,
            invalid_argument,
            "Number of padded shapes ({shapes}) must match the number of components in the input dataset's elements \
             ({components})"
        );
        ensure!(
            values == components,
            invalid_argument,
            "Number of padding values ({values}) must match the number of components in the input dataset's elements \
             ({components})"
        );
        let paddings = (0..components).map(|index| padding(ctx, &input, index, 2 + shapes));
        let paddings: Result<Vec<Padding>> = paddings.collect();
        let drop_remainder = match may_drop {
            true => kernel::scalar(ctx, 2 + shapes + values, "drop_remainder")?,
            false => false,
        };
        Ok(Padded {
            input: [input],
            size,
            drop_remainder,
            paddings: Arc::new(paddings?),
        })
    })
}

/// How component `index` is padded; padding values are the inputs from `values` on.
fn padding(ctx: &KernelCtx<'_>, input: &Dataset, index: usize, values: usize) -> Result<Padding> {
    let shape = ctx.input(2 + index)?;
    ensure!(
        shape.rank() == 1,
        invalid_argument,
        "All padded shapes must be vectors"
    );
    let value = ctx.input(values + index)?;
    ensure!(
        value.rank() == 0,
        invalid_argument,
        "All padding values must be scalars"
    );
    let dtype = input.spec().types[index];
    ensure!(
        value.dtype() == dtype,
        invalid_argument,
        "Mismatched type between padding value {index} and input dataset's component {index}: {} vs. {dtype}",
        value.dtype()
    );
    let dims: Dims = shape.slice::<i64>()?.iter().copied().collect();
    if let Some(dim) = dims.iter().find(|dim| **dim < -1) {
        return Err(invalid_argument!("Dimension {dim} must be >= -1"));
    }
    Ok(Padding {
        dims,
        value: value.clone(),
    })
}

struct Padding {
    dims: Dims,
    value: Tensor,
}

struct Padded {
    input: [Dataset; 1],
    size: usize,
    drop_remainder: bool,
    paddings: Arc<Vec<Padding>>,
}

impl Stage for Padded {
    fn iterate(&self, place: &Place) -> Result<Box<dyn Iterate>> {
        let (pool, paddings) = (place.home.pool.clone(), self.paddings.clone());
        Ok(Box::new(Gathering {
            input: self.input[0].iterate(place)?,
            size: self.size,
            drop_remainder: self.drop_remainder,
            gathered: Vec::new(),
            join: move |elements: Vec<Element>| {
                let components = paddings.iter().enumerate();
                components
                    .map(|(index, padding)| padding.join(&*pool, &elements, index))
                    .collect()
            },
        }))
    }

    fn cardinality(&self) -> i64 {
        batches(self.input[0].cardinality(), self.size, self.drop_remainder)
    }

    fn inputs(&self) -> &[Dataset] {
        &self.input
    }
}

impl Padding {
    /// Component `index` of all elements, padded.
    fn join(&self, par: &dyn Par, elements: &[Element], index: usize) -> Result<Tensor> {
        let parts = elements.iter().map(|element| {
            let part = element.get(index);
            part.ok_or_else(|| invalid_argument!("an element of a batch has no component {index}"))
        });
        let parts: Vec<&Tensor> = parts.collect::<Result<_>>()?;
        let mut dims: Dims = self.dims.iter().map(|dim| (*dim).max(0)).collect();
        for part in &parts {
            ensure!(
                part.dtype() == self.value.dtype(),
                invalid_argument,
                "component {index} of an element has type {} instead of {}",
                part.dtype(),
                self.value.dtype()
            );
            ensure!(
                part.rank() == dims.len(),
                invalid_argument,
                "All elements in a batch must have the same rank as the padded shape for component{index}: expected rank {} \
                 but got element with rank {}",
                dims.len(),
                part.rank()
            );
            for ((dim, wanted), found) in dims.iter_mut().zip(&self.dims).zip(part.shape().iter()) {
                if *wanted == -1 {
                    *dim = (*dim).max(*found);
                } else if *found > *dim {
                    return Err(data_loss!(
                        "Attempted to pad to a smaller size than the input element."
                    ));
                }
            }
        }
        let element = Shape::new(&dims)?;
        let shape = Shape::new(&[parts.len() as i64])?.concat(&element)?;
        if shape.elements() == 0 {
            return Tensor::new(self.value.dtype(), shape);
        }
        if parts.iter().all(|part| *part.shape() == element) {
            let parts: Vec<_> = parts.iter().map(|part| (*part, part.elements())).collect();
            return moves::concat(par, self.value.dtype(), &parts, shape);
        }
        let mut out = moves::fill(par, &self.value, shape)?;
        for (row, part) in parts.iter().enumerate() {
            if !part.is_empty() {
                let view = corner(out.shape(), row, part.shape());
                moves::paste_view(part, &view, &mut out)?;
            }
        }
        Ok(out)
    }
}
