//! Room for as many values as a graph asks for: if the system refuses it, the step fails and not the process.
//!
//! For plain vectors whose length is a number that came in, or a dimension of a tensor that may have no elements. What is as
//! long as something that is in memory already needs no asking.

use tensorfleet_status::{Result, Status, resource_exhausted};

/// An empty vector with room for so many values.
pub(crate) fn room<T>(count: usize) -> Result<Vec<T>> {
    let mut values = Vec::new();
    values
        .try_reserve_exact(count)
        .map_err(|_| no_room::<T>(count))?;
    Ok(values)
}

/// So many times this value.
pub(crate) fn filled<T: Clone>(value: T, count: usize) -> Result<Vec<T>> {
    let mut values = room(count)?;
    values.resize(count, value);
    Ok(values)
}

/// All of these values.
pub(crate) fn gathered<T>(values: impl ExactSizeIterator<Item = T>) -> Result<Vec<T>> {
    let mut out = room(values.len())?;
    out.extend(values);
    Ok(out)
}

/// Makes room for so many values more.
pub(crate) fn grow<T>(values: &mut Vec<T>, more: usize) -> Result<()> {
    let whole = values.len().saturating_add(more);
    values.try_reserve(more).map_err(|_| no_room::<T>(whole))
}

#[cold]
fn no_room<T>(count: usize) -> Status {
    let size = size_of::<T>();
    resource_exhausted!("OOM: the system does not give memory for {count} values of {size} bytes")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tensorfleet_status::Code;

    #[test]
    fn what_no_memory_has_is_an_error() {
        let code = |status: Status| status.code();
        assert_eq!(filled(7, 3).unwrap(), [7; 3]);
        for count in [1 << 50, usize::MAX] {
            assert_eq!(
                room::<u64>(count).map_err(code),
                Err(Code::ResourceExhausted)
            );
            let grown = grow(&mut vec![1u64], count).map_err(code);
            assert_eq!(grown, Err(Code::ResourceExhausted));
        }
    }
}
