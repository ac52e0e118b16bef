//! Defines a command's variables as a base and a list of changes.

use serde::{Deserialize, Serialize};

use crate::Text;

/// The variables that a session's command gets: a base, then changes in order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    /// What the changes start from.
    #[serde(default)]
    pub base: EnvironmentBase,
    /// The caller's variables, where the base is the caller.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub caller: Vec<(Text, Text)>,
    /// The changes, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
}

/// What an environment starts from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EnvironmentBase {
    /// The caller's own variables.
    #[default]
    Caller,
    /// What the user's login shell exports.
    Login,
    /// Nothing at all.
    Empty,
}

/// One change to an environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// Sets a variable.
    Set(Text, Text),
    /// Appends to a variable, with a separator where it has a value already: name, value, separator.
    Append(Text, Text, Text),
    /// Takes a variable away.
    Unset(Text),
}

impl Environment {
    /// An environment of exactly these variables.
    pub fn exactly(vars: impl IntoIterator<Item = (Text, Text)>) -> Self {
        Self {
            base: EnvironmentBase::Empty,
            caller: Vec::new(),
            changes: vars.into_iter().map(|(name, value)| Change::Set(name, value)).collect(),
        }
    }

    /// Applies the changes to `base`; a later change wins, and the order of first appearance is kept.
    pub fn apply(&self, base: Vec<(Text, Text)>) -> Vec<(Text, Text)> {
        let mut vars = base;
        for change in &self.changes {
            match change {
                Change::Set(name, value) => set(&mut vars, name, value.clone()),
                Change::Unset(name) => vars.retain(|(n, _)| n != name),
                Change::Append(name, value, separator) => {
                    let old =
                        vars.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_bytes()).unwrap_or_default();
                    let joined = if old.is_empty() {
                        value.clone()
                    } else {
                        [old, separator.as_bytes(), value.as_bytes()].concat().into()
                    };
                    set(&mut vars, name, joined);
                }
            }
        }
        vars
    }
}

fn set(vars: &mut Vec<(Text, Text)>, name: &Text, value: Text) {
    match vars.iter_mut().find(|(n, _)| n == name) {
        Some((_, old)) => *old = value,
        None => vars.push((name.clone(), value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_apply_in_order() {
        let environment = Environment {
            changes: vec![
                Change::Append("PATH".into(), "/b".into(), ":".into()),
                Change::Append("NEW".into(), "x".into(), ",".into()),
                Change::Set("A".into(), "2".into()),
                Change::Unset("GONE".into()),
            ],
            ..Environment::default()
        };
        let base = vec![("PATH".into(), "/a".into()), ("A".into(), "1".into()), ("GONE".into(), "1".into())];
        let expected: Vec<(Text, Text)> =
            vec![("PATH".into(), "/a:/b".into()), ("A".into(), "2".into()), ("NEW".into(), "x".into())];
        assert_eq!(environment.apply(base), expected);
    }
}
