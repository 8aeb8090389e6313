//! What the examples learn: made up as they go, always the same.

#![allow(dead_code)] // each example uses a part

use tensorfleet::{Result, Shape, Tensor};

/// What [`line`] hides: y = x · w + b.
pub(crate) const WEIGHTS: [f32; 4] = [1.0, -2.0, 3.0, 0.5];
/// See [`WEIGHTS`].
pub(crate) const BIAS: f32 = 0.25;

/// A number in [-1, 1) that looks random.
pub(crate) fn noise(index: u64) -> f32 {
    let mut bits = index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^= bits >> 31;
    (bits >> 40) as f32 / (1u64 << 23) as f32 - 1.0
}

/// So many numbers of a batch.
fn numbers(batch: u64, count: usize) -> Vec<f32> {
    (0..count as u64)
        .map(|i| noise((batch << 20) + i))
        .collect()
}

/// A whole number below `limit`.
pub(crate) fn pick(index: u64, limit: i64) -> i64 {
    ((noise(index) + 1.0) * 0.5 * limit as f32) as i64
}

/// A batch of points `[size, 4]` and their values `[size, 1]`, which are linear.
pub(crate) fn line(batch: u64, size: usize) -> Result<(Tensor, Tensor)> {
    let x = numbers(batch, size * WEIGHTS.len());
    let y = x.chunks(WEIGHTS.len()).map(|point| {
        let terms = point.iter().zip(WEIGHTS).map(|(x, w)| x * w);
        terms.sum::<f32>() + BIAS
    });
    let y = Tensor::from_vec(Shape::matrix(size, 1)?, y.collect())?;
    let x = Tensor::from_vec(Shape::matrix(size, WEIGHTS.len())?, x)?;
    Ok((x, y))
}

/// A batch of points `[size, 2]` and their classes `[size]`: 1 inside of a circle, 0 outside.
pub(crate) fn circle(batch: u64, size: usize) -> Result<(Tensor, Tensor)> {
    let x = numbers(batch, size * 2);
    let inside = |point: &[f32]| i64::from(point.iter().map(|x| x * x).sum::<f32>() < 0.6);
    let classes = x.chunks(2).map(inside).collect();
    let classes = Tensor::from_vec(Shape::vector(size), classes)?;
    Ok((Tensor::from_vec(Shape::matrix(size, 2)?, x)?, classes))
}

/// How many users and items [`clicks`] has.
pub(crate) const USERS: i64 = 24;
/// See [`USERS`].
pub(crate) const ITEMS: i64 = 16;

/// Who was shown what.
pub(crate) struct Clicks {
    /// Their ids, `[size]`.
    pub(crate) users: Tensor,
    /// What they were shown, `[size]`.
    pub(crate) items: Tensor,
    /// How old they are, `[size, 1]`, from -1 to 1.
    pub(crate) ages: Tensor,
    /// Whether they clicked: 1 or 0, `[size, 1]`.
    pub(crate) clicked: Tensor,
}

/// A batch of who was shown what: users click what is of their kind, the young some more.
pub(crate) fn clicks(batch: u64, size: usize) -> Result<Clicks> {
    let at = |column: u64| (0..size as u64).map(move |i| (batch << 20) + (i << 2) + column);
    let users: Vec<i64> = at(0).map(|i| pick(i, USERS)).collect();
    let items: Vec<i64> = at(1).map(|i| pick(i, ITEMS)).collect();
    let ages: Vec<f32> = at(2).map(noise).collect();
    let people = users.iter().zip(&items).zip(&ages);
    let clicked = people.map(|((user, item), age)| {
        let likes = user % 4 == item % 4;
        f32::from(likes || *age < -0.9)
    });
    let column = Shape::matrix(size, 1)?;
    Ok(Clicks {
        clicked: Tensor::from_vec(column.clone(), clicked.collect())?,
        users: Tensor::from_vec(Shape::vector(size), users)?,
        items: Tensor::from_vec(Shape::vector(size), items)?,
        ages: Tensor::from_vec(column, ages)?,
    })
}

/// A batch of waves `[time, size, 1]` that begin anywhere, and the value that comes next `[size, 1]`.
pub(crate) fn waves(batch: u64, size: usize, time: usize) -> Result<(Tensor, Tensor)> {
    let wave = |i: usize, t: usize| {
        let phase = noise((batch << 20) + i as u64) * std::f32::consts::PI;
        (phase + 0.7 * t as f32).sin()
    };
    let seen = (0..time).flat_map(|t| (0..size).map(move |i| (i, t)));
    let seen = seen.map(|(i, t)| wave(i, t)).collect();
    let next = (0..size).map(|i| wave(i, time)).collect();
    let shape = Shape::new(&[time as i64, size as i64, 1])?;
    Ok((
        Tensor::from_vec(shape, seen)?,
        Tensor::from_vec(Shape::matrix(size, 1)?, next)?,
    ))
}
