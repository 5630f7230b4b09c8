//! The keys that a table of a file may have, asked of the type that reads it.
//!
//! A misspelt key is answered with the nearest right one, so the right ones must be known; a second list of them would drift
//! from the struct. Serde hands the fields' names to whoever deserialises a struct: this deserialiser takes them and stops.

use serde::de::{Deserialize, Deserializer, Error, Visitor, value::Error as Stopped};
use serde::forward_to_deserialize_any;

/// The names of the fields of `T`, as they are written in a file; none where `T` is no struct.
pub fn keys_of<'de, T: Deserialize<'de>>() -> &'static [&'static str] {
    let mut keys: &'static [&'static str] = &[];
    // It always stops with an error: only what it saw on the way is wanted.
    let _ = T::deserialize(Names(&mut keys));
    keys
}

struct Names<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for Names<'_> {
    type Error = Stopped;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Stopped> {
        Err(Stopped::custom("only names are asked for"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Stopped> {
        *self.0 = fields;
        self.deserialize_any(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize)]
    #[allow(dead_code)]
    struct Table {
        name: String,
        #[serde(rename = "again-every")]
        again: Option<u32>,
    }

    #[test]
    fn names_are_those_of_the_file() {
        assert_eq!(keys_of::<Table>(), ["name", "again-every"]);
        assert!(keys_of::<u32>().is_empty());
    }
}
