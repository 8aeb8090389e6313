//! The live view: a [`Snapshot`] becomes lines of at most so many columns, at most so many of them.
//!
//! | file | |
//! |---|---|
//! | this one | what stands where |
//! | `map` | the tasks of the cluster |
//! | `charts` | loss and accuracy beside each other, with their axes |
//! | `curve` | a curve out of braille dots |
//! | `line` | text with colours that knows how wide it is |
//!
//! Nothing here knows a terminal; [`super::screen`] does.

mod charts;
mod curve;
mod line;
mod map;

use std::time::Duration;

pub(super) use line::{Line, Paint};

use super::snapshot::{Kind, Snapshot};

/// The left margin.
const MARGIN: &str = " ";
/// Beside the charts, so many lines of events at least and at most.
const EVENTS: std::ops::RangeInclusive<usize> = 2..=8;
/// Below this there is no room for a chart.
const CHART_LEAST: usize = 5;

/// Draws everything there is room for. What matters most comes first: progress, tasks, curves, events.
pub(super) fn lines(now: &Snapshot, columns: usize, rows: usize) -> Vec<Line> {
    let mut lines = vec![head(now, columns), progress(now, columns), Line::new()];
    let room = rows.saturating_sub(lines.len());
    lines.extend(map::lines(now, columns, room));
    // An empty line before the charts and one before the events.
    let room = rows.saturating_sub(lines.len() + 2);
    let events = (room / 3).clamp(*EVENTS.start(), *EVENTS.end());
    let chart = room.saturating_sub(events);
    if chart >= CHART_LEAST {
        lines.push(Line::new());
        lines.extend(charts::lines(now, columns, chart));
    }
    lines.push(Line::new());
    let room = rows.saturating_sub(lines.len());
    lines.extend(last_events(now, room));
    lines.truncate(rows);
    lines.into_iter().map(|line| line.clip(columns)).collect()
}

fn head(now: &Snapshot, columns: usize) -> Line {
    let clock = seconds(now.elapsed);
    Line::new()
        .put(Paint::Title, MARGIN)
        .put(Paint::Title, "tensorfleet demo")
        .put(Paint::Faint, "  a convolutional network learns digits")
        .until_column(columns.saturating_sub(clock.chars().count() + 1))
        .put(Paint::Plain, &clock)
}

fn progress(now: &Snapshot, columns: usize) -> Line {
    let before = format!("{MARGIN}step {} of {} ", now.step, now.last_step);
    let after = format!(" {:.0} steps/s", now.steps_per_second());
    let room = columns.saturating_sub(before.len() + after.len() + 1);
    let share = now.step as f64 / now.last_step.max(1) as f64;
    let done = ((share * room as f64).round() as usize).min(room);
    Line::new()
        .put(Paint::Plain, &before)
        .put(Paint::Good, &"━".repeat(done))
        .put(Paint::Faint, &"─".repeat(room - done))
        .put(Paint::Plain, &after)
}

/// The newest events, the last one at the bottom.
fn last_events(now: &Snapshot, room: usize) -> impl Iterator<Item = Line> {
    let first = now.events.len().saturating_sub(room);
    now.events.iter().skip(first).map(|event| {
        let paint = match event.kind {
            Kind::Note => Paint::Plain,
            Kind::Good => Paint::Good,
            Kind::Bad => Paint::Bad,
        };
        let at = format!("{MARGIN}{:>8}  ", seconds(event.at));
        Line::new().put(Paint::Faint, &at).put(paint, &event.text)
    })
}

/// `12.3 s`, or `2:05 min` when it takes longer.
pub(super) fn seconds(time: Duration) -> String {
    match time.as_secs() {
        0..100 => format!("{:.1} s", time.as_secs_f64()),
        whole => format!("{}:{:02} min", whole / 60, whole % 60),
    }
}

#[cfg(test)]
mod tests;
