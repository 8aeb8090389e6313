//! How often numbers occur (`Bincount`, `DenseBincount`).

use crate::movement::{BadIndex, Index};
use crate::num::Num;

/// Counts how often each number below `out.len()` occurs, or adds the weights of its occurrences; larger numbers are left out.
///
/// With `binary` an occurrence makes the count one, however many there are. A negative number is an error.
///
/// # Panics
/// If there are weights, but not one for each value.
pub fn bincount<T: Num, I: Index>(
    values: &[I],
    weights: Option<&[T]>,
    binary: bool,
    out: &mut [T],
) -> Result<(), BadIndex> {
    if let Some(weights) = weights {
        assert_eq!(weights.len(), values.len(), "weights and values");
    }
    if let Some(position) = values.iter().position(|value| value.value() < 0) {
        let value = values[position].value();
        return Err(BadIndex { position, value });
    }
    out.fill(T::ZERO);
    for (i, value) in values.iter().enumerate() {
        if let Some(out) = out.get_mut(value.position()) {
            let weight = weights.map_or(T::ONE, |weights| weights[i]);
            *out = if binary { T::ONE } else { out.add(weight) };
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_values() {
        let mut out = [9; 3];
        assert_eq!(bincount(&[0, 2, 2, 7], None, false, &mut out), Ok(()));
        assert_eq!(out, [1, 0, 2]);
        bincount(&[0, 2, 2, 7], None, true, &mut out).unwrap();
        assert_eq!(out, [1, 0, 1]);
        let mut out = [0.0; 2];
        bincount(&[1, 1, 0], Some(&[0.5, 2.0, 4.0]), false, &mut out).unwrap();
        assert_eq!(out, [4.0, 2.5]);
        let negative = bincount(&[1, -1], None, false, &mut out);
        let (position, value) = (1, -1);
        assert_eq!(negative, Err(BadIndex { position, value }));
    }
}
