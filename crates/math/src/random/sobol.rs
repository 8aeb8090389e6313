//! Sobol's points: each binary digit of an index turns digits of the point by a direction number.
//!
//! A dimension belongs to a primitive polynomial over the field of two elements. The first direction numbers of a dimension are
//! free; those that TensorFlow takes (found by Joe and Kuo) are in `sobol.bin`, which `golden/sobol.py` writes. The polynomials and all
//! other numbers follow.

use crate::par::{Par, rows_mut};

/// How many dimensions there are free numbers for: polynomials up to degree 13. TensorFlow has some for 21200.
pub const MOST_DIMENSIONS: usize = 1111;

static FREE: &[u8] = include_bytes!("sobol.bin");

/// The directions of each of `dimensions` dimensions, as binary fractions of 32 digits.
///
/// # Panics
/// If there are more than [`MOST_DIMENSIONS`].
fn directions(dimensions: usize) -> Vec<[u32; 32]> {
    assert!(dimensions <= MOST_DIMENSIONS, "{dimensions} dimensions");
    // The first dimension is the index with its digits turned round.
    let mut all = vec![std::array::from_fn(|k| 1 << (31 - k))];
    let mut polynomials = primitive_polynomials();
    let mut bit = 0;
    while all.len() < dimensions {
        let Some((degree, polynomial)) = polynomials.next() else {
            break;
        };
        let mut numbers = [0u64; 32];
        for k in 0..32 {
            numbers[k] = if k < degree {
                let taken = (bit..bit + k).enumerate();
                let number =
                    taken.map(|(place, bit)| u64::from(FREE[bit / 8] >> (bit % 8) & 1) << place);
                let number = number.sum::<u64>() << 1 | 1;
                bit += k;
                number
            } else {
                let last = numbers[k - degree];
                let turned = (1..degree).filter(|i| polynomial >> (degree - i) & 1 == 1);
                turned.fold(last << degree ^ last, |sum, i| sum ^ numbers[k - i] << i)
            };
        }
        all.push(std::array::from_fn(|k| (numbers[k] << (31 - k)) as u32));
    }
    all.truncate(dimensions);
    all
}

/// Degrees and polynomials, by degree and then by value.
fn primitive_polynomials() -> impl Iterator<Item = (usize, u32)> {
    (1..=13).flat_map(|degree| {
        let all = (0..1u32 << (degree - 1)).map(move |middle| 1 << degree | middle << 1 | 1);
        let primitive = all.filter(move |polynomial| is_primitive(degree, *polynomial));
        primitive.map(move |polynomial| (degree, polynomial))
    })
}

/// Whether the powers of x are all there is but zero.
fn is_primitive(degree: usize, polynomial: u32) -> bool {
    let order = (1u32 << degree) - 1;
    let power = |exponent: u32| {
        let (mut result, mut square, mut exponent) = (1, reduced(2, degree, polynomial), exponent);
        while exponent > 0 {
            if exponent % 2 == 1 {
                result = product(result, square, degree, polynomial);
            }
            square = product(square, square, degree, polynomial);
            exponent /= 2;
        }
        result
    };
    let mut left = order;
    let mut factor = 2;
    while left > 1 {
        if left.is_multiple_of(factor) {
            if power(order / factor) == 1 && order > factor {
                return false;
            }
            while left.is_multiple_of(factor) {
                left /= factor;
            }
        }
        factor += 1;
    }
    power(order) == 1 && (order == 1 || power(1) != 1)
}

fn product(a: u32, b: u32, degree: usize, polynomial: u32) -> u32 {
    let mut sum = 0;
    for bit in 0..degree {
        if b >> bit & 1 == 1 {
            sum ^= a << bit;
        }
    }
    reduced(sum, degree, polynomial)
}

fn reduced(value: u32, degree: usize, polynomial: u32) -> u32 {
    let mut value = value;
    for bit in (degree..32).rev() {
        if value >> bit & 1 == 1 {
            value ^= polynomial << (bit - degree);
        }
    }
    value
}

/// Fills `out`, rows of `dimensions` numbers, with the points from number `skip` on.
///
/// # Panics
/// If there are more dimensions than [`MOST_DIMENSIONS`].
pub fn fill_sobol<T: Send>(
    par: &dyn Par,
    dimensions: usize,
    skip: u32,
    out: &mut [T],
    of: fn(u32) -> T,
) {
    let directions = directions(dimensions);
    rows_mut(par, out, dimensions, 512, |first, rows| {
        let start = skip.wrapping_add(first as u32);
        let mut point = at(&directions, start.wrapping_add(1));
        for (row, out) in rows.chunks_exact_mut(dimensions).enumerate() {
            if row > 0 {
                // From one point to the next one digit of the Gray code changes.
                let digit = start.wrapping_add(row as u32).trailing_ones() as usize;
                for (place, directions) in point.iter_mut().zip(&directions) {
                    *place ^= directions[digit.min(31)];
                }
            }
            for (out, place) in out.iter_mut().zip(&point) {
                *out = of(*place);
            }
        }
    });
}

/// One point.
fn at(directions: &[[u32; 32]], index: u32) -> Vec<u32> {
    let gray = index ^ index >> 1;
    let digits = |directions: &[u32; 32]| {
        let set = (0..32).filter(|digit| gray >> digit & 1 == 1);
        set.fold(0, |sum, digit| sum ^ directions[digit])
    };
    directions.iter().map(digits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::par::Serial;

    #[test]
    fn polynomials_are_as_many_as_there_are_dimensions() {
        assert_eq!(primitive_polynomials().count() + 1, MOST_DIMENSIONS);
        let first: Vec<u32> = primitive_polynomials()
            .take(5)
            .map(|found| found.1)
            .collect();
        assert_eq!(first, [0b11, 0b111, 0b1011, 0b1101, 0b10011]);
    }

    #[test]
    fn points_of_each_dimension_fill_all_intervals() {
        let mut out = vec![0.0f32; 255 * MOST_DIMENSIONS];
        fill_sobol(&Serial, MOST_DIMENSIONS, 0, &mut out, |x| {
            x as f32 / 4_294_967_296.0
        });
        for dimension in 0..MOST_DIMENSIONS {
            let points = out.chunks_exact(MOST_DIMENSIONS);
            let mut places: Vec<u32> = points.map(|row| (row[dimension] * 256.0) as u32).collect();
            places.sort_unstable();
            assert!(places.into_iter().eq(1..256), "dimension {dimension}");
        }
    }
}
