//! Loads the notification rules, and reads them again when the file changes.

use std::fs;
use std::sync::Arc;
use std::time::SystemTime;

use wharf_api::{ConfigFile, NOTIFY_HINT};
use wharf_model::{Code, Failure, Home};

use super::rule::Rule;

/// The rules of the configuration file, read again when it changes.
#[derive(Debug)]
pub(crate) struct Rules {
    home: Home,
    /// When the file was changed, and its length; none where there is no file.
    stamp: Option<(SystemTime, u64)>,
    all: Arc<Vec<Arc<Rule>>>,
}

impl Rules {
    pub(crate) fn of(home: &Home) -> Self {
        Self { home: home.clone(), stamp: None, all: Arc::default() }
    }

    /// How many rules the file has now, or what is wrong with it.
    pub(crate) fn check(home: &Home) -> Result<usize, Failure> {
        Self::of(home).read().map(|rules| rules.len())
    }

    /// The rules as they are now. A file that is wrong is told once, and no rule of it holds.
    pub(super) fn now(&mut self) -> Arc<Vec<Arc<Rule>>> {
        let meta = fs::metadata(self.home.config_file()).ok();
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
        let rules = ConfigFile::load(&self.home)?.notify?.into_iter().enumerate().map(|(at, rule)| {
            Rule::try_from(rule).map(Arc::new).map_err(|why| {
                let file = self.home.config_file();
                Failure::new(Code::Invalid, format!("{}: notify {}: {why}", file.display(), at + 1))
                    .hint(NOTIFY_HINT)
            })
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
