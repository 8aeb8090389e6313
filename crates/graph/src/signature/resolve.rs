//! From attribute values to the types of a node's inputs and outputs.

use smallvec::SmallVec;
use tensorfleet_kernel::Attrs;
use tensorfleet_status::{Result, Status, invalid_argument};
use tensorfleet_tensor::PortType;

use super::{ArgDef, ArgKind, TypeOf};

/// No node may have more inputs or outputs than this: a hostile `N` must not allocate.
const MAX_PORTS: i64 = 1 << 20;

/// The types of these arguments under these attributes.
pub fn port_types(args: &[ArgDef], attrs: &Attrs) -> Result<SmallVec<[PortType; 2]>> {
    let mut types = SmallVec::new();
    for arg in args {
        let in_arg = |status: Status| status.context(format!("'{}'", arg.name));
        match &arg.kind {
            ArgKind::Single(of) => types.push(single(of, arg.is_ref, attrs).map_err(in_arg)?),
            ArgKind::Repeated { number, of } => {
                let count = attrs.int(number).map_err(in_arg)?;
                if !(0..=MAX_PORTS).contains(&count) {
                    return Err(invalid_argument!(
                        "attr '{number}' of value {count} must be between 0 and {MAX_PORTS}"
                    ));
                }
                let one = single(of, arg.is_ref, attrs).map_err(in_arg)?;
                types.extend(std::iter::repeat_n(one, count as usize));
            }
            ArgKind::TypeList(name) => {
                let list = attrs.port_types(name).map_err(in_arg)?;
                types.extend(list.iter().map(|port| PortType {
                    dtype: port.dtype,
                    is_ref: port.is_ref || arg.is_ref,
                }));
            }
        }
    }
    Ok(types)
}

fn single(of: &TypeOf, is_ref: bool, attrs: &Attrs) -> Result<PortType> {
    let dtype = match of {
        TypeOf::Fixed(dtype) => *dtype,
        TypeOf::Attr(name) => attrs.dtype(name)?,
    };
    Ok(PortType { dtype, is_ref })
}
