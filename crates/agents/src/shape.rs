//! Reads facts out of an agent's JSON by the paths and expected values that its profile declares.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::{Deserializer, Error};
use serde_json::{Map, Value};
use wharf_model::State;

use crate::Told;

/// How one kind of JSON that an agent writes is read.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shape {
    /// What must stand in it.
    #[serde(default)]
    pub when: BTreeMap<Path, ExpectedShape>,
    /// What must not.
    #[serde(default)]
    pub unless: BTreeMap<Path, ExpectedShape>,
    /// The list of which each element is a fact of its own. Paths that begin with `./` start at the element.
    #[serde(default)]
    pub each: Option<Path>,
    /// What it is.
    pub kind: String,
    /// The state that follows from it.
    #[serde(default)]
    pub state: Option<State>,
    /// What is taken over, and from where: the first path that leads to something.
    #[serde(default)]
    pub data: BTreeMap<String, Paths>,
    /// What must have been found, and not be an empty text, for it to count.
    #[serde(default)]
    pub needs: Vec<String>,
}

/// A place in JSON: `/message/content/*/text`. A `*` stands for every element of a list.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path {
    steps: Vec<String>,
    relative: bool,
}

/// One place, or several to try in turn.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Paths {
    /// One.
    One(Path),
    /// The first that leads to something.
    First(Vec<Path>),
}

/// What is expected at a place.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum ExpectedShape {
    /// True or false; what is not there is false.
    Flag(bool),
    /// This word, or `*` for anything that is there.
    Word(String),
    /// One of these words.
    Words(Vec<String>),
}

/// A list in foreign JSON may be long: so many of its elements are looked at.
const MAX_ELEMENTS: usize = 4096;

impl Shape {
    /// The facts that it sees in this JSON.
    pub(crate) fn read(&self, json: &Value) -> Vec<Told> {
        let elements = match &self.each {
            Some(path) => path.find(json, json),
            None => vec![json],
        };
        elements.into_iter().filter_map(|element| self.one(json, element)).collect()
    }

    fn one(&self, json: &Value, element: &Value) -> Option<Told> {
        let holds = |(path, expected): (&Path, &ExpectedShape)| {
            expected.fits(path.find(json, element).first().copied())
        };
        if !self.when.iter().all(holds) || self.unless.iter().any(holds) {
            return None;
        }
        let mut data = Map::new();
        for (name, paths) in &self.data {
            if let Some(value) = paths.take(json, element) {
                data.insert(name.clone(), value);
            }
        }
        let there = |name: &String| data.get(name).is_some_and(|value| value.as_str() != Some(""));
        if !self.needs.iter().all(there) {
            return None;
        }
        Some(Told { kind: self.kind.clone(), state: self.state, data: Value::Object(data) })
    }
}

/// The facts that the shapes see. A line may hold several, of several kinds: every shape that fits adds its own.
pub(crate) fn read_all(shapes: &[Shape], json: &Value) -> Vec<Told> {
    shapes.iter().flat_map(|shape| shape.read(json)).collect()
}

impl Path {
    /// Everything that it leads to.
    pub(crate) fn find<'v>(&self, root: &'v Value, element: &'v Value) -> Vec<&'v Value> {
        let mut found = vec![if self.relative { element } else { root }];
        for step in &self.steps {
            found = found
                .into_iter()
                .flat_map(|value| match (value, step.as_str()) {
                    (Value::Array(list), "*") => list.iter().take(MAX_ELEMENTS).collect(),
                    (Value::Array(list), step) => {
                        step.parse::<usize>().ok().and_then(|index| list.get(index)).into_iter().collect()
                    }
                    (value, step) => value.get(step).into_iter().collect::<Vec<_>>(),
                })
                .filter(|value| !value.is_null())
                .take(MAX_ELEMENTS)
                .collect();
        }
        found
    }

    fn has_star(&self) -> bool {
        self.steps.iter().any(|step| step == "*")
    }
}

impl<'de> Deserialize<'de> for Path {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let (relative, rest) = match text.strip_prefix('.') {
            Some(rest) => (true, rest),
            None => (false, text.as_str()),
        };
        match rest.strip_prefix('/') {
            Some("") => Ok(Self { steps: Vec::new(), relative }),
            Some(steps) => Ok(Self { steps: steps.split('/').map(str::to_owned).collect(), relative }),
            None => Err(D::Error::custom(format!("{text:?} is no path: it begins with / or ./"))),
        }
    }
}

impl Paths {
    pub(crate) fn take(&self, json: &Value, element: &Value) -> Option<Value> {
        match self {
            Self::One(path) => taken(path, json, element),
            Self::First(paths) => paths.iter().find_map(|path| taken(path, json, element)),
        }
    }
}

/// What a path leads to. Several texts are one text with line breaks.
fn taken(path: &Path, json: &Value, element: &Value) -> Option<Value> {
    let found = path.find(json, element);
    if !path.has_star() {
        return found.first().map(|value| (*value).clone());
    }
    let texts: Option<Vec<&str>> = found.iter().map(|value| value.as_str()).collect();
    match texts {
        _ if found.is_empty() => None,
        Some(texts) => Some(texts.join("\n").into()),
        None => Some(Value::Array(found.into_iter().cloned().collect())),
    }
}

impl ExpectedShape {
    fn fits(&self, value: Option<&Value>) -> bool {
        match self {
            Self::Flag(flag) => value.and_then(Value::as_bool).unwrap_or(false) == *flag,
            Self::Word(word) if word == "*" => value.is_some(),
            Self::Word(word) => value.and_then(Value::as_str) == Some(word),
            Self::Words(words) => {
                value.and_then(Value::as_str).is_some_and(|text| words.iter().any(|word| word == text))
            }
        }
    }
}
