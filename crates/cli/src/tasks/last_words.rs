//! [`LastWords`]: what a task's stderr says about why it ended.

/// So much of what was said is kept.
const MOST_LINES: usize = 6;

/// The last complaint of a task: an error, a warning, a panic. That it serves, or does something else in good order,
/// is no reason to die.
#[derive(Default)]
pub(super) struct LastWords {
    lines: Vec<String>,
    /// Whether they are a line of the log, and not what a dying process writes by itself.
    logged: bool,
}

impl LastWords {
    /// Hears the next line.
    pub(super) fn hear(&mut self, line: &str) {
        match level(line) {
            Some("WARN" | "ERROR") => self.begin(line, true),
            // All was well again.
            Some(_) if self.logged => *self = LastWords::default(),
            Some(_) => {}
            None => self.hear_plain(line),
        }
    }

    /// A line that is not the log's: the error that ends a process, a panic, or the rest of either.
    fn hear_plain(&mut self, line: &str) {
        if let Some(error) = line.strip_prefix("error: ") {
            self.begin(error, false);
        } else if line.starts_with("thread '") {
            self.begin(line, false);
        } else if !line.trim().is_empty()
            && !line.starts_with("note: ")
            && self.lines.len() < MOST_LINES
        {
            self.lines.push(line.to_owned());
        }
    }

    fn begin(&mut self, line: &str, logged: bool) {
        *self = LastWords {
            lines: vec![line.to_owned()],
            logged,
        };
    }

    /// What was complained about, if anything.
    pub(super) fn text(self) -> Option<String> {
        (!self.lines.is_empty()).then(|| self.lines.join("\n"))
    }
}

/// The level of a line of the log, which begins with a time stamp and the level.
fn level(line: &str) -> Option<&str> {
    let mut words = line.split_ascii_whitespace();
    let stamp = words.next()?;
    let stamped = stamp.starts_with(|first: char| first.is_ascii_digit()) && stamp.ends_with('Z');
    let levels = ["ERROR", "WARN", "INFO", "DEBUG", "TRACE"];
    words
        .next()
        .filter(|level| stamped && levels.contains(level))
}

#[cfg(test)]
mod tests {
    use super::*;

    const INFO: &str = "2026-11-16T12:24:16.127297Z  INFO server: Started server";
    const WARN: &str = "2026-11-16T12:24:17.127297Z  WARN peers: the ps is gone";

    #[track_caller]
    fn heard(lines: &[&str], words: Option<&str>) {
        let mut last = LastWords::default();
        lines.iter().for_each(|line| last.hear(line));
        assert_eq!(last.text().as_deref(), words, "{lines:?}");
    }

    #[test]
    fn only_complaints_count() {
        heard(&[], None);
        heard(&[INFO], None);
        heard(&[INFO, WARN], Some(WARN));
        // It lived on.
        heard(&[WARN, INFO], None);
        heard(&[WARN, "error: no way"], Some("no way"));
        // Others may log while a process ends.
        heard(&["error: no way", INFO], Some("no way"));
    }

    #[test]
    fn errors_and_panics_may_have_several_lines() {
        heard(
            &["error: no way:", "neither here", "", "nor there"],
            Some("no way:\nneither here\nnor there"),
        );
        let panic = "thread 'main' (7) panicked at src/x.rs:1:2:";
        let note = "note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace";
        let said = format!("{panic}\noh");
        heard(&[INFO, "", panic, "oh", note], Some(&said));
        // Of what has no name at all.
        let memory = "memory allocation of 8 bytes failed";
        heard(&[INFO, memory, INFO], Some(memory));
        let many: Vec<&str> = vec!["more"; 20];
        heard(&many, Some(["more"; MOST_LINES].join("\n").as_str()));
    }
}
