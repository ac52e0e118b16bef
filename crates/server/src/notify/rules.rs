//! Loads the notification rules, and reads them again when the file changes.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use serde::Deserialize;
use wharf_model::{Code, Failure, Home};

use super::rule::{Rule, Written};

/// The rules of the configuration file, read again when it changes.
#[derive(Debug)]
pub(crate) struct Rules {
    path: PathBuf,
    /// When the file was changed, and its length; none where there is no file.
    stamp: Option<(SystemTime, u64)>,
    all: Arc<Vec<Arc<Rule>>>,
}

/// The part of the file that is ours.
#[derive(Deserialize)]
struct File {
    #[serde(default)]
    notify: Vec<Written>,
}

impl Rules {
    pub(crate) fn of(home: &Home) -> Self {
        Self { path: home.config_file(), stamp: None, all: Arc::default() }
    }

    /// How many rules the file has now, or what is wrong with it.
    pub(crate) fn check(home: &Home) -> Result<usize, Failure> {
        Self::of(home).read().map(|rules| rules.len())
    }

    /// The rules as they are now. A file that is wrong is told once, and no rule of it holds.
    pub(super) fn now(&mut self) -> Arc<Vec<Arc<Rule>>> {
        let meta = fs::metadata(&self.path).ok();
        let stamp = meta.and_then(|meta| Some((meta.modified().ok()?, meta.len())));
        if stamp != self.stamp {
            self.stamp = stamp;
            self.all = Arc::new(self.read().unwrap_or_else(|failure| {
                tracing::warn!("{failure}: nobody is notified");
                Vec::new()
            }));
        }
        Arc::clone(&self.all)
    }

    fn read(&self) -> Result<Vec<Arc<Rule>>, Failure> {
        let shown = self.path.display();
        let read = wharf_boundary::read_config(&self.path)
            .map_err(|error| Failure::system(format_args!("cannot read {shown}"), &error))?;
        let Some(text) = read else { return Ok(Vec::new()) };
        // The message alone: what stands in the file may be a secret.
        let wrong = |why: &str| {
            Failure::new(Code::Invalid, format!("{shown}: {why}")).hint(
                "a rule has on = [\"asking\", …] and command = [\"program\", …] or webhook = \"http://…\"",
            )
        };
        let file: File = toml::from_str(&text).map_err(|error| wrong(error.message().trim()))?;
        let rules = file.notify.into_iter().enumerate().map(|(at, written)| {
            Rule::try_from(written).map(Arc::new).map_err(|why| wrong(&format!("notify {}: {why}", at + 1)))
        });
        rules.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_read_again_when_it_changes() {
        let root = tempfile::tempdir().unwrap();
        let home = Home::below(root.path());
        let mut rules = Rules::of(&home);
        assert_eq!(rules.now().len(), 0);
        fs::create_dir_all(home.config()).unwrap();
        let one = "detach_keys = 'ctrl-a'\n[[notify]]\non = ['idle']\ncommand = ['true']\n";
        fs::write(home.config_file(), one).unwrap();
        assert_eq!(rules.now().len(), 1);
        assert_eq!(Rules::check(&home), Ok(1));
        fs::write(home.config_file(), one.to_owned() + "[[notify]]\non = ['idle']\ncommand = ['false']\n")
            .unwrap();
        assert_eq!(rules.now().len(), 2);
        fs::write(home.config_file(), "[[notify]]\non = ['idle']\nwebhook = 'https://user:secret@host/'\n")
            .unwrap();
        assert_eq!(rules.now().len(), 0);
        let failure = Rules::check(&home).unwrap_err();
        assert!(failure.message.contains("notify 1") && !failure.message.contains("secret"), "{failure}");
    }
}
