//! The order in which `auto` tries backends: `backends.auto` in the configuration file.

use std::sync::Arc;

use serde::Deserialize;
use wharf_engine::Order;
use wharf_model::{Code, Failure, Home};

/// The part of the file that is ours.
#[derive(Default, Deserialize)]
struct File {
    #[serde(default)]
    backends: Backends,
}

#[derive(Default, Deserialize)]
struct Backends {
    #[serde(default)]
    auto: Vec<String>,
}

/// The order of an instance, read at each use.
pub(crate) fn of(home: &Home) -> Order {
    let home = home.clone();
    Arc::new(move || read(&home))
}

fn read(home: &Home) -> Result<Vec<String>, Failure> {
    let path = home.config_file();
    let read = wharf_boundary::read_config(&path)
        .map_err(|error| Failure::system(format_args!("cannot read {}", path.display()), &error))?;
    let Some(text) = read else { return Ok(Vec::new()) };
    let file: File = toml::from_str(&text).map_err(|error| {
        Failure::new(Code::Invalid, format!("{}: {}", path.display(), error.message().trim()))
            .hint("[backends] has auto = [\"local\", \"tmux\", …]")
    })?;
    Ok(file.backends.auto)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_order_is_read_as_it_is_now() {
        let root = tempfile::tempdir().unwrap();
        let home = Home::below(root.path());
        let order = of(&home);
        assert_eq!(order().unwrap(), Vec::<String>::new());
        fs::create_dir_all(home.config()).unwrap();
        fs::write(home.config_file(), "backend = 'local'\n[backends]\nauto = ['tmux', 'local']\n").unwrap();
        assert_eq!(order().unwrap(), ["tmux", "local"]);
        fs::write(home.config_file(), "[backends]\nauto = 'tmux'\n").unwrap();
        assert_eq!(order().unwrap_err().code, Code::Invalid);
    }
}
