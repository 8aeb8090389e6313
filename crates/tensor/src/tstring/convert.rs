//! What strings are compared with, made from and turned into.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use bytes::Bytes;

use super::{Repr, SHARE_FROM, TString};

impl AsRef<[u8]> for TString {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Borrow<[u8]> for TString {
    fn borrow(&self) -> &[u8] {
        self
    }
}

impl Hash for TString {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl PartialEq for TString {
    #[inline]
    fn eq(&self, other: &TString) -> bool {
        **self == **other
    }
}

impl Eq for TString {}

impl PartialOrd for TString {
    fn partial_cmp(&self, other: &TString) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for TString {
    fn cmp(&self, other: &TString) -> Ordering {
        (**self).cmp(&**other)
    }
}

macro_rules! equal_to {
    ($($other:ty),*) => {$(
        impl PartialEq<$other> for TString {
            fn eq(&self, other: &$other) -> bool {
                **self == *AsRef::<[u8]>::as_ref(other)
            }
        }
        impl PartialEq<TString> for $other {
            fn eq(&self, other: &TString) -> bool {
                other == self
            }
        }
    )*};
}

equal_to!([u8], &[u8], Vec<u8>, Bytes, str, &str, String);

impl From<&[u8]> for TString {
    fn from(bytes: &[u8]) -> TString {
        TString::copy_from_slice(bytes)
    }
}

impl<const N: usize> From<&[u8; N]> for TString {
    fn from(bytes: &[u8; N]) -> TString {
        TString::copy_from_slice(bytes)
    }
}

impl From<&str> for TString {
    fn from(text: &str) -> TString {
        TString::copy_from_slice(text.as_bytes())
    }
}

impl From<Vec<u8>> for TString {
    fn from(bytes: Vec<u8>) -> TString {
        match bytes.len() {
            SHARE_FROM.. => Bytes::from(bytes).into(),
            _ => TString::copy_from_slice(&bytes),
        }
    }
}

impl From<String> for TString {
    fn from(text: String) -> TString {
        text.into_bytes().into()
    }
}

impl From<Bytes> for TString {
    fn from(bytes: Bytes) -> TString {
        match bytes.len() {
            SHARE_FROM.. => TString(Repr::Shared(Arc::new(bytes))),
            _ => TString::copy_from_slice(&bytes),
        }
    }
}

impl From<&Bytes> for TString {
    fn from(bytes: &Bytes) -> TString {
        match bytes.len() {
            SHARE_FROM.. => bytes.clone().into(),
            _ => TString::copy_from_slice(bytes),
        }
    }
}

impl From<&TString> for Bytes {
    fn from(string: &TString) -> Bytes {
        match &string.0 {
            Repr::Shared(bytes) => Bytes::clone(bytes),
            _ => Bytes::copy_from_slice(string),
        }
    }
}

impl From<TString> for Bytes {
    fn from(string: TString) -> Bytes {
        Bytes::from(&string)
    }
}

impl FromIterator<u8> for TString {
    fn from_iter<I: IntoIterator<Item = u8>>(bytes: I) -> TString {
        bytes.into_iter().collect::<Vec<u8>>().into()
    }
}
