//! What names are unique in: `[names] scope` in the configuration file.

use std::sync::Arc;

use serde::Deserialize;
use wharf_engine::Naming;
use wharf_model::{Code, Failure, Home, NameScope, Names};

/// The part of the file that is ours.
#[derive(Default, Deserialize)]
struct File {
    #[serde(default)]
    names: Names,
}

/// What an instance's names are unique in, read at each use.
pub(crate) fn of(home: &Home) -> Naming {
    let home = home.clone();
    Arc::new(move || read(&home))
}

/// What they are unique in now, or what is wrong with the file.
pub(crate) fn read(home: &Home) -> Result<NameScope, Failure> {
    let path = home.config_file();
    let read = wharf_boundary::read_config(&path)
        .map_err(|error| Failure::system(format_args!("cannot read {}", path.display()), &error))?;
    let Some(text) = read else { return Ok(NameScope::default()) };
    // The message alone: what stands in the file may be a secret.
    let file: File = toml::from_str(&text).map_err(|error| {
        Failure::new(Code::Invalid, format!("{}: {}", path.display(), error.message().trim()))
            .hint("[names] has scope = \"instance\" or scope = \"group\"")
    })?;
    Ok(file.names.scope)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_scope_is_read_as_it_is_now() {
        let root = tempfile::tempdir().unwrap();
        let home = Home::below(root.path());
        let naming = of(&home);
        assert_eq!(naming(), Ok(NameScope::Instance));
        fs::create_dir_all(home.config()).unwrap();
        let write = |text: &str| fs::write(home.config_file(), text).unwrap();
        for (text, scope) in [
            ("", NameScope::Instance),
            ("backend = 'local'\n[names]\n", NameScope::Instance),
            ("[names]\nscope = 'group'\n[backends]\nauto = []\n", NameScope::Group),
            ("names.scope = 'instance'\n", NameScope::Instance),
        ] {
            write(text);
            assert_eq!(naming(), Ok(scope), "{text}");
        }
        for text in
            ["[names]\nscope = 'team'\n", "[names]\nscope = 1\n", "[names]\nscoop = 'group'\n", "names = 1\n"]
        {
            write(text);
            let failure = naming().unwrap_err();
            assert_eq!(failure.code, Code::Invalid, "{text}");
            assert!(failure.hint.is_some_and(|hint| hint.contains("scope = \"group\"")), "{text}");
        }
    }
}
