//! `tf.train.Example` and `SequenceExample`, read where they lie: no maps, no messages, values copied once.
//!
//! ```text
//! Example          1: Features
//! SequenceExample  1: Features (context)   2: FeatureLists
//! Features         1: entry (1: key, 2: Feature), repeated
//! FeatureLists     1: entry (1: key, 2: FeatureList), repeated
//! FeatureList      1: Feature, repeated
//! Feature          1: BytesList or 2: FloatList or 3: Int64List, each with 1: value, repeated, numbers mostly packed
//! ```
//!
//! As in TensorFlow's own fast parser, a Feature ends with its first list, and a list with its first packed block.
//! `None` everywhere means: these are not such bytes.

use tensorfleet_tensor::TString;

use crate::coding::{take_bytes, take_u32, take_u64, take_varint64};

/// A key and the bytes of its Feature or FeatureList.
pub type Entry<'a> = (&'a [u8], &'a [u8]);

const FIELD_1: u8 = 1 << 3 | 2;
const FIELD_2: u8 = 2 << 3 | 2;
const FIELD_3: u8 = 3 << 3 | 2;
const VARINT_1: u8 = 1 << 3;
const FIXED32_1: u8 = 1 << 3 | 5;

/// Appends the features of an Example. A key may occur again, then the last one counts.
pub fn features<'a>(example: &'a [u8], out: &mut Vec<Entry<'a>>) -> Option<()> {
    let mut rest = example;
    while !rest.is_empty() {
        match take_tag(&mut rest, &[FIELD_1]) {
            Some(_) => entries(delimited(&mut rest)?, out)?,
            None => skip_field(&mut rest)?,
        }
    }
    Some(())
}

/// Appends the features of a SequenceExample: those of the context, and the lists.
pub fn sequence<'a>(
    example: &'a [u8],
    context: &mut Vec<Entry<'a>>,
    lists: &mut Vec<Entry<'a>>,
) -> Option<()> {
    let mut rest = example;
    while !rest.is_empty() {
        match take_tag(&mut rest, &[FIELD_1, FIELD_2]) {
            Some(FIELD_1) => entries(delimited(&mut rest)?, context)?,
            Some(_) => entries(delimited(&mut rest)?, lists)?,
            None => skip_field(&mut rest)?,
        }
    }
    Some(())
}

/// The Features of a FeatureList, one after the other.
pub fn list_features(list: &[u8]) -> impl Iterator<Item = Option<&[u8]>> {
    let mut rest = list;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let feature = take_tag(&mut rest, &[FIELD_1]).and_then(|_| delimited(&mut rest));
        if feature.is_none() {
            rest = &[];
        }
        Some(feature)
    })
}

fn entries<'a>(mut map: &'a [u8], out: &mut Vec<Entry<'a>>) -> Option<()> {
    while !map.is_empty() {
        take_tag(&mut map, &[FIELD_1])?;
        let mut entry = delimited(&mut map)?;
        let (mut key, mut value) = (&[][..], &[][..]);
        for _ in 0..2 {
            match take_tag(&mut entry, &[FIELD_1, FIELD_2])? {
                FIELD_1 => key = delimited(&mut entry)?,
                _ => value = delimited(&mut entry)?,
            }
        }
        if !entry.is_empty() {
            return None;
        }
        out.push((key, value));
    }
    Some(())
}

/// Takes the tag off the front if it is one of these.
fn take_tag(rest: &mut &[u8], tags: &[u8]) -> Option<u8> {
    let (first, tail) = rest.split_first()?;
    tags.contains(first).then(|| {
        *rest = tail;
        *first
    })
}

/// A length and as many bytes.
fn delimited<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = usize::try_from(varint(rest)?).ok()?;
    take_bytes(rest, len)
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    match rest.split_first() {
        Some((first, tail)) if *first < 0x80 => {
            *rest = tail;
            Some(u64::from(*first))
        }
        _ => take_varint64(rest),
    }
}

fn skip_field(rest: &mut &[u8]) -> Option<()> {
    match varint(rest)? & 7 {
        0 => varint(rest).map(drop),
        1 => take_u64(rest).map(drop),
        2 => delimited(rest).map(drop),
        5 => take_u32(rest).map(drop),
        _ => None,
    }
}

/// What the values of a feature are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Strings.
    Bytes,
    /// float.
    Float,
    /// int64.
    Int64,
}

/// The kind of a Feature: `Some(None)` if it has no values of any kind.
#[allow(clippy::option_option)] // None is damage, as everywhere here
pub fn kind(feature: &[u8]) -> Option<Option<Kind>> {
    Some(match feature.first() {
        None => None,
        Some(&FIELD_1) => Some(Kind::Bytes),
        Some(&FIELD_2) => Some(Kind::Float),
        Some(&FIELD_3) => Some(Kind::Int64),
        Some(_) => return None,
    })
}

/// The list of values in a Feature.
#[derive(Clone, Copy)]
pub struct List<'a> {
    /// What the list lies in, for values that share its memory.
    example: &'a TString,
    bytes: &'a [u8],
}

impl<'a> List<'a> {
    /// The list of a Feature that has a [`kind`]; both lie in `example`.
    pub fn of(feature: &'a [u8], example: &'a TString) -> Option<List<'a>> {
        let mut rest = feature.get(1..)?;
        let bytes = delimited(&mut rest)?;
        Some(List { example, bytes })
    }
}

/// A type that features have values of.
pub trait Value: Clone + Default + Sized {
    /// The kind of such a feature.
    const KIND: Kind;

    /// Appends the values of a list.
    fn append(list: List<'_>, out: &mut Vec<Self>) -> Option<()>;

    /// Puts the values of a list into `out` as far as there is room, and counts them.
    fn fill(list: List<'_>, out: &mut [Self]) -> Option<usize>;
}

impl Value for f32 {
    const KIND: Kind = Kind::Float;

    fn append(list: List<'_>, out: &mut Vec<f32>) -> Option<()> {
        out.extend(floats(list.bytes)?);
        Some(())
    }

    fn fill(list: List<'_>, out: &mut [f32]) -> Option<usize> {
        let values = floats(list.bytes)?;
        let count = values.len();
        for (target, value) in out.iter_mut().zip(values) {
            *target = value;
        }
        Some(count)
    }
}

fn floats(list: &[u8]) -> Option<impl ExactSizeIterator<Item = f32> + '_> {
    let mut rest = list;
    let (bytes, step) = match rest.first() {
        None => (rest, 4),
        Some(&FIELD_1) => {
            take_tag(&mut rest, &[FIELD_1])?;
            (delimited(&mut rest)?, 4)
        }
        Some(_) => {
            let whole = rest.len().is_multiple_of(5);
            let tagged = rest.iter().step_by(5).all(|tag| *tag == FIXED32_1);
            (whole && tagged).then_some((rest, 5))?
        }
    };
    Some(bytes.chunks_exact(step).map(|chunk| {
        let bytes = chunk.last_chunk::<4>().copied().unwrap_or_default();
        f32::from_le_bytes(bytes)
    }))
}

impl Value for i64 {
    const KIND: Kind = Kind::Int64;

    fn append(list: List<'_>, out: &mut Vec<i64>) -> Option<()> {
        let (mut rest, tagged) = ints(list.bytes)?;
        while !rest.is_empty() {
            out.push(int(&mut rest, tagged)?);
        }
        Some(())
    }

    fn fill(list: List<'_>, out: &mut [i64]) -> Option<usize> {
        let (mut rest, tagged) = ints(list.bytes)?;
        let mut count = 0;
        while !rest.is_empty() {
            let value = int(&mut rest, tagged)?;
            if let Some(target) = out.get_mut(count) {
                *target = value;
            }
            count += 1;
        }
        Some(count)
    }
}

/// Where the numbers are, and whether each has a tag.
fn ints(list: &[u8]) -> Option<(&[u8], bool)> {
    let mut rest = list;
    match take_tag(&mut rest, &[FIELD_1]) {
        Some(_) => Some((delimited(&mut rest)?, false)),
        None => Some((list, true)),
    }
}

fn int(rest: &mut &[u8], tagged: bool) -> Option<i64> {
    if tagged {
        take_tag(rest, &[VARINT_1])?;
    }
    Some(varint(rest)? as i64)
}

impl Value for TString {
    const KIND: Kind = Kind::Bytes;

    fn append(list: List<'_>, out: &mut Vec<TString>) -> Option<()> {
        let mut rest = list.bytes;
        while !rest.is_empty() {
            take_tag(&mut rest, &[FIELD_1])?;
            out.push(text(delimited(&mut rest)?, list.example));
        }
        Some(())
    }

    fn fill(list: List<'_>, out: &mut [TString]) -> Option<usize> {
        let mut rest = list.bytes;
        let mut count = 0;
        while !rest.is_empty() {
            take_tag(&mut rest, &[FIELD_1])?;
            let value = delimited(&mut rest)?;
            if let Some(target) = out.get_mut(count) {
                *target = text(value, list.example);
            }
            count += 1;
        }
        Some(count)
    }
}

/// A value that is most of its Example, such as an image, shares the memory; others would keep too much of it alive.
fn text(value: &[u8], example: &TString) -> TString {
    if value.len() > example.len() / 2 {
        // INVARIANT: every value is cut out of its Example.
        example.slice_ref(value)
    } else {
        TString::copy_from_slice(value)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use prost::Message;
    use tensorfleet_proto as proto;

    use super::*;

    fn sample() -> proto::Example {
        let kinds = [
            (
                "ints",
                proto::feature::Kind::Int64List(proto::Int64List {
                    value: vec![1, -1, 300, i64::MIN],
                }),
            ),
            (
                "floats",
                proto::feature::Kind::FloatList(proto::FloatList {
                    value: vec![1.5, -0.0, f32::INFINITY],
                }),
            ),
            (
                "texts",
                proto::feature::Kind::BytesList(proto::BytesList {
                    value: vec!["a".into(), "".into(), vec![7; 300].into()],
                }),
            ),
        ];
        let feature = kinds
            .into_iter()
            .map(|(name, kind)| (name.to_owned(), proto::Feature { kind: Some(kind) }))
            .collect();
        proto::Example {
            features: Some(proto::Features { feature }),
        }
    }

    fn read<T: Value>(example: &TString, key: &str) -> Option<Vec<T>> {
        let mut found = Vec::new();
        features(example, &mut found)?;
        let (_, feature) = found
            .iter()
            .rev()
            .find(|(name, _)| *name == key.as_bytes())?;
        assert_eq!(kind(feature), Some(Some(T::KIND)));
        let mut values = Vec::new();
        T::append(List::of(feature, example)?, &mut values)?;
        let mut filled = vec![T::default(); values.len()];
        assert_eq!(
            T::fill(List::of(feature, example)?, &mut filled),
            Some(values.len())
        );
        assert_eq!(
            T::fill(List::of(feature, example)?, &mut []),
            Some(values.len())
        );
        Some(values)
    }

    #[test]
    fn what_was_written_is_read() {
        let example = TString::from(sample().encode_to_vec());
        assert_eq!(
            read::<i64>(&example, "ints").unwrap(),
            [1, -1, 300, i64::MIN]
        );
        assert_eq!(
            read::<f32>(&example, "floats").unwrap(),
            [1.5, -0.0, f32::INFINITY]
        );
        let texts = read::<TString>(&example, "texts").unwrap();
        assert_eq!(texts, [&b"a"[..], b"", &[7; 300]]);
    }

    #[test]
    fn a_feature_may_have_no_values_but_not_be_left_out() {
        let mut found = Vec::new();
        features(b"\n\x07\n\x05\n\x01f\x12\x00", &mut found).unwrap();
        assert_eq!(found, [(&b"f"[..], &b""[..])]);
        assert_eq!(kind(found[0].1), Some(None));
        // As in TensorFlow's fast parser.
        assert!(features(b"\n\x05\n\x03\n\x01f", &mut found).is_none());
    }

    #[test]
    fn numbers_need_not_be_packed() {
        let list = |bytes: &'static [u8]| {
            let example = Box::leak(Box::new(TString::from_static(bytes)));
            List { example, bytes }
        };
        let mut ints = Vec::new();
        i64::append(list(&[8, 1, 8, 0xac, 2]), &mut ints).unwrap();
        assert_eq!(ints, [1, 300]);
        let mut floats = Vec::new();
        f32::append(
            list(&[13, 0, 0, 0x80, 0x3f, 13, 0, 0, 0, 0x40]),
            &mut floats,
        )
        .unwrap();
        assert_eq!(floats, [1.0, 2.0]);
        assert!(f32::append(list(&[13, 0, 0, 0x80]), &mut floats).is_none());
        assert!(i64::append(list(&[9, 1]), &mut ints).is_none());
    }

    #[test]
    fn other_fields_are_skipped_and_examples_may_follow_each_other() {
        let example = sample().encode_to_vec();
        let mut bytes = vec![0x10, 5, 0x1a, 1, b'x', 0x25, 0, 0, 0, 0];
        bytes.extend_from_slice(&example);
        bytes.extend_from_slice(&example);
        let mut found = Vec::new();
        features(&bytes, &mut found).unwrap();
        assert_eq!(found.len(), 6);
        assert!(features(&[0x0b], &mut found).is_none());
    }

    proptest! {
        #[test]
        fn mutated_bytes_never_panic(at in 0usize..400, value in any::<u8>(), cut in 1usize..500) {
            let mut bytes = sample().encode_to_vec();
            let at = at % bytes.len();
            bytes[at] = value;
            bytes.truncate(cut);
            let example = TString::from(bytes);
            let (mut context, mut lists) = (Vec::new(), Vec::new());
            let _ = features(&example, &mut context);
            let _ = sequence(&example, &mut context, &mut lists);
            for (_, feature) in context.iter().chain(&lists) {
                let _ = kind(feature);
                let _ = list_features(feature).count();
                if let Some(list) = List::of(feature, &example) {
                    let _ = i64::append(list, &mut Vec::new());
                    let _ = f32::append(list, &mut Vec::new());
                    let _ = TString::append(list, &mut Vec::new());
                }
            }
        }
    }
}
