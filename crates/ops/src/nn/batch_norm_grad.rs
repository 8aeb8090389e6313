//! The gradient rules of `FusedBatchNorm`, of `FusedBatchNormGrad` and of their later versions.
//!
//! The second op is written anew out of small ops, whose own rules give its gradient, as TensorFlow does it. Nothing flows to the
//! statistics it is handed: in training it is a function of what they were computed from.

use tensorfleet_graph::Output;
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads, gradients};
use tensorfleet_status::{Result, unimplemented};
use tensorfleet_tensor::DType;

use crate::math::calculus::Calculus;

/// Of (x, scale, offset, mean, variance) -> (y, …).
pub(super) fn forward(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let training = g.attrs().bool("is_training")?;
    let (grad, x, scale) = (g.grad(0)?, g.input(0), g.input(1));
    let (mean, variance) = if training {
        (g.output(3), g.output(4))
    } else {
        (g.input(3), g.input(4))
    };
    let third = if g.num_outputs() > 5 {
        Some(g.output(5))
    } else {
        None
    };
    let op = match (third, g.attrs().get("U")) {
        (Some(_), _) => "FusedBatchNormGradV3",
        (None, Some(_)) => "FusedBatchNormGradV2",
        (None, None) => "FusedBatchNormGrad",
    };
    let (epsilon, format) = (g.attr("epsilon")?, g.attr("data_format")?);
    let mut node = g
        .builder()
        .op(op)
        .input(grad)
        .input(x)
        .input(scale)
        .input(mean)
        .input(variance);
    if let Some(third) = third {
        node = node.input(third);
    }
    let node = node
        .attr("epsilon", epsilon)
        .attr("data_format", format)
        .attr("is_training", training)
        .build()?;
    Ok(vec![
        Some(Grad::Dense(node.output(0))),
        Some(Grad::Dense(node.output(1))),
        Some(Grad::Dense(node.output(2))),
        None,
        None,
    ])
}

/// Of (y_backprop, x, scale, mean, variance, …) -> (x_backprop, scale_backprop, offset_backprop, …).
pub(super) fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    // Only what lies between these copies and the results is differentiated, not how x came to y_backprop.
    let mut copies = Vec::with_capacity(3);
    for index in 0..3 {
        copies.push(g.f("Identity", g.input(index))?);
    }
    let results = Channels::of(g)?.backward(g, copies[0], copies[1], copies[2])?;
    let (mut ys, mut grad_ys) = (Vec::new(), Vec::new());
    for (index, result) in results.into_iter().enumerate() {
        if let Some(grad) = g.grad_or_none(index) {
            ys.push(result);
            grad_ys.push(Some(grad));
        }
    }
    let mut grads = gradients(g.builder(), &ys, &copies, &grad_ys)?;
    grads.resize(g.num_inputs(), None);
    Ok(grads)
}

/// How to reduce to channels, and back.
struct Channels {
    axes: Output,
    /// A vector in this shape is one number for each channel.
    shape: Output,
}

impl Channels {
    fn of(g: &mut GradCtx<'_>) -> Result<Channels> {
        let format = g.attrs().str("data_format")?.to_owned();
        let (axes, shape): (&[i32], &[i32]) = match format.as_str() {
            "NHWC" => (&[0, 1, 2], &[-1]),
            "NCHW" => (&[0, 2, 3], &[-1, 1, 1]),
            "NDHWC" => (&[0, 1, 2, 3], &[-1]),
            "NCDHW" => (&[0, 2, 3, 4], &[-1, 1, 1, 1]),
            other => {
                return Err(unimplemented!(
                    "no gradient of batch normalisation of {other} data"
                ));
            }
        };
        let (axes, shape) = (g.ints(axes)?, g.ints(shape)?);
        Ok(Channels { axes, shape })
    }

    fn spread(&self, g: &mut GradCtx<'_>, vector: Output) -> Result<Output> {
        g.apply("Reshape", &[vector, self.shape])
    }

    fn mean(&self, g: &mut GradCtx<'_>, value: Output) -> Result<Output> {
        let mean = g.apply("Mean", &[value, self.axes])?;
        self.spread(g, mean)
    }

    /// The gradients for x, scale and offset.
    fn backward(
        &self,
        g: &mut GradCtx<'_>,
        y_backprop: Output,
        x: Output,
        scale: Output,
    ) -> Result<[Output; 3]> {
        let dtype = g.dtype(x);
        let (grad, x) = (g.cast(y_backprop, DType::F32)?, g.cast(x, DType::F32)?);
        let is_training = g.attrs().bool("is_training")?;
        let (mean, variance) = if is_training {
            let mean = self.mean(g, x)?;
            let centered = g.sub(x, mean)?;
            let square = g.f("Square", centered)?;
            (mean, self.mean(g, square)?)
        } else {
            (self.spread(g, g.input(3))?, self.spread(g, g.input(4))?)
        };
        let epsilon = f64::from(g.attrs().float("epsilon")?);
        let variance = g.plus(variance, epsilon)?;
        let factor = g.f("Rsqrt", variance)?;
        let centered = g.sub(x, mean)?;
        let products = g.mul(grad, centered)?;

        let mut inner = grad;
        if is_training {
            let mean_grad = self.mean(g, grad)?;
            let mean_product = self.mean(g, products)?;
            let slope = g.div(mean_product, variance)?;
            let along = g.mul(slope, centered)?;
            inner = g.sub(grad, mean_grad)?;
            inner = g.sub(inner, along)?;
        }
        let scale = self.spread(g, scale)?;
        let outer = g.mul(scale, factor)?;
        let to_x = g.mul(outer, inner)?;
        let normalised = g.mul(products, factor)?;
        let to_scale = g.apply("Sum", &[normalised, self.axes])?;
        let to_offset = g.apply("Sum", &[grad, self.axes])?;
        Ok([g.cast(to_x, dtype)?, to_scale, to_offset])
    }
}
