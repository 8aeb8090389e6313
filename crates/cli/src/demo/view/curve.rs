//! Curves out of braille: every character holds 2×4 dots.

use crate::demo::snapshot::Point;

const DOTS_WIDE: usize = 2;
const DOTS_HIGH: usize = 4;

/// The bit of each dot of a braille character, row by row.
const BITS: [[u32; DOTS_WIDE]; DOTS_HIGH] =
    [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];
const BRAILLE: u32 = 0x2800;

/// Where a curve is drawn: characters, and what they stand for. Steps go from 0 to `last_step`, values from 0 to `top`.
#[derive(Clone, Copy)]
pub(super) struct Frame {
    pub(super) columns: usize,
    pub(super) rows: usize,
    pub(super) last_step: u64,
    pub(super) top: f64,
}

/// Draws points as a line, from the top row down. Points that share a column of dots are averaged.
pub(super) fn draw(points: &[Point], frame: Frame) -> Vec<String> {
    let (wide, high) = (frame.columns * DOTS_WIDE, frame.rows * DOTS_HIGH);
    let mut cells = vec![vec![0; frame.columns]; frame.rows];
    let mut dot = |x: usize, y: usize| {
        let row = cells.get_mut(y / DOTS_HIGH);
        if let Some(cell) = row.and_then(|row| row.get_mut(x / DOTS_WIDE)) {
            *cell |= BITS[y % DOTS_HIGH][x % DOTS_WIDE];
        }
    };
    let mut last: Option<(usize, usize)> = None;
    for (x, value) in by_column(points, wide, frame.last_step) {
        let y = height(value, high, frame.top);
        let (from_x, from_y) = last.unwrap_or((x, y));
        for between in from_x..=x {
            let (begin, end) = (
                between_heights(from_y, y, between - from_x, x - from_x),
                between_heights(from_y, y, (between + 1).min(x) - from_x, x - from_x),
            );
            (begin.min(end)..=begin.max(end)).for_each(|y| dot(between, y));
        }
        last = Some((x, y));
    }
    let character = |cell: u32| char::from_u32(BRAILLE + cell).unwrap_or(' ');
    let rows = cells.into_iter();
    rows.map(|row| row.into_iter().map(character).collect())
        .collect()
}

/// The mean of the points in each column of dots that has any, from left to right.
fn by_column(points: &[Point], wide: usize, last_step: u64) -> Vec<(usize, f64)> {
    let mut sums = vec![(0.0, 0_u32); wide];
    for point in points.iter().filter(|point| point.value.is_finite()) {
        let share = point.step as f64 / last_step.max(1) as f64;
        let x = (share * wide as f64) as usize;
        if let Some((sum, count)) = sums.get_mut(x.min(wide.saturating_sub(1))) {
            *sum += point.value;
            *count += 1;
        }
    }
    let columns = sums.into_iter().enumerate();
    let columns = columns.filter(|(_, (_, count))| *count > 0);
    columns
        .map(|(x, (sum, count))| (x, sum / f64::from(count)))
        .collect()
}

/// The row of dots, from the top, of a value.
fn height(value: f64, high: usize, top: f64) -> usize {
    let most = high.saturating_sub(1);
    let share = if top > 0.0 { value / top } else { 0.0 };
    let up = (share.clamp(0.0, 1.0) * most as f64).round() as usize;
    most - up.min(most)
}

/// The row of dots after `done` of `all` columns on a straight line.
fn between_heights(from: usize, to: usize, done: usize, all: usize) -> usize {
    if all == 0 {
        return to;
    }
    let share = done as f64 / all as f64;
    (from as f64 + (to as f64 - from as f64) * share).round() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(values: &[(u64, f64)]) -> Vec<Point> {
        let values = values.iter();
        values.map(|&(step, value)| Point { step, value }).collect()
    }

    const FRAME: Frame = Frame {
        columns: 10,
        rows: 4,
        last_step: 100,
        top: 2.0,
    };

    /// The first row, from the top, with a dot in this column of characters.
    fn row_at(chart: &[String], column: usize) -> Option<usize> {
        let dots = |row: &String| row.chars().nth(column) != Some('\u{2800}');
        chart.iter().position(dots)
    }

    #[test]
    fn a_falling_loss_falls() {
        let falling: Vec<(u64, f64)> = (0..=100).map(|i| (i, 2.0 - 0.02 * i as f64)).collect();
        let chart = draw(&points(&falling), FRAME);
        assert_eq!(chart.len(), 4);
        assert!(chart.iter().all(|row| row.chars().count() == 10));
        let rows: Vec<usize> = (0..10).map(|i| row_at(&chart, i).unwrap()).collect();
        assert!(rows.is_sorted(), "{rows:?}");
        assert_eq!((rows[0], rows[9]), (0, 3));
    }

    #[test]
    fn gaps_are_bridged_and_the_future_is_empty() {
        let chart = draw(&points(&[(0, 2.0), (50, 0.0)]), FRAME);
        for column in 0..=5 {
            assert!(row_at(&chart, column).is_some(), "{column}: {chart:?}");
        }
        assert_eq!(row_at(&chart, 6), None);
    }

    #[test]
    fn odd_values_do_no_harm() {
        let odd = points(&[
            (0, f64::NAN),
            (10, -1.0),
            (20, 1e9),
            (999, 1.0),
            (5, f64::INFINITY),
        ]);
        assert_eq!(draw(&odd, FRAME).len(), 4);
        let nothing = Frame {
            columns: 0,
            rows: 0,
            last_step: 0,
            top: 0.0,
        };
        assert!(draw(&odd, nothing).is_empty());
        assert_eq!(draw(&[], FRAME).concat().replace('\u{2800}', ""), "");
    }
}
