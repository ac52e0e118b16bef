//! The nix of a session, and what it says of itself.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::Command;
use wharf_backend::Progress;
use wharf_model::{Code, Failure, Text};

use crate::Result;
use crate::builders::Builders;

/// Where nix is when the session's PATH does not say.
const USUAL: [&str; 2] = ["/nix/var/nix/profiles/default/bin/nix", "/run/current-system/sw/bin/nix"];
/// The most that nix may print as an answer.
const MAX_ANSWER_LEN: u64 = 64 << 20;
/// How much of what nix says is kept for an error.
const TAIL_LINES: usize = 60;
/// How long a line of it may be.
const MAX_LINE_LEN: usize = 4096;

/// What decides how a nix behaves, and what was learnt of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    pub(crate) version: String,
    pub(crate) system: String,
    /// The directory of everything that it built.
    pub(crate) store: PathBuf,
}

/// A nix: its file, which one that was and of when, and its settings.
type Identity = (PathBuf, u64, i64, Vec<(Text, Text)>);

/// What was learnt of each nix, for as long as it is the same file with the same settings.
#[derive(Default)]
pub(crate) struct Programs {
    known: Mutex<HashMap<Identity, Arc<Program>>>,
}

/// A session's variables, as nix is run with them.
#[derive(Clone, Copy)]
pub(crate) struct Around<'a> {
    pub(crate) env: &'a [(Text, Text)],
    pub(crate) dir: &'a Path,
}

impl Around<'_> {
    /// A variable's value.
    pub(crate) fn var(&self, name: &str) -> Option<&Text> {
        self.env.iter().find(|(n, _)| n.as_bytes() == name.as_bytes()).map(|(_, value)| value)
    }

    /// The settings of nix that are variables.
    pub(crate) fn settings(&self) -> Vec<(Text, Text)> {
        let ours = |name: &[u8]| {
            name.starts_with(b"NIX_") || matches!(name, b"HOME" | b"XDG_CONFIG_HOME" | b"XDG_CONFIG_DIRS")
        };
        let mut settings: Vec<_> =
            self.env.iter().filter(|(name, _)| ours(name.as_bytes())).cloned().collect();
        settings.sort();
        settings
    }

    /// A command with these variables that ends with us.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().envs(self.env.iter().map(|(n, v)| (n.as_os_str(), v.as_os_str())));
        // It is no part of the session, and must not be taken for one.
        for (name, _) in self.env.iter().filter(|(name, _)| name.as_bytes().starts_with(b"WHARF_")) {
            command.env_remove(name.as_os_str());
        }
        command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.kill_on_drop(true);
        command
    }
}

impl Programs {
    /// The nix that a session finds.
    pub(crate) async fn find(&self, around: Around<'_>) -> Result<Arc<Program>> {
        let own = std::env::var_os("PATH").map(Text::from).unwrap_or_default();
        let path = look(around, &own).ok_or_else(|| {
            Failure::new(
                Code::Unavailable,
                "there is no nix, neither in the session's PATH nor in the daemon's",
            )
            .hint("install it (https://nixos.org/download, or `apt-get install nix-bin`), or leave --nix out")
        })?;
        let meta = std::fs::metadata(&path)
            .map_err(|error| Failure::system(format!("cannot look at {}", path.display()), &error))?;
        let key = (path.clone(), meta.ino(), meta.mtime(), around.settings());
        if let Some(known) = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Ok(Arc::clone(known));
        }
        let mut program =
            Program { path, version: String::new(), system: String::new(), store: PathBuf::new() };
        let root = Path::new("/");
        let version = program.ask(around, root, &["--version"], &Progress::default()).await?;
        let version = String::from_utf8_lossy(&version);
        program.version = version.split_whitespace().last().unwrap_or_default().to_owned();
        let both = "builtins.currentSystem + \" \" + builtins.storeDir";
        let expr = ["eval", "--impure", "--raw", "--expr", both];
        let answer = program.ask(around, root, &expr, &Progress::default()).await?;
        let answer = String::from_utf8_lossy(&answer);
        let (system, store) = answer.trim().split_once(' ').unwrap_or((answer.trim(), "/nix/store"));
        system.clone_into(&mut program.system);
        program.store = store.into();
        let program = Arc::new(program);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        // A handful is what there is; more than that are leftovers of tests and upgrades.
        if known.len() > 64 {
            known.clear();
        }
        known.insert(key, Arc::clone(&program));
        Ok(program)
    }
}

/// The first nix of the session's PATH, or of our own, or where it usually is.
fn look(around: Around<'_>, own: &Text) -> Option<PathBuf> {
    let path = around.var("PATH").map(Text::as_bytes).unwrap_or_default();
    let parts = |path: &'_ [u8]| -> Vec<PathBuf> {
        let parts = path.split(|byte| *byte == b':').filter(|part| part.starts_with(b"/"));
        parts.map(|part| Path::new(OsStr::from_bytes(part)).join("nix")).collect()
    };
    let home = around.var("HOME").map(|home| home.as_path().join(".nix-profile/bin/nix"));
    let usual = USUAL.iter().map(PathBuf::from);
    let mut all = parts(path).into_iter().chain(home).chain(parts(own.as_bytes())).chain(usual);
    all.find(|file| file.is_file())
}

impl Program {
    /// The words before every request: flakes are still called an experiment.
    pub(crate) const FIRST: [&'static str; 2] = ["--extra-experimental-features", "nix-command flakes"];

    /// Runs nix in a directory and answers with what it printed. Dropping the future ends it with its builders.
    pub(crate) async fn ask<S: AsRef<OsStr>>(
        &self,
        around: Around<'_>,
        dir: &Path,
        args: &[S],
        progress: &Progress,
    ) -> Result<Vec<u8>> {
        let mut command = around.command(&self.path);
        command.current_dir(dir).args(Self::FIRST).args(args);
        answer(command, progress).await.map_err(|said| match said {
            Said::Failure(failure) => failure,
            Said::Words(words) => {
                let what = args.first().map(|arg| arg.as_ref().to_string_lossy().into_owned());
                Failure::new(Code::Unavailable, format!("nix {} failed: {words}", what.unwrap_or_default()))
            }
        })
    }
}

/// Why a program gave no answer.
pub(crate) enum Said {
    /// It could not be asked.
    Failure(Failure),
    /// It said this.
    Words(String),
}

/// Runs a program to its end and answers with what it printed.
pub(crate) async fn answer(mut command: Command, progress: &Progress) -> std::result::Result<Vec<u8>, Said> {
    let name = command.as_std().get_program().to_string_lossy().into_owned();
    let broken = |error: std::io::Error| Said::Failure(Failure::system(format!("cannot run {name}"), &error));
    let mut child = command.spawn().map_err(broken)?;
    // Declared after the child, so that the tree is found before its root is reaped.
    let builders = Builders::of(child.id());
    let mut stdout = child.stdout.take().expect("it was asked for").take(MAX_ANSWER_LEN + 1);
    let mut stderr = BufReader::new(child.stderr.take().expect("it was asked for"));
    let mut printed = Vec::new();
    let told = async {
        let (mut tail, mut line) = (Vec::new(), Vec::new());
        while (&mut stderr).take(MAX_LINE_LEN as u64).read_until(b'\n', &mut line).await? > 0 {
            let text = plain(&line);
            line.clear();
            if text.is_empty() {
                continue;
            }
            progress.tell(text.as_str());
            if tail.len() == TAIL_LINES {
                tail.remove(0);
            }
            tail.push(text);
        }
        Ok::<_, std::io::Error>(tail)
    };
    let (read, tail) = tokio::join!(stdout.read_to_end(&mut printed), told);
    let (_, tail) = (read.map_err(broken)?, tail.map_err(broken)?);
    let status = child.wait().await.map_err(broken)?;
    builders.done();
    if printed.len() as u64 > MAX_ANSWER_LEN {
        return Err(Said::Words("it printed more than 64 MiB".to_owned()));
    }
    if status.success() {
        return Ok(printed);
    }
    let begins = tail.iter().position(|line| line.starts_with("error:")).unwrap_or(0);
    let words = tail[begins..].join(" ");
    let words = words.strip_prefix("error: ").unwrap_or(&words);
    if words.is_empty() {
        return Err(Said::Words(format!("it said nothing ({status})")));
    }
    Err(Said::Words(words.chars().take(1500).collect()))
}

/// A line for people: no escape sequences, no space around it.
fn plain(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let (mut out, mut chars) = (String::new(), text.chars());
    while let Some(c) = chars.next() {
        if c == '\x1b' {
            // Colours and the like: up to the letter that ends them.
            let _ = chars.find(char::is_ascii_alphabetic);
        } else if !c.is_control() {
            out.push(c);
        }
    }
    out.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_for_people() {
        assert_eq!(plain(b"\x1b[31;1merror:\x1b[0m \x1b[35mx\x1b[0m\n"), "error: x");
        assert_eq!(plain(b"  \r\n"), "");
    }

    #[test]
    fn the_sessions_own_nix_comes_first() {
        let root = tempfile::tempdir().unwrap();
        let nix = |name: &str| {
            let dir = root.path().join(name);
            std::fs::create_dir(&dir).unwrap();
            std::fs::write(dir.join("nix"), "").unwrap();
            Text::from(dir)
        };
        let (session, own) = (nix("session"), nix("own"));
        let around = |path: Text| [(Text::from("PATH"), path)];
        let found = |path: &Text| {
            look(Around { env: &around(path.clone()), dir: Path::new("/") }, &own).map(Text::from)
        };
        assert_eq!(found(&session), Some(root.path().join("session/nix").into()));
        assert_eq!(found(&"/nowhere:relative".into()), Some(root.path().join("own/nix").into()));
    }

    #[tokio::test]
    async fn an_error_is_what_was_said() {
        let around = Around { env: &[], dir: Path::new("/") };
        let mut command = around.command(Path::new("/bin/sh"));
        command.args(["-c", "echo building >&2; echo 'error: first' >&2; echo '  second' >&2; exit 1"]);
        match answer(command, &Progress::default()).await {
            Err(Said::Words(words)) => assert_eq!(words, "first second"),
            _ => panic!("it failed"),
        }
    }
}
