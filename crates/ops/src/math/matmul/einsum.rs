//! `Einsum`: sums of products over named dimensions.
//!
//! TensorFlow: Einsum(inputs: N * T) -> output: T, attr equation, one or two inputs. Dimensions of two inputs are sorted into
//! batch, free and summed ones; diagonals are taken and single dimensions summed first, and a batch of matrix products does the
//! rest. Dimensions are only moved where the products cannot read them as they lie.

use std::borrow::Cow;
use std::collections::BTreeMap;

use smallvec::SmallVec;
use tensorfleet_graph::example::{ex_attrs, ex_err, ramp, x};
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::gemm;
use tensorfleet_math::movement::{View, copy_view, dense_strides, paste_view};
use tensorfleet_math::reduce::{self, Layout, Reduce, ReduceElement};
use tensorfleet_status::{Code, Result, invalid_argument};
use tensorfleet_tensor::{DType, Element, Shape, Tensor};

use super::batch::{Leading, Plan};
use super::einsum_grad::gradient;
use super::equation::{Equation, Label, Labels};
use crate::math::elementwise::{input_dtype, lengths, no_function, shape_of};
use crate::{by_complex, by_float};

pub(crate) static OP: OpDef = OpDef {
    name: "Einsum",
    inputs: &["inputs: N * T"],
    outputs: &["output: T"],
    attrs: &["equation: string", "N: int >= 1", "T: type"],
    gradient: Gradient::Rule(gradient),
    kernels: &[cpu(&[("T", super::single::TYPES)], build)],
    cost: Cost::Expensive,
    exactness: Exactness::Relative(1e-5),
    examples: &[
        ex_attrs(
            "matrix product",
            &[("equation", "'ij,jk->ik'")],
            &[ramp(&[2, 3], 1.0, 1.0), ramp(&[3, 2], 1.0, 1.0)],
            &[x(&[2, 2], &[22.0, 28.0, 49.0, 64.0])],
        ),
        ex_attrs(
            "with everything transposed",
            &[("equation", "'ji,kj->ki'")],
            &[ramp(&[3, 2], 1.0, 1.0), ramp(&[2, 3], 1.0, 1.0)],
            &[x(&[2, 2], &[22.0, 28.0, 49.0, 64.0])],
        ),
        ex_attrs(
            "transposition",
            &[("equation", "'ij->ji'")],
            &[ramp(&[2, 3], 1.0, 1.0)],
            &[x(&[3, 2], &[1.0, 4.0, 2.0, 5.0, 3.0, 6.0])],
        ),
        ex_attrs(
            "trace",
            &[("equation", "'ii->'")],
            &[ramp(&[3, 3], 1.0, 1.0)],
            &[x(&[], &[15.0])],
        ),
        ex_attrs(
            "diagonal matrix",
            &[("equation", "'i->ii'")],
            &[ramp(&[2], 1.0, 1.0)],
            &[x(&[2, 2], &[1.0, 0.0, 0.0, 2.0])],
        ),
        ex_attrs(
            "row sums",
            &[("equation", "'ij->i'")],
            &[ramp(&[2, 3], 1.0, 1.0)],
            &[x(&[2], &[6.0, 15.0])],
        ),
        ex_attrs(
            "outer product on a diagonal",
            &[("equation", "'i,j->jii'")],
            &[ramp(&[2], 1.0, 1.0), ramp(&[2], 1.0, 2.0)],
            &[x(&[2, 2, 2], &[1.0, 0.0, 0.0, 2.0, 3.0, 0.0, 0.0, 6.0])],
        ),
        ex_attrs(
            "sums of a single input",
            &[("equation", "'ij,k->i'")],
            &[ramp(&[2, 2], 1.0, 1.0), ramp(&[2], 1.0, 1.0)],
            &[x(&[2], &[9.0, 21.0])],
        ),
        ex_attrs(
            "batch of inner products",
            &[("equation", "'bi,bi->b'")],
            &[ramp(&[2, 3], 1.0, 1.0), ramp(&[2, 3], 1.0, 1.0)],
            &[x(&[2], &[14.0, 77.0])],
        ),
        ex_attrs(
            "broadcast batches",
            &[("equation", "'...ij,...jk->...ik'")],
            &[ramp(&[2, 1, 1, 2], 1.0, 1.0), ramp(&[2, 2, 1], 1.0, 1.0)],
            &[x(&[2, 2, 1, 1], &[5.0, 11.0, 11.0, 25.0])],
        ),
        ex_attrs(
            "an ellipsis on one side only",
            &[("equation", "'...i,i->...'")],
            &[ramp(&[2, 1, 2], 1.0, 1.0), ramp(&[2], 1.0, 1.0)],
            &[x(&[2, 1], &[5.0, 11.0])],
        ),
        ex_attrs(
            "scalars",
            &[("equation", "',->'")],
            &[x(&[], &[3.0]), x(&[], &[4.0])],
            &[x(&[], &[12.0])],
        ),
        ex_attrs(
            "nothing to sum",
            &[("equation", "'ij,jk->ik'")],
            &[x(&[2, 0], &[]), x(&[0, 2], &[])],
            &[x(&[2, 2], &[0.0])],
        ),
        ex_err(
            "sizes differ",
            &[("equation", "'ij,jk->ik'")],
            &[ramp(&[2, 3], 1.0, 1.0), ramp(&[4, 4], 1.0, 1.0)],
            Code::InvalidArgument,
            "Expected dimension 3 at axis 0 of the input shaped [4,4] but got dimension 4",
        ),
        ex_err(
            "another rank",
            &[("equation", "'i->i'")],
            &[ramp(&[2, 3], 1.0, 1.0)],
            Code::InvalidArgument,
            "Expected input 0 to have rank 1 but got: 2",
        ),
    ],
    ..OpDef::BLANK
};

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let equation = Equation::parse(node.attrs.str("equation")?, node.input_types.len())?;
    let dtype = input_dtype(node);
    match dtype {
        DType::I32 => build_of::<i32>(equation),
        DType::I64 => build_of::<i64>(equation),
        _ => by_float!(dtype, T => build_of::<T>(equation), else =>
            by_complex!(dtype, T => build_of::<T>(equation), else => Err(no_function("Einsum", dtype)))),
    }
}

/// What an element type must be able to do.
trait Summand: Element + gemm::Element + ReduceElement {}
impl<T: Element + gemm::Element + ReduceElement> Summand for T {}

fn build_of<T: Summand>(equation: Equation) -> Result<AnyKernel> {
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let terms = Terms::new(ctx, &equation)?;
        let out = match terms.inputs.as_slice() {
            [left, right] => pair::<T>(ctx, left, right, &terms.output)?,
            _ => {
                let is_kept = |label: &Label| terms.output.contains(label);
                let operand = Operand::<T>::new(ctx, 0, &terms.inputs[0], &is_kept)?;
                operand.finish(ctx, &terms.output)?
            }
        };
        ctx.set(0, out);
        Ok(())
    })
}

/// The labels of inputs and output for the ranks at hand.
struct Terms {
    inputs: SmallVec<[Labels; 2]>,
    output: Labels,
}

impl Terms {
    fn new(ctx: &KernelCtx<'_>, equation: &Equation) -> Result<Terms> {
        let mut sizes: BTreeMap<Label, usize> = BTreeMap::new();
        let mut inputs = SmallVec::new();
        for (index, subscript) in equation.inputs.iter().enumerate() {
            let shape = ctx.input(index)?.shape();
            let labels = subscript.of_rank(index, shape.rank())?;
            for (axis, label) in labels.iter().enumerate() {
                let size = shape.dim(axis);
                let known = sizes.entry(*label).or_insert(size);
                // Only the dimensions of an ellipsis are broadcast.
                if *label < 0 && *known == 1 {
                    *known = size;
                }
                if *known != size && (*label >= 0 || size != 1) {
                    return Err(invalid_argument!(
                        "Expected dimension {known} at axis {axis} of the input shaped {shape} but got dimension {size}"
                    ));
                }
            }
            inputs.push(labels);
        }
        let count = sizes.keys().filter(|label| **label < 0).count();
        Ok(Terms {
            inputs,
            output: equation.output.of_output(count)?,
        })
    }
}

/// The dimensions of a dense tensor with a label for each, none twice.
struct Axes {
    labels: Labels,
    dims: Lengths,
}

type Lengths = SmallVec<[usize; 8]>;

impl Axes {
    fn dim(&self, label: Label) -> usize {
        let at = self.labels.iter().position(|other| *other == label);
        at.map_or(1, |at| self.dims[at])
    }

    fn view(&self, order: &[Label]) -> View {
        view_of(&self.dims, &self.labels, order)
    }

    /// Those of these labels that are wanted.
    fn select(&self, is_wanted: &dyn Fn(&Label) -> bool) -> Labels {
        self.labels.iter().copied().filter(is_wanted).collect()
    }
}

/// A dense tensor with a label for each dimension.
struct Operand<'a, T: Clone> {
    values: Cow<'a, [T]>,
    axes: Axes,
}

impl<'a, T: Summand> Operand<'a, T> {
    /// An input with diagonals taken where a label stands twice, and summed over labels that are not kept.
    fn new(
        ctx: &'a KernelCtx<'_>,
        index: usize,
        labels: &[Label],
        is_kept: &dyn Fn(&Label) -> bool,
    ) -> Result<Operand<'a, T>> {
        let tensor = ctx.input(index)?;
        let values = tensor.slice::<T>()?;
        let (order, kept) = kept_first(labels, is_kept);
        let view = view_of(&lengths(tensor.shape()), labels, &order);
        let values = dense(ctx, Cow::Borrowed(values), &view);
        let (dims, summed) = view.dims.split_at(kept);
        let axes = Axes {
            labels: Labels::from_slice(&order[..kept]),
            dims: Lengths::from_slice(dims),
        };
        if summed.is_empty() {
            return Ok(Operand { values, axes });
        }
        let layout = Layout::new(&[dims.iter().product(), summed.iter().product()], &[1]);
        let mut sums = vec![T::default(); layout.out_len()];
        reduce::apply(ctx.par(), Reduce::Sum, &layout, &values, &mut sums);
        let values = Cow::Owned(sums);
        Ok(Operand { values, axes })
    }

    /// The values as matrices `[batch, rows, columns]`, or transposed where they lie so, and whether they do.
    fn matrices(
        &self,
        ctx: &KernelCtx<'_>,
        [batch, rows, columns]: [&[Label]; 3],
    ) -> (Cow<'_, [T]>, bool) {
        let view = self.axes.view(&[batch, rows, columns].concat());
        if !is_dense(&view) && is_dense(&self.axes.view(&[batch, columns, rows].concat())) {
            return (Cow::Borrowed(&*self.values), true);
        }
        (dense(ctx, Cow::Borrowed(&*self.values), &view), false)
    }

    /// The tensor with its dimensions in the order of the output; a label that stands twice there makes a diagonal.
    fn finish(&self, ctx: &KernelCtx<'_>, output: &[Label]) -> Result<Tensor> {
        let mut order = Labels::from_slice(output);
        dedup(&mut order);
        let view = self.axes.view(&order);
        let dims: Lengths = output.iter().map(|label| self.axes.dim(*label)).collect();
        let shape = shape_of(&dims)?;
        if order.len() == output.len() {
            let mut out = ctx.allocate(T::DTYPE, shape)?;
            copy_view(ctx.par(), &self.values, &view, out.slice_mut::<T>()?);
            return Ok(out);
        }
        let mut out = Tensor::zeros(T::DTYPE, shape)?;
        let values = dense(ctx, Cow::Borrowed(&*self.values), &view);
        let diagonal = view_of(&dims, output, &order);
        paste_view(&values, &diagonal, out.slice_mut::<T>()?);
        Ok(out)
    }
}

/// The labels of an input, the kept ones first, and how many these are.
fn kept_first(labels: &[Label], is_kept: &dyn Fn(&Label) -> bool) -> (Labels, usize) {
    let mut order: Labels = labels.iter().copied().filter(is_kept).collect();
    dedup(&mut order);
    let kept = order.len();
    order.extend(labels.iter().copied().filter(|label| !is_kept(label)));
    dedup(&mut order);
    (order, kept)
}

/// The sum of products of two inputs.
fn pair<T: Summand>(
    ctx: &KernelCtx<'_>,
    left: &[Label],
    right: &[Label],
    output: &[Label],
) -> Result<Tensor> {
    let with = |other: &[Label], label: &Label| other.contains(label) || output.contains(label);
    let x = Operand::<T>::new(ctx, 0, left, &|label| with(right, label))?;
    let y = Operand::<T>::new(ctx, 1, right, &|label| with(left, label))?;
    let product = Product::new(&x.axes, &y.axes, output);
    let (x_values, x_turned) = x.matrices(ctx, product.of_left());
    let (y_values, y_turned) = y.matrices(ctx, product.of_right());
    let plan = product.plan([x_turned, y_turned])?;
    let values = plan.run::<T>(ctx, &x_values, &y_values)?;
    let axes = product.axes();
    if axes.labels.as_slice() == output {
        return values.reshaped(shape_of(&axes.dims)?);
    }
    let values = Cow::Borrowed(values.slice::<T>()?);
    Operand { values, axes }.finish(ctx, output)
}

/// How two operands are multiplied as matrices: what their labels are there.
struct Product<'a> {
    x: &'a Axes,
    y: &'a Axes,
    batch: Labels,
    rows: Labels,
    summed: Labels,
    columns: Labels,
}

impl<'a> Product<'a> {
    /// Labels that only one operand has and the output has not are summed up before.
    fn new(x: &'a Axes, y: &'a Axes, output: &[Label]) -> Product<'a> {
        let of_x = |label: &Label| x.labels.contains(label);
        let of_y = |label: &Label| y.labels.contains(label);
        Product {
            x,
            y,
            batch: x.select(&|label| of_y(label) && output.contains(label)),
            rows: x.select(&|label| !of_y(label)),
            summed: x.select(&|label| of_y(label) && !output.contains(label)),
            columns: y.select(&|label| !of_x(label)),
        }
    }

    fn of_left(&self) -> [&[Label]; 3] {
        [&self.batch, &self.rows, &self.summed]
    }

    fn of_right(&self) -> [&[Label]; 3] {
        [&self.batch, &self.summed, &self.columns]
    }

    fn plan(&self, turned: [bool; 2]) -> Result<Plan> {
        let x = stacked(self.x, self.of_left(), turned[0])?;
        let y = stacked(self.y, self.of_right(), turned[1])?;
        Plan::new(&x, &y, turned, Leading::Broadcast)
    }

    /// The dimensions of the result.
    fn axes(&self) -> Axes {
        let labels: Labels = [&self.batch[..], &self.rows, &self.columns].concat().into();
        // A dimension of size 1 stretches to the other's; sizes other than these two are equal.
        let size = |label: &Label| match self.x.dim(*label) {
            1 => self.y.dim(*label),
            size => size,
        };
        let dims = labels.iter().map(size).collect();
        Axes { labels, dims }
    }
}

/// The shape of an operand as matrices.
fn stacked(of: &Axes, [batch, rows, columns]: [&[Label]; 3], turned: bool) -> Result<Shape> {
    let product = |labels: &[Label]| labels.iter().map(|label| of.dim(*label)).product();
    let mut dims: Lengths = batch.iter().map(|label| of.dim(*label)).collect();
    let (height, width): (usize, usize) = (product(rows), product(columns));
    dims.extend(if turned {
        [width, height]
    } else {
        [height, width]
    });
    shape_of(&dims)
}

/// Leaves the first of each label.
fn dedup(labels: &mut Labels) {
    let mut seen = Labels::new();
    labels.retain(|label| {
        let is_new = !seen.contains(label);
        seen.push(*label);
        is_new
    });
}

/// A dense tensor of shape `dims` whose dimensions are `labels`, seen with the dimensions `order`. A label that stands twice in
/// `labels` walks along the diagonal.
fn view_of(dims: &[usize], labels: &[Label], order: &[Label]) -> View {
    let strides = dense_strides(dims);
    let mut view = View {
        dims: Vec::with_capacity(order.len()),
        strides: Vec::with_capacity(order.len()),
        offset: 0,
    };
    for label in order {
        let axes = || (0..labels.len()).filter(|axis| labels[*axis] == *label);
        view.dims
            .push(axes().map(|axis| dims[axis]).next().unwrap_or(1));
        view.strides.push(axes().map(|axis| strides[axis]).sum());
    }
    view
}

fn is_dense(view: &View) -> bool {
    let dense = dense_strides(&view.dims);
    let strides = view.strides.iter().zip(&dense).zip(&view.dims);
    strides
        .into_iter()
        .all(|((have, want), dim)| have == want || *dim == 1)
}

/// The elements that a view shows, in order; copied only if they do not lie so.
fn dense<'a, T: Summand>(ctx: &KernelCtx<'_>, values: Cow<'a, [T]>, view: &View) -> Cow<'a, [T]> {
    if is_dense(view) && view.len() == values.len() {
        return values;
    }
    let mut copy = vec![T::default(); view.len()];
    copy_view(ctx.par(), &values, view, &mut copy);
    Cow::Owned(copy)
}
