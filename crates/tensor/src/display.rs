//! Short texts of tensors for errors, `Assert`, `Print` and the command line, laid out as TensorFlow does.

use std::fmt;

use half::{bf16, f16};
use num_complex::{Complex32, Complex64};

use crate::dtype::DType;
use crate::tensor::Tensor;

/// Writes at most `limit` elements, flat, separated by blanks, with `...` for the rest.
pub fn summarize(tensor: &Tensor, limit: usize, f: &mut dyn fmt::Write) -> fmt::Result {
    let count = tensor.elements();
    let shown = count.min(limit);
    if tensor.rank() > 0 {
        f.write_str("[")?;
    }
    for index in 0..shown {
        if index > 0 {
            f.write_str(" ")?;
        }
        write_element(tensor, index, f)?;
    }
    if shown < count {
        f.write_str("...")?;
    }
    if tensor.rank() > 0 {
        f.write_str("]")?;
    }
    Ok(())
}

/// Writes element `index` of the row-major order; nothing if it does not exist.
pub fn write_element(tensor: &Tensor, index: usize, f: &mut dyn fmt::Write) -> fmt::Result {
    macro_rules! show {
        ($type:ty) => {
            match tensor
                .slice::<$type>()
                .ok()
                .and_then(|values| values.get(index))
            {
                Some(value) => write!(f, "{value}"),
                None => Ok(()),
            }
        };
    }
    match tensor.dtype() {
        DType::F32 => show!(f32),
        DType::F64 => show!(f64),
        DType::F16 => show!(f16),
        DType::BF16 => show!(bf16),
        DType::I8 => show!(i8),
        DType::I16 => show!(i16),
        DType::I32 => show!(i32),
        DType::I64 => show!(i64),
        DType::U8 => show!(u8),
        DType::U16 => show!(u16),
        DType::U32 => show!(u32),
        DType::U64 => show!(u64),
        DType::Bool => match tensor
            .slice::<bool>()
            .ok()
            .and_then(|values| values.get(index))
        {
            Some(value) => write!(f, "{}", u8::from(*value)),
            None => Ok(()),
        },
        DType::C64 => match tensor
            .slice::<Complex32>()
            .ok()
            .and_then(|values| values.get(index))
        {
            Some(value) => write!(f, "({},{})", value.re, value.im),
            None => Ok(()),
        },
        DType::C128 => match tensor
            .slice::<Complex64>()
            .ok()
            .and_then(|values| values.get(index))
        {
            Some(value) => write!(f, "({},{})", value.re, value.im),
            None => Ok(()),
        },
        DType::String => match tensor
            .slice::<crate::TString>()
            .ok()
            .and_then(|values| values.get(index))
        {
            Some(value) => f.write_str(&String::from_utf8_lossy(value)),
            None => Ok(()),
        },
        other => write!(f, "<{other}>"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_few_elements_and_marks_the_rest() {
        let mut text = String::new();
        summarize(&Tensor::vector(&[1i32, 2, 3]), 2, &mut text).unwrap();
        assert_eq!(text, "[1 2...]");
        assert_eq!(format!("{:?}", Tensor::string("hi")), "Tensor<string[] hi>");
    }
}
