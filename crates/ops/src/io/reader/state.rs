//! [`Counts`]: what a reader knows of its progress, and TensorFlow's `ReaderBaseState`, in which it is saved.

use prost::encoding::{DecodeContext, WireType, bytes, decode_key, int64, skip_field};
use tensorfleet_status::{Result, ensure, invalid_argument};
use tensorfleet_tensor::TString;

/// The fields of `ReaderBaseState`, in its order.
#[derive(Clone, Default)]
pub(super) struct Counts {
    pub(super) work_started: i64,
    pub(super) work_finished: i64,
    pub(super) num_records_produced: i64,
    pub(super) current_work: TString,
}

impl Counts {
    /// Whether a unit of work was begun and not yet finished.
    pub(super) fn in_progress(&self) -> bool {
        self.work_finished < self.work_started
    }

    /// As a serialized `ReaderBaseState`.
    pub(super) fn save(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for (tag, count) in self.numbers() {
            if count != 0 {
                int64::encode(tag, &count, &mut out);
            }
        }
        if !self.current_work.is_empty() {
            bytes::encode(4, &self.current_work.to_vec(), &mut out);
        }
        out
    }

    /// Out of a serialized `ReaderBaseState`; `reader` is for errors.
    pub(super) fn restore(state: &TString, reader: &str) -> Result<Counts> {
        let counts = Counts::parse(state).ok_or_else(|| {
            invalid_argument!("Could not parse state for {reader}: {}", escaped(state))
        })?;
        ensure!(
            counts.numbers().iter().all(|(_, count)| *count >= 0),
            invalid_argument,
            "Unexpected negative value when restoring in {reader}: {}",
            counts.text()
        );
        ensure!(
            !counts.in_progress(),
            invalid_argument,
            "Inconsistent work started vs. finished when restoring in {reader}: {}",
            counts.text()
        );
        Ok(counts)
    }

    fn numbers(&self) -> [(u32, i64); 3] {
        [
            (1, self.work_started),
            (2, self.work_finished),
            (3, self.num_records_produced),
        ]
    }

    fn parse(state: &TString) -> Option<Counts> {
        let mut rest = &state[..];
        let mut counts = Counts::default();
        let context = DecodeContext::default;
        while !rest.is_empty() {
            let (tag, wire) = decode_key(&mut rest).ok()?;
            let number = match tag {
                1 => Some(&mut counts.work_started),
                2 => Some(&mut counts.work_finished),
                3 => Some(&mut counts.num_records_produced),
                _ => None,
            };
            match number {
                Some(number) if wire == WireType::Varint => {
                    int64::merge(wire, number, &mut rest, context()).ok()?;
                }
                None if tag == 4 && wire == WireType::LengthDelimited => {
                    let mut work = Vec::new();
                    bytes::merge(wire, &mut work, &mut rest, context()).ok()?;
                    counts.current_work = work.into();
                }
                _ => skip_field(wire, tag, &mut rest, context()).ok()?,
            }
        }
        Some(counts)
    }

    /// As protocol buffers print it.
    fn text(&self) -> String {
        let names = ["work_started", "work_finished", "num_records_produced"];
        let mut text = String::new();
        for (name, (_, count)) in names.iter().zip(self.numbers()) {
            if count != 0 {
                text.push_str(&format!("{name}: {count}\n"));
            }
        }
        if !self.current_work.is_empty() {
            let work = escaped(&self.current_work);
            text.push_str(&format!("current_work: \"{work}\"\n"));
        }
        text
    }
}

/// Bytes that are no plain text as C writes them: `\n`, `\001`.
fn escaped(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            b'"' | b'\'' | b'\\' => out.extend(['\\', char::from(*byte)]),
            b' '..=b'~' => out.push(char::from(*byte)),
            _ => out.push_str(&format!("\\{byte:03o}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts() -> Counts {
        Counts {
            work_started: 3,
            work_finished: 3,
            num_records_produced: 7,
            current_work: TString::from_static(b"f\0"),
        }
    }

    #[test]
    fn what_was_saved_is_restored() {
        let saved = TString::from(counts().save());
        assert_eq!(
            &saved[..],
            [8, 3, 16, 3, 24, 7, 34, 2, b'f', 0],
            "as TensorFlow writes it"
        );
        let restored = Counts::restore(&saved, "R").unwrap();
        assert_eq!(restored.save(), &saved[..]);
        assert_eq!(Counts::default().save(), b"");
    }

    #[test]
    fn damage_is_refused_with_words() {
        let message = |state: &'static [u8]| {
            let restored = Counts::restore(&TString::from_static(state), "R");
            restored.err().unwrap().message().to_owned()
        };
        assert_eq!(message(b"\x08"), "Could not parse state for R: \\010");
        assert!(message(b"a\xff").contains("a\\377"));
        let mut wrong = counts();
        wrong.work_finished = 2;
        let state = TString::from(wrong.save());
        let status = Counts::restore(&state, "R").err().unwrap();
        assert!(status.message().contains("Inconsistent work started vs. finished when restoring in R: work_started: 3\nwork_finished: 2\n"));
        wrong.work_finished = -1;
        let state = TString::from(wrong.save());
        let status = Counts::restore(&state, "R").err().unwrap();
        assert!(status.message().starts_with("Unexpected negative value"));
    }

    #[test]
    fn no_bytes_panic() {
        let saved = counts().save();
        for at in 0..saved.len() {
            for byte in 0..=255 {
                let mut bytes = saved.clone();
                bytes[at] = byte;
                let _ = Counts::restore(&TString::from(bytes), "R");
            }
        }
    }
}
