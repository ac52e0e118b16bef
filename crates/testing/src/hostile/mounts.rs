//! What a container sees is swapped for something else before it is started again: `swap PATH TARGET`, `worktree DIR REPOSITORY`, `fail FILE`.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::Outcome;
use super::room::clear;

/// A link in the place of a directory or file.
pub(super) fn swap(words: &[String]) -> Result<Outcome, String> {
    let [path, target] = words else { return Err("swap PATH TARGET".to_owned()) };
    let path = Path::new(path);
    let mut outcome = Outcome::default();
    let aside = path.with_extension("aside");
    let swapped = fs::rename(path, &aside).or_else(|_| {
        clear(path);
        Ok(())
    });
    outcome.note(path.display().to_string(), swapped.and_then(|()| symlink(target, path)));
    Ok(outcome)
}

/// A work tree that says it belongs to a repository that knows nothing of it.
pub(super) fn worktree(words: &[String]) -> Result<Outcome, String> {
    let [dir, repository] = words else { return Err("worktree DIR REPOSITORY".to_owned()) };
    let dir = Path::new(dir);
    let made_up = dir.join("made-up");
    let mut outcome = Outcome::default();
    let make = || -> std::io::Result<()> {
        clear(&dir.join(".git"));
        fs::create_dir_all(&made_up)?;
        fs::write(dir.join(".git"), format!("gitdir: {}\n", made_up.display()))?;
        fs::write(made_up.join("commondir"), format!("{repository}\n"))?;
        fs::write(made_up.join("gitdir"), format!("{}\n", dir.join(".git").display()))?;
        fs::write(made_up.join("HEAD"), "ref: refs/heads/main\n")
    };
    outcome.note(dir.display().to_string(), make());
    Ok(outcome)
}

/// Fails the first time, so that the session is started again, and says the second time what is there now.
pub(super) fn fail_once_swapped(words: &[String]) -> Result<Outcome, String> {
    let [mark] = words else { return Err("fail FILE".to_owned()) };
    if fs::File::options().write(true).create_new(true).open(mark).is_ok() {
        std::process::exit(3);
    }
    Ok(Outcome { did: vec!["started again".to_owned()], ..Outcome::default() })
}
