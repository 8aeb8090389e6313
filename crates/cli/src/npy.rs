//! NumPy's .npy files, format 1.0 to 3.0: little-endian C-order arrays of plain types.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use tensorfleet_tensor::{Bytes, DType, Shape, Tensor};

const MAGIC: &[u8] = b"\x93NUMPY";

/// NumPy's type codes.
const TYPES: [(DType, &str); 14] = [
    (DType::F16, "f2"),
    (DType::F32, "f4"),
    (DType::F64, "f8"),
    (DType::I8, "i1"),
    (DType::I16, "i2"),
    (DType::I32, "i4"),
    (DType::I64, "i8"),
    (DType::U8, "u1"),
    (DType::U16, "u2"),
    (DType::U32, "u4"),
    (DType::U64, "u8"),
    (DType::Bool, "b1"),
    (DType::C64, "c8"),
    (DType::C128, "c16"),
];

/// Reads an array.
pub(crate) fn read(path: &Path) -> Result<Tensor> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    parse(bytes.into()).with_context(|| path.display().to_string())
}

fn parse(mut bytes: Bytes) -> Result<Tensor> {
    ensure!(
        bytes.starts_with(MAGIC) && bytes.len() > 10,
        "this is no .npy file"
    );
    let (length_bytes, start) = if bytes[6] == 1 { (2, 10) } else { (4, 12) };
    ensure!(bytes.len() >= start, "the header is cut off");
    let length = bytes[8..8 + length_bytes]
        .iter()
        .rev()
        .fold(0usize, |value, byte| value << 8 | usize::from(*byte));
    ensure!(bytes.len() - start >= length, "the header is cut off");
    let header = String::from_utf8(bytes[start..start + length].to_vec())
        .context("the header is not text")?;
    let data = bytes.split_off(start + length);

    let descr = field(&header, "descr")
        .context("no 'descr' in the header")?
        .trim_matches(['\'', '"', ' ']);
    let code = descr.trim_start_matches(['<', '|', '=']);
    ensure!(
        !descr.starts_with('>'),
        "big-endian arrays are not supported"
    );
    let Some((dtype, _)) = TYPES.iter().find(|(_, name)| *name == code) else {
        bail!("arrays of type '{descr}' are not supported")
    };
    ensure!(
        field(&header, "fortran_order").is_some_and(|order| order.starts_with("False")),
        "Fortran-order arrays are not supported"
    );
    let shape = header
        .split_once("'shape'")
        .and_then(|(_, rest)| rest.split_once('('))
        .and_then(|(_, rest)| rest.split_once(')'));
    let (dims, _) = shape.context("no 'shape' in the header")?;
    let dims: Vec<i64> = dims
        .split(',')
        .map(str::trim)
        .filter(|dim| !dim.is_empty())
        .map(str::parse)
        .collect::<Result<_, _>>()
        .context("a dimension is no number")?;
    Ok(Tensor::from_bytes(*dtype, Shape::new(&dims)?, data)?)
}

/// The text after `'name':` up to the next comma.
fn field<'a>(header: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = header.split_once(&format!("'{name}'"))?;
    let rest = rest.trim_start().strip_prefix(':')?.trim_start();
    rest.split(',').next()
}

/// Writes an array.
pub(crate) fn write(path: &Path, tensor: &Tensor) -> Result<()> {
    let Some((_, code)) = TYPES.iter().find(|(dtype, _)| *dtype == tensor.dtype()) else {
        bail!("tensors of {} cannot be written as .npy", tensor.dtype());
    };
    let dims: Vec<String> = tensor.shape().iter().map(ToString::to_string).collect();
    let comma = if dims.len() == 1 { "," } else { "" };
    let order = if code.ends_with('1') { '|' } else { '<' };
    let mut header = format!(
        "{{'descr': '{order}{code}', 'fortran_order': False, 'shape': ({}{comma}), }}",
        dims.join(", ")
    );
    // The data starts at a multiple of 64, after a newline.
    while !(MAGIC.len() + 4 + header.len() + 1).is_multiple_of(64) {
        header.push(' ');
    }
    header.push('\n');
    let mut bytes = MAGIC.to_vec();
    bytes.extend([1, 0]);
    bytes.extend(
        u16::try_from(header.len())
            .context("the header is too long")?
            .to_le_bytes(),
    );
    bytes.extend(header.as_bytes());
    bytes.extend(tensor.bytes().unwrap_or_default());
    std::fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.npy");
        let tensor =
            Tensor::from_slice(Shape::new(&[2, 3]).unwrap(), &[1i64, 2, 3, 4, 5, 6]).unwrap();
        write(&path, &tensor).unwrap();
        let back = read(&path).unwrap();
        assert_eq!(
            (back.dtype(), back.shape(), back.bytes()),
            (tensor.dtype(), tensor.shape(), tensor.bytes())
        );
        write(&path, &Tensor::scalar(true)).unwrap();
        assert!(read(&path).unwrap().to_scalar::<bool>().unwrap());
    }

    #[test]
    fn damaged_files_are_refused() {
        for bytes in [
            &b""[..],
            b"\x93NUMPY",
            b"\x93NUMPY\x01\x00\xff\xff{",
            b"\x93NUMPY\x01\x00\x02\x00{}",
        ] {
            assert!(parse(Bytes::copy_from_slice(bytes)).is_err());
        }
    }
}
