//! What the engine takes from the user's configuration file, read at each use.

use std::sync::Arc;

use wharf_api::ConfigFile;
use wharf_engine::{Naming, Order};
use wharf_model::{Failure, Home, NameScope};

/// What an instance's names are unique in.
pub(crate) fn naming(home: &Home) -> Naming {
    let home = home.clone();
    Arc::new(move || name_scope(&home))
}

/// What they are unique in now, or what is wrong with the file.
pub(crate) fn name_scope(home: &Home) -> Result<NameScope, Failure> {
    Ok(ConfigFile::load(home)?.names?.scope)
}

/// The order in which `auto` tries an instance's backends.
pub(crate) fn order(home: &Home) -> Order {
    let home = home.clone();
    Arc::new(move || Ok(ConfigFile::load(&home)?.backends?.auto))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use wharf_model::Code;

    use super::*;

    #[test]
    fn the_scope_is_read_as_it_is_now() {
        let root = tempfile::tempdir().unwrap();
        let home = Home::below(root.path());
        let naming = naming(&home);
        assert_eq!(naming(), Ok(NameScope::Instance));
        fs::create_dir_all(home.config()).unwrap();
        let write = |text: &str| fs::write(home.config_file(), text).unwrap();
        for (text, scope) in [
            ("", NameScope::Instance),
            ("backend = 'local'\n[names]\n", NameScope::Instance),
            ("[names]\nscope = 'group'\n[backends]\nauto = []\n", NameScope::Group),
            ("names.scope = 'instance'\n", NameScope::Instance),
            ("notify = 'wrong'\n", NameScope::Instance),
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

    #[test]
    fn the_order_is_read_as_it_is_now() {
        let root = tempfile::tempdir().unwrap();
        let home = Home::below(root.path());
        let order = order(&home);
        assert_eq!(order().unwrap(), Vec::<String>::new());
        fs::create_dir_all(home.config()).unwrap();
        fs::write(home.config_file(), "backend = 'local'\n[backends]\nauto = ['tmux', 'local']\n").unwrap();
        assert_eq!(order().unwrap(), ["tmux", "local"]);
        fs::write(home.config_file(), "[backends]\nauto = 'tmux'\n").unwrap();
        assert_eq!(order().unwrap_err().code, Code::Invalid);
    }
}
