//! The terminal: a screen of our own while the demo runs, and the old one back whatever happens.
//!
//! The view is a page of text that changes a little several times a second, nothing is typed: a handful of ANSI
//! sequences does that. The terminal's modes are left alone, so even a `kill -9` leaves nothing that would not be
//! cured by the next program. Only lines that changed are written, in one piece that the terminal shows at once, so
//! nothing flickers.

use std::io::{self, IsTerminal, Write};
use std::panic;

use rustix::stdio;
use rustix::termios::tcgetwinsize;

use super::snapshot::Snapshot;
use super::view;

/// The other screen, empty, without a cursor.
const OPEN: &str = "\x1b[?1049h\x1b[?25l\x1b[2J";
/// The cursor and the old screen back.
const CLOSE: &str = "\x1b[0m\x1b[?25h\x1b[?1049l";
/// What stands between these is shown at once by terminals that know them, and the others do no harm.
const UPDATE: (&str, &str) = ("\x1b[?2026h", "\x1b[?2026l");

/// As much of the last view stays on the old screen.
const ROWS_LEFT: usize = 24;

/// A terminal that the demo draws on. Dropped, it is as before.
pub(super) struct Screen {
    colour: bool,
    size: (usize, usize),
    /// What every line shows.
    shown: Vec<String>,
}

impl Screen {
    /// Nothing if stdout is no terminal that could be drawn on.
    pub(super) fn open() -> Option<Screen> {
        let term = std::env::var("TERM").unwrap_or_default();
        if !io::stdout().is_terminal() || term.is_empty() || term == "dumb" {
            return None;
        }
        close_on_panic();
        write_directly(OPEN);
        let colour = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Some(Screen {
            colour,
            size: (0, 0),
            shown: Vec::new(),
        })
    }

    /// Draws what changed.
    pub(super) fn draw(&mut self, now: &Snapshot, out: &mut dyn Write) -> io::Result<()> {
        let changes = self.changes(now, size());
        if !changes.is_empty() {
            let (begin, end) = UPDATE;
            write!(out, "{begin}{changes}{end}")?;
            out.flush()?;
        }
        Ok(())
    }

    /// Gives the old screen back, with the last view on it.
    pub(super) fn close(self, now: &Snapshot, out: &mut dyn Write) -> io::Result<()> {
        let (columns, rows) = size();
        let colour = self.colour;
        drop(self);
        for line in view::lines(now, columns.saturating_sub(1), rows.min(ROWS_LEFT)) {
            let line = if colour { line.ansi() } else { line.plain() };
            writeln!(out, "{line}")?;
        }
        Ok(())
    }

    /// The sequences that lead from what is shown to what shall be.
    fn changes(&mut self, now: &Snapshot, size: (usize, usize)) -> String {
        let mut changes = String::new();
        if size != self.size {
            // The terminal has moved the old lines about.
            self.size = size;
            self.shown.clear();
            changes.push_str("\x1b[2J");
        }
        let (columns, rows) = size;
        // The last column stays free: some terminals wrap as soon as it is written.
        let lines = view::lines(now, columns.saturating_sub(1), rows);
        let show = |line: &view::Line| {
            if self.colour {
                line.ansi()
            } else {
                line.plain()
            }
        };
        let lines: Vec<String> = lines.iter().map(show).collect();
        for row in 0..lines.len().max(self.shown.len()) {
            let line = lines.get(row).map_or("", String::as_str);
            if self.shown.get(row).map_or("", String::as_str) != line {
                changes.push_str(&format!("\x1b[{};1H{line}\x1b[K", row + 1));
            }
        }
        self.shown = lines;
        changes
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        write_directly(CLOSE);
    }
}

/// A panic's text belongs on the old screen.
fn close_on_panic() {
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        write_directly(CLOSE);
        before(info);
    }));
}

/// Writes past the lock of stdout, which a thread may hold that panics or is waited for.
fn write_directly(text: &str) {
    // Where it cannot be written nobody looks.
    let _ = rustix::io::write(stdio::stdout(), text.as_bytes());
}

/// Columns and rows.
fn size() -> (usize, usize) {
    match tcgetwinsize(stdio::stdout()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col.into(), size.ws_row.into()),
        _ => (80, 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::snapshot::Kind;
    use crate::demo::snapshot::tests::cluster;

    fn screen(colour: bool) -> Screen {
        // Dropped, it writes to the stdout of the tests: hence never dropped.
        Screen {
            colour,
            size: (0, 0),
            shown: Vec::new(),
        }
    }

    #[test]
    fn writes_only_what_changed() {
        let mut screen = std::mem::ManuallyDrop::new(screen(true));
        let mut now = cluster(1, 1);
        let all = screen.changes(&now, (80, 24));
        assert!(all.starts_with("\x1b[2J\x1b[1;1H"), "{all:?}");
        assert_eq!(screen.changes(&now, (80, 24)), "");
        now.note(Kind::Note, "hello".to_owned());
        let change = screen.changes(&now, (80, 24));
        assert_eq!(change.matches('H').count(), 1, "{change:?}");
        assert!(change.contains("hello"), "{change:?}");
        // All of it after the terminal changed its size.
        let all = screen.changes(&now, (100, 30));
        assert!(
            all.starts_with("\x1b[2J") && all.contains("ps 0"),
            "{all:?}"
        );
    }

    #[test]
    fn no_colours_without_colour() {
        let mut screen = std::mem::ManuallyDrop::new(screen(false));
        let all = screen.changes(&cluster(1, 1), (80, 24));
        assert!(!all.contains('m') || !all.contains("\x1b[0m"), "{all:?}");
    }
}
