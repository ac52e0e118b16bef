//! Wharf's entries in an agent's settings: put there, taken away, looked for.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use wharf_boundary::{Dir, read_config};
use wharf_model::{Code, Failure};

use super::notify::{self, Obstacle};
use super::{HookRules, Style, entries, settings};
use crate::{Lookup, Profile, place};

/// What stands at the top of a file of our own.
const MARK: &str = "wharf hook";

/// Where an agent's hooks stand, and what was done about them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Hooked {
    /// The settings file.
    pub file: PathBuf,
    /// Whether Wharf's entries are in it.
    pub installed: bool,
    /// Whether the file was changed.
    pub changed: bool,
}

/// Writes Wharf's entries. `command` is what the agent is to call: `wharf hook NAME`, as words.
pub fn install(profile: &Profile, lookup: &Lookup<'_>, command: &[String]) -> Result<Hooked, Failure> {
    let (rules, file) = place_of(profile, lookup)?;
    let old = read(&file)?;
    let text = old.as_deref().unwrap_or_default();
    let new = match rules.style {
        Style::Json => {
            settings::with(text, &entries::wanted(rules, command)).map_err(|why| broken(&file, &why))?
        }
        Style::Notify => notify::with(text, command).map_err(|obstacle| blocked(&file, obstacle))?,
        Style::File if old.is_some() && !text.contains(MARK) => {
            return Err(Failure::new(Code::Refused, format!("{} is not Wharf's own", file.display()))
                .hint("move it away, and install again"));
        }
        Style::File => {
            let words = serde_json::to_string(command).expect("a list of words is JSON");
            rules.contents.replace("{command}", &words)
        }
    };
    let changed = old.as_deref() != Some(&new);
    if changed {
        write(&file, &new)?;
    }
    Ok(Hooked { file, installed: true, changed })
}

/// Takes Wharf's entries away again, and nothing else.
pub fn remove(profile: &Profile, lookup: &Lookup<'_>) -> Result<Hooked, Failure> {
    let (rules, file) = place_of(profile, lookup)?;
    let Some(old) = read(&file)? else { return Ok(Hooked { file, installed: false, changed: false }) };
    let new = match rules.style {
        Style::Json => settings::without(&old).map_err(|why| broken(&file, &why))?,
        Style::Notify => notify::without(&old).map_err(|obstacle| blocked(&file, obstacle))?,
        Style::File => {
            let own = old.contains(MARK);
            if own {
                let failed = |error| Failure::system(format!("cannot remove {}", file.display()), &error);
                fs::remove_file(&file).map_err(failed)?;
            }
            return Ok(Hooked { file, installed: false, changed: own });
        }
    };
    let changed = old != new;
    if changed {
        write(&file, &new)?;
    }
    Ok(Hooked { file, installed: false, changed })
}

/// Whether Wharf's entries are there.
pub fn status(profile: &Profile, lookup: &Lookup<'_>) -> Result<Hooked, Failure> {
    let (rules, file) = place_of(profile, lookup)?;
    let text = read(&file)?.unwrap_or_default();
    let installed = match rules.style {
        Style::Json => !settings::ours(&text).is_empty(),
        Style::Notify => notify::has(&text),
        Style::File => text.contains(MARK),
    };
    Ok(Hooked { file, installed, changed: false })
}

fn place_of<'p>(profile: &'p Profile, lookup: &Lookup<'_>) -> Result<(&'p HookRules, PathBuf), Failure> {
    let rules = profile.hooks.as_ref().ok_or_else(|| {
        Failure::unsupported("hooks", &profile.title)
            .hint("its state is read from its screen, its terminal and its transcript")
    })?;
    let file = place::path(&rules.file, lookup).ok_or_else(|| {
        Failure::new(Code::Invalid, format!("nobody says where {} keeps its settings", profile.title))
            .hint("set HOME")
    })?;
    // A link stays one: what it leads to is changed.
    Ok((rules, file.canonicalize().unwrap_or(file)))
}

/// The text of a settings file. A session may have put anything in its place.
fn read(file: &Path) -> Result<Option<String>, Failure> {
    read_config(file).map_err(|error| Failure::system(format!("cannot read {}", file.display()), &error))
}

/// Puts a new text in a file's place at once: a reader sees the old or the new one.
fn write(file: &Path, text: &str) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::system(format!("cannot write {}", file.display()), &error);
    let dir = file.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(dir).map_err(failed)?;
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let beside = format!(".{name}.wharf-{}", std::process::id());
    let dir = Dir::open(dir).map_err(failed)?;
    let put = || -> io::Result<()> {
        // Whatever stands there was left, or planted: it goes itself, and not what it leads to.
        dir.remove(&beside)?;
        let mode = dir.open_file(&*name).and_then(|old| Ok(old.metadata()?.permissions().mode() & 0o777));
        let mut new = dir.make_file(&beside, mode.unwrap_or(0o600))?;
        new.write_all(text.as_bytes())?;
        new.sync_all()?;
        dir.rename(&beside, &dir, &*name)
    };
    put().map_err(|error| {
        // The old file is whole; what is left of the new one may go.
        let _ = dir.remove(&beside);
        failed(error)
    })
}

fn broken(file: &Path, why: &str) -> Failure {
    Failure::new(Code::Invalid, format!("{} is not what the agent reads: {why}", file.display()))
        .hint("nothing was changed; put the file right first")
}

fn blocked(file: &Path, obstacle: Obstacle) -> Failure {
    match obstacle {
        Obstacle::Broken(why) => broken(file, &why),
        Obstacle::Taken(other) => Failure::new(
            Code::Refused,
            format!("{} already calls another program: {other}", file.display()),
        )
        .hint("only one can be named there; without it the state is read from the screen and the transcript"),
    }
}
