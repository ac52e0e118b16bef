//! The user's configuration file.

use std::path::Path;

use serde::Deserialize;
use wharf_model::{Failure, Home, Names};

use crate::output;
use crate::trouble::invalid;

/// What `config.toml` may say.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct Config {
    /// The keys that leave an attached session.
    pub(crate) detach_keys: Option<String>,
    /// The backend of sessions that name none.
    pub(crate) backend: Option<String>,
    /// What names are unique in. The daemon's to go by; what is wrong with it is told here, with its place.
    #[serde(default)]
    pub(crate) names: Names,
}

/// Those that are read here, and those that the daemon reads.
const KEYS: [&str; 5] = ["detach_keys", "backend", "notify", "backends", "names"];

/// Reads the file; none is the same as an empty one. Keys that mean nothing are told and passed over.
pub(crate) fn load(home: &Home) -> Result<Config, Failure> {
    let path = home.config_file();
    let read = wharf_boundary::read_config(&path)
        .map_err(|error| Failure::system(format_args!("cannot read {}", path.display()), &error))?;
    let Some(text) = read else { return Ok(Config::default()) };
    let (config, unknown) = parse(&text, &path)?;
    for key in unknown {
        output::note(format!("warning: {}: {key:?} means nothing here", path.display()));
    }
    Ok(config)
}

/// The backend of sessions that name none, where the user has chosen one: by a variable, or by the file.
pub(crate) fn backend(home: &Home) -> Result<Option<String>, Failure> {
    match std::env::var("WHARF_BACKEND").ok().filter(|name| !name.is_empty()) {
        None => Ok(load(home)?.backend),
        named => Ok(named),
    }
}

/// The configuration, and the keys that mean nothing.
fn parse(text: &str, path: &Path) -> Result<(Config, Vec<String>), Failure> {
    let wrong = |error: &toml::de::Error| {
        let (line, column) = position(text, error.span().map_or(0, |span| span.start));
        invalid(format!("{}:{line}:{column}: {}", path.display(), error.message().trim()))
            .hint("correct the file, or move it away")
    };
    let table: toml::Table = toml::from_str(text).map_err(|error| wrong(&error))?;
    let unknown = table.keys().filter(|key| !KEYS.contains(&key.as_str())).cloned().collect();
    let config = toml::from_str(text).map_err(|error| wrong(&error))?;
    Ok((config, unknown))
}

/// Line and column of a byte, from 1.
fn position(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (line, column)
}

#[cfg(test)]
mod tests {
    use wharf_model::NameScope;

    use super::*;

    #[test]
    fn known_keys_are_read_and_others_named() {
        let text = "detach_keys = \"ctrl-a d\"\nnew = 1\n[later]\nx = 2\n[names]\nscope = \"group\"\n";
        let (config, unknown) = parse(text, Path::new("c")).unwrap();
        assert_eq!(
            config,
            Config {
                detach_keys: Some("ctrl-a d".into()),
                names: Names { scope: NameScope::Group },
                ..Config::default()
            }
        );
        assert_eq!(unknown, ["later", "new"]);
    }

    #[test]
    fn errors_name_line_and_column() {
        for (text, place) in [
            ("a = 1\nb = \n", "c:2:"),
            ("backend = 5", "c:1:11:"),
            ("[names]\nscope = 'team'", "c:2:9:"),
            ("[names]\nscoop = 1", "c:2:1:"),
        ] {
            let failure = parse(text, Path::new("c")).unwrap_err();
            assert!(failure.message.starts_with(place), "{}", failure.message);
        }
    }

    #[test]
    fn no_file_is_an_empty_one() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(load(&Home::below(root.path())).unwrap(), Config::default());
    }
}
