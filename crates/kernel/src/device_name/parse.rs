//! Reading device names, in every spelling TensorFlow takes.

use std::str::FromStr;
use std::sync::Arc;

use tensorfleet_status::{Result, Status, invalid_argument};

use super::DeviceName;

impl DeviceName {
    /// Reads a name in any spelling; INVALID_ARGUMENT if it is none. A later field replaces an earlier one.
    pub fn parse(text: &str) -> Result<DeviceName> {
        Parser { rest: text }.name().ok_or_else(|| {
            invalid_argument!(
                "malformed device specification '{text}': expected a name such as '/job:ps/task:0/device:CPU:0' or a part of one"
            )
        })
    }

    /// Reads a name inside a task: `CPU:0`, `cpu:0` or `/device:CPU:0`.
    pub fn parse_local(text: &str) -> Result<DeviceName> {
        let malformed = || {
            invalid_argument!(
                "malformed local device name '{text}': expected a name such as 'CPU:0'"
            )
        };
        let (kind, index) = text
            .strip_prefix("/device:")
            .unwrap_or(text)
            .split_once(':')
            .ok_or_else(malformed)?;
        let kind = match kind {
            "cpu" => "CPU",
            "gpu" => "GPU",
            kind => kind,
        };
        // Parsed on their own, so that nothing can follow the index.
        let device_type = whole(kind, Parser::word).ok_or_else(malformed)?;
        let index = whole(index, Parser::number).ok_or_else(malformed)?;
        Ok(DeviceName {
            device_type: Some(device_type),
            index: Some(index),
            ..DeviceName::ANY
        })
    }
}

/// The value that a whole text stands for; `None` for wildcards and anything left over.
fn whole<'a, T>(text: &'a str, read: fn(&mut Parser<'a>) -> Option<Option<T>>) -> Option<T> {
    let mut parser = Parser { rest: text };
    let value = read(&mut parser)??;
    parser.rest.is_empty().then_some(value)
}

impl FromStr for DeviceName {
    type Err = Status;

    fn from_str(text: &str) -> Result<DeviceName> {
        DeviceName::parse(text)
    }
}

/// Eats a name from the front.
struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn name(&mut self) -> Option<DeviceName> {
        let mut name = DeviceName::default();
        if self.rest == "/" {
            return Some(name);
        }
        while !self.rest.is_empty() {
            if self.eat("/job:") {
                name.job = self.word()?;
            } else if self.eat("/replica:") {
                name.replica = self.number()?;
            } else if self.eat("/task:") {
                name.task = self.number()?;
            } else if self.eat("/device:") {
                name.device_type = self.word()?;
                name.index = if self.eat(":") { self.number()? } else { None };
            } else if self.eat("/cpu:") || self.eat("/CPU:") {
                name.device_type = Some("CPU".into());
                name.index = self.number()?;
            } else if self.eat("/gpu:") || self.eat("/GPU:") {
                name.device_type = Some("GPU".into());
                name.index = self.number()?;
            } else {
                return None;
            }
        }
        Some(name)
    }

    fn eat(&mut self, prefix: &str) -> bool {
        match self.rest.strip_prefix(prefix) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// `*`, or a letter and then letters, digits and underscores.
    fn word(&mut self) -> Option<Option<Arc<str>>> {
        if self.eat("*") {
            return Some(None);
        }
        let word = self.take_while(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let starts_well = word.starts_with(|first: char| first.is_ascii_alphabetic());
        starts_well.then(|| Some(word.into()))
    }

    /// `*`, or a number that fits the wire's int32.
    fn number(&mut self) -> Option<Option<u32>> {
        if self.eat("*") {
            return Some(None);
        }
        let digits = self.take_while(|byte| byte.is_ascii_digit());
        let number: i32 = digits.parse().ok()?;
        Some(Some(number.unsigned_abs()))
    }

    fn take_while(&mut self, keep: impl Fn(u8) -> bool) -> &'a str {
        let end = self.rest.bytes().take_while(|byte| keep(*byte)).count();
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{any_name, name};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_every_spelling() {
        for (text, canonical) in [
            ("", ""),
            ("/", ""),
            ("/job:ps", "/job:ps"),
            (
                "/job:ps/replica:0/task:0/device:CPU:0",
                "/job:ps/replica:0/task:0/device:CPU:0",
            ),
            ("/device:CPU:0/task:1/job:ps", "/job:ps/task:1/device:CPU:0"),
            ("/job:ps/task:0/cpu:0", "/job:ps/task:0/device:CPU:0"),
            ("/gpu:1", "/device:GPU:1"),
            ("/GPU:1", "/device:GPU:1"),
            ("/CPU:*", "/device:CPU:*"),
            ("/device:GPU", "/device:GPU:*"),
            ("/device:cpu:0", "/device:cpu:0"),
            ("/device:XLA_CPU:0", "/device:XLA_CPU:0"),
            ("/device:*", ""),
            ("/device:*:2", "/device:*:2"),
            ("/job:*/replica:*/task:*/device:*:*", ""),
            ("/task:01", "/task:1"),
            ("/job:a/job:b", "/job:b"),
            ("/job:a/job:*", ""),
            ("/cpu:1/device:CPU", "/device:CPU:*"),
            ("/cpu:1/device:*", ""),
        ] {
            assert_eq!(name(text).to_string(), canonical, "{text:?}");
        }
    }

    #[test]
    fn refuses_what_tensorflow_refuses() {
        for text in [
            "rubbish",
            "/JOB:ps",
            "/job:ps/",
            "job:ps",
            "/job:",
            "/job:1a",
            "/job:p-s",
            "/job:_a",
            "/replica:",
            "/replica:x",
            "/device:CPU:",
            "/device:1x:0",
            "/device:_x:0",
            "/cpu",
            "/CPU",
            "/cpu:",
            "/Cpu:0",
            "/gpu",
            "//",
            " /cpu:0",
            "/cpu:0 ",
            "CPU:0",
            "/tpu:0",
            "/device:X-Y:0",
            "/task:18446744073709551617",
            "/task:-1",
            "/job:é",
        ] {
            let error = DeviceName::parse(text).unwrap_err();
            assert!(error.message().contains(&format!("'{text}'")), "{error}");
        }
    }

    #[test]
    fn reads_local_names() {
        for text in ["CPU:2", "cpu:2", "/device:CPU:2"] {
            let local = DeviceName::parse_local(text).unwrap();
            assert_eq!(local, name("/device:CPU:2"));
        }
        for text in ["CPU", "", "CPU:*", "*:0", "CPU:0/job:a", "/job:a"] {
            assert!(DeviceName::parse_local(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn parsing_never_panics(text in "(/|:|\\*|job|task|replica|device|cpu|[a-zA-Z0-9_é ]){0,12}") {
            if let Ok(name) = DeviceName::parse(&text) {
                prop_assert_eq!(DeviceName::parse(&name.to_string()).unwrap(), name);
            }
            let _ = DeviceName::parse_local(&text);
        }

        #[test]
        fn canonical_text_reads_back(name in any_name()) {
            prop_assert_eq!(DeviceName::parse(&name.to_string()).unwrap(), name);
        }
    }
}
