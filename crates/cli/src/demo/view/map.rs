//! The map of the cluster: a row for each task, or a small cell where there are too many.

use super::{Line, MARGIN, Paint};
use crate::demo::snapshot::{Snapshot, State, Task};

/// Where the columns of the table begin.
const ADDRESS: usize = 13;
const STATE: usize = 31;
const RATE: usize = 43;
const DEVICES: usize = 58;

/// How wide a cell is.
const CELL: usize = 19;

/// At most `rows` lines.
pub(super) fn lines(now: &Snapshot, columns: usize, rows: usize) -> Vec<Line> {
    // A table if that leaves half of the room to the curves.
    if now.tasks.len() <= (rows / 2).max(4) {
        return now.tasks.iter().map(row).collect();
    }
    let across = (columns.saturating_sub(MARGIN.len()) / CELL).max(1);
    let mut lines: Vec<Line> = now.tasks.chunks(across).map(cells).collect();
    if lines.len() > rows {
        let kept = rows.saturating_sub(1);
        let hidden = now.tasks.len().saturating_sub(kept * across);
        lines.truncate(kept);
        lines.push(Line::new().put(Paint::Faint, &format!("{MARGIN}… and {hidden} more tasks")));
    }
    lines
}

fn row(task: &Task) -> Line {
    let (mark, paint) = look(task.state);
    let mut notes = task.devices.join(" ");
    if task.job == "worker" && task.index == 0 {
        notes.push_str(" chief");
    }
    if task.restarts > 0 {
        notes.push_str(&format!(" restarted×{}", task.restarts));
    }
    Line::new()
        .put(paint, &format!("{MARGIN}{mark} "))
        .put(Paint::Title, &task.name())
        .until_column(ADDRESS)
        .put(Paint::Faint, &task.address)
        .put(Paint::Plain, " ")
        .until_column(STATE)
        .put(paint, task.state.name())
        .until_column(RATE)
        .put(Paint::Plain, &rate(task, " steps/s"))
        .until_column(DEVICES)
        .put(Paint::Faint, notes.trim_start())
}

fn cells(tasks: &[Task]) -> Line {
    let mut line = Line::new().put(Paint::Plain, MARGIN);
    for (place, task) in tasks.iter().enumerate() {
        let (mark, paint) = look(task.state);
        line = line
            .put(paint, &format!("{mark} "))
            .put(Paint::Plain, &task.name())
            .put(Paint::Faint, &format!(" {}", rate(task, "/s").trim_start()))
            .until_column(MARGIN.len() + (place + 1) * CELL);
    }
    line
}

fn rate(task: &Task, unit: &str) -> String {
    match task.steps_per_second {
        Some(rate) => format!("{rate:>5.1}{unit}"),
        None => String::new(),
    }
}

/// A mark that tells states apart without colours too.
fn look(state: State) -> (char, Paint) {
    match state {
        State::Starting => ('○', Paint::Faint),
        State::Serving => ('●', Paint::Good),
        State::Training => ('▶', Paint::Good),
        State::Waiting => ('◌', Paint::Busy),
        State::Done => ('✔', Paint::Good),
        State::Killed => ('✖', Paint::Bad),
    }
}
