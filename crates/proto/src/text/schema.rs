//! What the text format knows of a message: the names, numbers and kinds of its fields.
//!
//! The tables are generated from the `.proto` files; `MESSAGES` is sorted by full name.

/// A message type.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) name: &'static str,
    /// Whether this is the hidden key-and-value message of a map field.
    pub(super) is_map_entry: bool,
    /// In ascending order of number.
    pub(super) fields: &'static [Field],
}

/// One field of a message.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) number: u32,
    pub(super) kind: Kind,
    /// Lists and maps.
    pub(super) repeated: bool,
    /// The index of the oneof that this field is a member of.
    pub(super) oneof: Option<u8>,
}

/// The type of a field's values; messages and enums by index into their tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Double,
    Float,
    Int32,
    Int64,
    Uint32,
    Uint64,
    Fixed32,
    Fixed64,
    Bool,
    String,
    Bytes,
    Enum(usize),
    Message(usize),
}

/// An enum type with its value names, in the order of declaration.
#[derive(Debug)]
pub(super) struct Enum {
    pub(super) name: &'static str,
    pub(super) values: &'static [(&'static str, i32)],
}

impl Message {
    /// The message type with this full name.
    pub(super) fn find(full_name: &str) -> Option<&'static Message> {
        let at = MESSAGES
            .binary_search_by(|message| message.name.cmp(full_name))
            .ok()?;
        MESSAGES.get(at)
    }

    pub(super) fn field_named(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    pub(super) fn field_numbered(&self, number: u32) -> Option<&'static Field> {
        let at = self
            .fields
            .binary_search_by_key(&number, |field| field.number)
            .ok()?;
        self.fields.get(at)
    }
}

impl Enum {
    pub(super) fn number_of(&self, name: &str) -> Option<i32> {
        self.values
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, number)| *number)
    }

    pub(super) fn name_of(&self, number: i32) -> Option<&'static str> {
        self.values
            .iter()
            .find(|(_, known)| *known == number)
            .map(|(name, _)| *name)
    }
}

impl Kind {
    /// The type of a message field.
    pub(super) fn message(self) -> Option<&'static Message> {
        match self {
            Self::Message(index) => MESSAGES.get(index),
            _ => None,
        }
    }

    /// The type of an enum field.
    pub(super) fn enumeration(self) -> Option<&'static Enum> {
        match self {
            Self::Enum(index) => ENUMS.get(index),
            _ => None,
        }
    }
}

const fn one(name: &'static str, number: u32, kind: Kind) -> Field {
    Field {
        name,
        number,
        kind,
        repeated: false,
        oneof: None,
    }
}

const fn many(name: &'static str, number: u32, kind: Kind) -> Field {
    Field {
        name,
        number,
        kind,
        repeated: true,
        oneof: None,
    }
}

const fn member(name: &'static str, number: u32, kind: Kind, oneof: u8) -> Field {
    Field {
        name,
        number,
        kind,
        repeated: false,
        oneof: Some(oneof),
    }
}

include!("../gen/schema.rs");
