//! What a caught panic said.

use std::any::Any;

/// The text of a panic that `catch_unwind` caught.
pub fn panic_text(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_literals_and_strings() {
        assert_eq!(panic_text(&"literal"), "literal");
        assert_eq!(panic_text(&"owned".to_owned()), "owned");
        assert_eq!(panic_text(&7), "no message");
    }
}
