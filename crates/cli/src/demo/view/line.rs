//! [`Line`]: text with colours that knows how wide it is.

/// What a piece of text is, which decides its colour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::demo) enum Paint {
    Plain,
    Title,
    Faint,
    Good,
    Busy,
    Bad,
    Loss,
    Accuracy,
}

impl Paint {
    /// The parameters of the SGR sequence; only the sixteen colours that every theme has made readable.
    fn code(self) -> &'static str {
        match self {
            Paint::Plain => "",
            Paint::Title => "1",
            Paint::Faint => "2",
            Paint::Good => "32",
            Paint::Busy => "33",
            Paint::Bad => "1;31",
            Paint::Loss => "35",
            Paint::Accuracy => "36",
        }
    }
}

/// One line of the screen. Every character counts as one column: put nothing wider in.
#[derive(Clone, Default, PartialEq, Debug)]
pub(in crate::demo) struct Line {
    pieces: Vec<(Paint, String)>,
}

impl Line {
    pub(in crate::demo) fn new() -> Line {
        Line::default()
    }

    /// Adds text. What would move the cursor becomes a space.
    pub(in crate::demo) fn put(mut self, paint: Paint, text: &str) -> Line {
        let text = text.replace(char::is_control, " ");
        self.pieces.push((paint, text));
        self
    }

    /// Adds the pieces of another line.
    pub(in crate::demo) fn join(mut self, other: Line) -> Line {
        self.pieces.extend(other.pieces);
        self
    }

    /// Adds spaces up to this column.
    pub(in crate::demo) fn until_column(self, column: usize) -> Line {
        let missing = column.saturating_sub(self.width());
        self.put(Paint::Plain, &" ".repeat(missing))
    }

    pub(in crate::demo) fn width(&self) -> usize {
        let widths = self.pieces.iter().map(|(_, text)| text.chars().count());
        widths.sum()
    }

    /// Cuts off what is past this column.
    pub(in crate::demo) fn clip(mut self, columns: usize) -> Line {
        let mut left = columns;
        for (_, text) in &mut self.pieces {
            *text = text.chars().take(left).collect();
            left -= text.chars().count();
        }
        self
    }

    /// The text alone.
    pub(in crate::demo) fn plain(&self) -> String {
        let text: String = self.pieces.iter().map(|(_, text)| text.as_str()).collect();
        text.trim_end().to_owned()
    }

    /// The text with escape sequences for its colours.
    pub(in crate::demo) fn ansi(&self) -> String {
        let mut line = String::new();
        for (paint, text) in self.pieces.iter().filter(|(_, text)| !text.is_empty()) {
            match paint.code() {
                "" => line.push_str(text),
                code => line.push_str(&format!("\x1b[{code}m{text}\x1b[0m")),
            }
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clips_by_columns_not_by_bytes() {
        let line = Line::new()
            .put(Paint::Good, "●●●")
            .put(Paint::Bad, "●●●")
            .clip(4);
        assert_eq!(line.width(), 4);
        assert_eq!(line.plain(), "●●●●");
        assert_eq!(line.ansi(), "\x1b[32m●●●\x1b[0m\x1b[1;31m●\x1b[0m");
        assert_eq!(line.clip(0).ansi(), "");
    }

    #[test]
    fn nothing_moves_the_cursor() {
        let line = Line::new().put(Paint::Plain, "a\nb\x1b[2Jc");
        assert_eq!(line.ansi(), "a b [2Jc");
    }

    #[test]
    fn pads_to_a_column() {
        let line = Line::new().put(Paint::Plain, "ab").until_column(4);
        assert_eq!(line.clone().put(Paint::Plain, "c").plain(), "ab  c");
        assert_eq!(line.until_column(2).width(), 4);
    }
}
