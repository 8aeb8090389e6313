//! Loss and accuracy beside each other, each with its last value above and its axes.

use super::curve::{self, Frame};
use super::{Line, MARGIN, Paint};
use crate::demo::snapshot::{Point, Snapshot};

/// Columns that the labels of the vertical axis take, with the axis.
const GUTTER: usize = 7;
/// Between the two charts.
const GAP: usize = 2;
/// A title above and steps below.
const AROUND: usize = 2;

/// One chart.
struct Chart<'a> {
    title: &'static str,
    value: String,
    points: &'a [Point],
    top: f64,
    top_label: String,
    paint: Paint,
}

/// Just `rows` lines.
pub(super) fn lines(now: &Snapshot, columns: usize, rows: usize) -> Vec<Line> {
    let charts = [loss(now), accuracy(now)];
    let width = columns.saturating_sub(MARGIN.len() + GAP) / 2;
    let mut lines = vec![Line::new().put(Paint::Plain, MARGIN); rows];
    for (place, chart) in charts.iter().enumerate() {
        let left = MARGIN.len() + place * (width + GAP);
        let drawn = chart.lines(now.last_step, width, rows);
        let beside = lines.into_iter().zip(drawn);
        lines = beside
            .map(|(line, part)| line.until_column(left).join(part.clip(width)))
            .collect();
    }
    lines
}

fn loss(now: &Snapshot) -> Chart<'_> {
    let values = now.loss.iter().map(|point| point.value);
    let top = values.filter(|value| value.is_finite()).fold(0.0, f64::max);
    let top = if top > 0.0 { top } else { 1.0 };
    Chart {
        title: "loss",
        value: last(&now.loss, |value| format!("{value:.4}")),
        points: &now.loss,
        top,
        top_label: format!("{top:.2}"),
        paint: Paint::Loss,
    }
}

fn accuracy(now: &Snapshot) -> Chart<'_> {
    Chart {
        title: "test accuracy",
        value: last(&now.accuracy, |value| format!("{:.2} %", value * 100.0)),
        points: &now.accuracy,
        top: 1.0,
        top_label: "100 %".to_owned(),
        paint: Paint::Accuracy,
    }
}

fn last(points: &[Point], show: impl Fn(f64) -> String) -> String {
    points
        .last()
        .map_or_else(String::new, |point| show(point.value))
}

impl Chart<'_> {
    fn lines(&self, last_step: u64, width: usize, rows: usize) -> Vec<Line> {
        let frame = Frame {
            columns: width.saturating_sub(GUTTER),
            rows: rows.saturating_sub(AROUND),
            last_step,
            top: self.top,
        };
        let title = Line::new()
            .until_column(GUTTER)
            .put(Paint::Title, self.title)
            .put(self.paint, &format!(" {}", self.value));
        let mut lines = vec![title];
        for (row, dots) in curve::draw(self.points, frame).iter().enumerate() {
            let label = match row {
                0 => self.top_label.as_str(),
                row if row + 1 == frame.rows => "0",
                _ => "",
            };
            let tick = if label.is_empty() { "│" } else { "┤" };
            let axis = format!("{label:>5} {tick}");
            lines.push(Line::new().put(Paint::Faint, &axis).put(self.paint, dots));
        }
        let steps = format!("step {last_step}");
        let room = frame.columns.saturating_sub(1);
        let axis = format!("{:>5} └0{steps:>room$}", "");
        lines.push(Line::new().put(Paint::Faint, &axis));
        lines
    }
}
