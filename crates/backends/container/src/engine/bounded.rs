//! Reads lists and labels of an engine's answer up to a number of items: a short text can hold millions.

use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::owner;

/// A list of at most so many items. Nothing in its place is an empty one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct List<T, const MAX: usize>(pub(crate) Vec<T>);

impl<T, const MAX: usize> Default for List<T, MAX> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>, const MAX: usize> Deserialize<'de> for List<T, MAX> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Items<T, const MAX: usize>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>, const MAX: usize> Visitor<'de> for Items<T, MAX> {
            type Value = List<T, MAX>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a list of at most {MAX} items")
            }

            fn visit_none<E>(self) -> Result<Self::Value, E> {
                Ok(List::default())
            }

            fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
                from.deserialize_seq(self)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Self::Value, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = from.next_element()? {
                    if items.len() == MAX {
                        return Err(too_many(MAX));
                    }
                    items.push(item);
                }
                Ok(List(items))
            }
        }

        from.deserialize_option(Items(PhantomData))
    }
}

/// A table of at most so many entries. Nothing in its place is an empty one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Table<T, const MAX: usize>(pub(crate) HashMap<String, T>);

impl<T, const MAX: usize> Default for Table<T, MAX> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<'de, T: Deserialize<'de>, const MAX: usize> Deserialize<'de> for Table<T, MAX> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let entries = Entries { most: MAX, wanted: |_| true, of: PhantomData };
        from.deserialize_option(entries).map(Self)
    }
}

/// The labels that we set. All others are read past: a container has those of its image, whoever made that, and one
/// image must not make the list of all unreadable.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct OwnLabels(pub(crate) HashMap<String, String>);

impl<'de> Deserialize<'de> for OwnLabels {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let entries = Entries { most: usize::MAX, wanted: owner::is_own_label, of: PhantomData };
        from.deserialize_option(entries).map(Self)
    }
}

struct Entries<T> {
    most: usize,
    wanted: fn(&str) -> bool,
    of: PhantomData<T>,
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for Entries<T> {
    type Value = HashMap<String, T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a table of at most {} entries", self.most)
    }

    fn visit_none<E>(self) -> Result<Self::Value, E> {
        Ok(HashMap::new())
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_map(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Self::Value, A::Error> {
        let mut entries = HashMap::new();
        while let Some(key) = from.next_key::<String>()? {
            if !(self.wanted)(&key) {
                from.next_value::<IgnoredAny>()?;
                continue;
            }
            if entries.len() == self.most {
                return Err(too_many(self.most));
            }
            entries.insert(key, from.next_value()?);
        }
        Ok(entries)
    }
}

fn too_many<E: Error>(most: usize) -> E {
    E::custom(format_args!("the engine lists more than {most} of something"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_item_more_than_allowed_is_refused() {
        type Three = List<IgnoredAny, 3>;
        type Two = Table<u8, 2>;
        assert_eq!(serde_json::from_str::<Three>("[{},1,[]]").unwrap().0.len(), 3);
        assert_eq!(serde_json::from_str::<Three>("null").unwrap().0.len(), 0);
        let error = serde_json::from_str::<Three>("[{},{},{},{}]").unwrap_err();
        assert!(error.to_string().contains("more than 3"), "{error}");
        serde_json::from_str::<Three>("{}").unwrap_err();
        assert_eq!(serde_json::from_str::<Two>(r#"{"a":1,"b":2}"#).unwrap().0.len(), 2);
        assert_eq!(serde_json::from_str::<Two>("null").unwrap().0.len(), 0);
        serde_json::from_str::<Two>(r#"{"a":1,"b":2,"c":3}"#).unwrap_err();
    }

    #[test]
    fn labels_of_others_are_read_past_whatever_they_are_called() {
        let others = (0..999).map(|number| format!(r#""l{number}":"x","wharf.l{number}":"x""#));
        let others: Vec<String> = others.collect();
        let text = format!(r#"{{"wharf.run":"1",{}}}"#, others.join(","));
        let labels: OwnLabels = serde_json::from_str(&text).unwrap();
        assert_eq!(labels.0, HashMap::from([("wharf.run".to_owned(), "1".to_owned())]));
    }
}
