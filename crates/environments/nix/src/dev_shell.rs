//! A dev shell as nix prints it, and what of it is for a command.

use std::collections::BTreeMap;

use serde::Deserialize;
use wharf_model::Text;

/// What `nix print-dev-env --json` prints.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DevShell {
    pub(crate) variables: BTreeMap<String, Variable>,
    #[serde(default)]
    pub(crate) bash_functions: BTreeMap<String, String>,
}

/// A variable of a dev shell.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Variable {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    #[serde(default)]
    pub(crate) value: Value,
}

/// Its value.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(untagged)]
pub(crate) enum Value {
    Text(String),
    List(Vec<String>),
    Map(BTreeMap<String, String>),
    #[default]
    None,
}

/// What belongs to the build that the shell was captured from, and not to the shell.
const NOISE: &[&str] = &[
    "BASHOPTS",
    "HOME",
    "NIX_BUILD_TOP",
    "NIX_ENFORCE_PURITY",
    "NIX_LOG_FD",
    "NIX_REMOTE",
    "OLDPWD",
    "PPID",
    "PWD",
    "SHELL",
    "SHELLOPTS",
    "SHLVL",
    "SSL_CERT_FILE",
    "TEMP",
    "TEMPDIR",
    "TERM",
    "TMP",
    "TMPDIR",
    "TZ",
    "UID",
    "_",
    "shellHook",
];

/// The PATH of a build that was given none.
const NO_PATH: &str = "/path-not-set";

impl DevShell {
    /// The variables that a command gets.
    pub(crate) fn exported(&self) -> Vec<(Text, Text)> {
        let outputs = self.outputs();
        let kept = self.variables.iter().filter_map(|(name, variable)| match &variable.value {
            Value::Text(value) if variable.kind == "exported" => Some((name.as_str(), value.as_str())),
            _ => None,
        });
        kept.filter(|(name, value)| !is_noise(name) && !outputs.contains(name) && *value != NO_PATH)
            .map(|(name, value)| (name.into(), value.into()))
            .collect()
    }

    /// Names of the build's results: they point at the captured shell, and a build that took them for its own
    /// would fail.
    fn outputs(&self) -> Vec<&str> {
        self.text("outputs").map(|outputs| outputs.split_whitespace().collect()).unwrap_or_default()
    }

    /// A variable that is text.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        match self.variables.get(name).map(|variable| &variable.value) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }
}

pub(crate) fn is_noise(name: &str) -> bool {
    NOISE.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_belongs_to_the_build_is_dropped() {
        let json = r#"{"bashFunctions":{"f":" echo hi\n"},"variables":{
            "FOO":{"type":"exported","value":"bar"}, "HOME":{"type":"exported","value":"/homeless-shelter"},
            "TMPDIR":{"type":"exported","value":"/b"}, "NIX_BUILD_TOP":{"type":"exported","value":"/b"},
            "PWD":{"type":"exported","value":"/b"}, "local":{"type":"var","value":"x"},
            "list":{"type":"array","value":["a","b"]}, "map":{"type":"associative","value":{"k":"v"}},
            "odd":{"type":"unknown"}, "outputs":{"type":"exported","value":"out dev"},
            "out":{"type":"exported","value":"/store/x"}, "dev":{"type":"exported","value":"/store/y"},
            "shellHook":{"type":"exported","value":"echo"}}}"#;
        let shell: DevShell = serde_json::from_str(json).unwrap();
        let expected: Vec<(Text, Text)> =
            vec![("FOO".into(), "bar".into()), ("outputs".into(), "out dev".into())];
        assert_eq!(shell.exported(), expected);
        assert_eq!(shell.text("shellHook"), Some("echo"));
        assert_eq!(shell.bash_functions["f"], " echo hi\n");
    }
}
