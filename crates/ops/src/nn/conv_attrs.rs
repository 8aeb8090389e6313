//! What all convolutions and poolings read from their attributes.

use tensorfleet_graph::Output;
use tensorfleet_graph::gradient::GradCtx;
use tensorfleet_kernel::{Attrs, NodeInfo};
use tensorfleet_math::conv::Padding;
use tensorfleet_status::{Result, Status, invalid_argument, unimplemented};
use tensorfleet_tensor::Shape;

/// Strides, dilations and padding of a two-dimensional window over NHWC images.
#[derive(Clone, Copy)]
pub(super) struct WindowAttrs {
    pub(super) stride: [usize; 2],
    pub(super) dilation: [usize; 2],
    pub(super) padding: Padding,
}

impl WindowAttrs {
    /// Reads and checks them. Images with channels first have no CPU kernels in TensorFlow either.
    pub(super) fn new(node: &NodeInfo) -> Result<WindowAttrs> {
        check_format(node)?;
        WindowAttrs::read(&node.attrs)
    }

    /// Reads them, whatever the format of the images.
    pub(super) fn read(attrs: &Attrs) -> Result<WindowAttrs> {
        let dilation = if attrs.get("dilations").is_some() {
            pair(attrs, "dilations")?
        } else {
            [1, 1]
        };
        Ok(WindowAttrs {
            stride: pair(attrs, "strides")?,
            dilation,
            padding: padding(attrs)?,
        })
    }
}

/// Fails for images that are not NHWC.
pub(super) fn check_format(node: &NodeInfo) -> Result<()> {
    let attrs = &node.attrs;
    if attrs.get("data_format").is_some() && attrs.str("data_format")? != "NHWC" {
        return Err(other_format(&node.op, attrs.str("data_format")?));
    }
    Ok(())
}

/// What each op says to images that are not NHWC.
fn other_format(op: &str, format: &str) -> Status {
    let kernel = match op {
        "Conv2DBackpropInput" => {
            return invalid_argument!("Conv2DCustomBackpropInputOp only supports NHWC.");
        }
        "Conv2DBackpropFilter" => {
            return invalid_argument!("Conv2DCustomBackpropFilterOp only supports NHWC.");
        }
        "MaxPoolV2" => {
            return invalid_argument!(
                "MaxPoolingV2Op only supports NHWC or NCHW_VECT_C. Got: {format}"
            );
        }
        "MaxPool" => "MaxPoolingOp",
        "MaxPoolGrad" | "MaxPoolGradV2" => "MaxPoolingGradOp",
        "MaxPoolGradGrad" | "MaxPoolGradGradV2" => "MaxPoolingGradGradOp",
        "AvgPool" => "AvgPoolingOp",
        "AvgPoolGrad" => "AvgPoolingGradOp",
        _ if op.contains("Depthwise") => {
            return unimplemented!(
                "Depthwise convolution on CPU is only supported for NHWC format"
            );
        }
        _ => {
            return unimplemented!(
                "The Conv2D op currently only supports the NHWC tensor format on the CPU. The op was given the format: {format}"
            );
        }
    };
    invalid_argument!("Default {kernel} only supports NHWC on device type CPU")
}

/// The two middle numbers of a list of four, the others being one.
pub(super) fn pair(attrs: &Attrs, name: &str) -> Result<[usize; 2]> {
    let values = attrs.ints(name)?;
    let [batch, height, width, channels] = *values else {
        return Err(invalid_argument!(
            "Sliding window {name} field must specify 4 dimensions, got {}",
            values.len()
        ));
    };
    if batch != 1 || channels != 1 {
        return Err(unimplemented!(
            "Current implementation does not yet support {name} in the batch and depth dimensions."
        ));
    }
    match (usize::try_from(height), usize::try_from(width)) {
        (Ok(height), Ok(width)) if height > 0 && width > 0 => Ok([height, width]),
        _ => Err(invalid_argument!("{name} must be positive, got {values:?}")),
    }
}

/// Of whichever kind the attribute names.
pub(super) fn padding(attrs: &Attrs) -> Result<Padding> {
    let explicit = if attrs.get("explicit_paddings").is_some() {
        attrs.ints("explicit_paddings")?
    } else {
        &[]
    };
    match attrs.str("padding")? {
        "EXPLICIT" => explicit_padding(explicit),
        _ if !explicit.is_empty() => Err(invalid_argument!(
            "explicit_paddings attribute must be empty if the padding attribute is not EXPLICIT"
        )),
        "SAME" => Ok(Padding::Same),
        _ => Ok(Padding::Valid),
    }
}

/// Rows and columns that are told one by one, before and behind each of four dimensions.
pub(super) fn explicit_padding(values: &[i64]) -> Result<Padding> {
    let sizes: Option<Vec<usize>> = values
        .iter()
        .map(|value| usize::try_from(*value).ok())
        .collect();
    match (values.len(), sizes.as_deref()) {
        (8, Some(&[0, 0, top, bottom, left, right, 0, 0])) => {
            Ok(Padding::Explicit([[top, bottom], [left, right]]))
        }
        (8, Some(_)) => Err(invalid_argument!(
            "Nonzero explicit padding in the batch or depth dimensions is not supported"
        )),
        (8, None) => Err(invalid_argument!(
            "All elements of explicit_paddings must be nonnegative, got {values:?}"
        )),
        (count, _) => Err(invalid_argument!(
            "explicit_paddings attribute must contain 8 values, but got: {count}"
        )),
    }
}

/// The four dimensions of images or filters.
pub(super) fn four(shape: &Shape, what: &str) -> Result<[usize; 4]> {
    if shape.rank() != 4 {
        return Err(invalid_argument!("{what} must be 4-dimensional: {shape}"));
    }
    Ok([shape.dim(0), shape.dim(1), shape.dim(2), shape.dim(3)])
}

/// A gradient node of this op, with these attributes taken over from the node it belongs to.
pub(crate) fn with_attrs(
    g: &mut GradCtx<'_>,
    op: &str,
    names: &[&'static str],
    inputs: &[Output],
) -> Result<Output> {
    let attrs = names
        .iter()
        .map(|name| Ok((*name, g.attr(name)?)))
        .collect::<Result<Vec<_>>>()?;
    let mut node = g.builder().op(op);
    for input in inputs {
        node = node.input(*input);
    }
    for (name, value) in attrs {
        node = node.attr(name, value);
    }
    node.output()
}
