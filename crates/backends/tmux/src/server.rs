//! The private tmux server of one instance: its directory, its configuration, and how it is asked.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::process::Command;
use wharf_backend::Result;
use wharf_boundary::Dir;
use wharf_model::{Code, Failure};

/// How long tmux may take to answer. One that is hung must delay nobody for longer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// The server's socket, in its directory. Asked for from there, so that the length of the path does not matter.
const SOCKET: &str = "sock";
/// The longest path that a socket can be reached by.
const MAX_SOCKET_PATH_LEN: usize = 108;
/// The server's configuration.
const CONFIGURATION: &str = "conf";
/// The holder, by a name that stays the same when the program moves.
const HOLDER: &str = "wharf-holder";

/// What tmux is told first. Nothing of a user's own configuration is read.
///
/// The status line is off because it would show, and expand, what programs call their windows. A pane goes with its
/// session: how that ended stands in the exit record.
///
/// A program that asks for the terminal's colours waits for an answer, and tmux knows none while nobody is there: it is told
/// those that the engine answers with elsewhere. Whoever joins sees the colours of their own terminal.
const SETTINGS: &str = "\
set -s exit-empty on
set -s escape-time 10
set -sq set-clipboard off
set -g default-shell /bin/sh
set -g default-terminal screen-256color
set -g destroy-unattached off
set -g status off
set -g update-environment ''
set -g visual-bell off
set -g bell-action none
set -g window-size latest
set -gq allow-passthrough off
set -g allow-rename off
set -g automatic-rename off
set -g remain-on-exit off
set -g window-style fg=#e5e5e5,bg=#000000
set-hook -g client-attached 'set -w window-style default'
set-hook -g client-detached 'if -F \"#{==:#{session_attached},0}\" \"set -wu window-style\"'
";

/// A tmux server of our own.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    program: PathBuf,
    dir: PathBuf,
}

impl Server {
    /// The server of a directory. Nothing is started before a session is.
    pub(crate) fn new(program: PathBuf, dir: PathBuf) -> Self {
        Self { program, dir }
    }

    /// The program.
    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    /// The directory.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// The holder, as panes run it.
    pub(crate) fn holder(&self) -> PathBuf {
        self.dir.join(HOLDER)
    }

    /// What a person types to join a session.
    pub(crate) fn join_command(&self, session: &str) -> Vec<OsString> {
        let (socket, target) = (self.dir.join(SOCKET), format!("={session}"));
        let (tmux, target) = (self.program.as_os_str(), OsStr::new(&target));
        let join: Vec<&OsStr> = if socket.as_os_str().len() < MAX_SOCKET_PATH_LEN {
            vec![tmux, "-S".as_ref(), socket.as_os_str(), "attach-session".as_ref(), "-t".as_ref(), target]
        } else {
            let script = "cd \"$1\" && exec \"$2\" -S sock attach-session -t \"$3\"";
            vec![
                "sh".as_ref(),
                "-c".as_ref(),
                script.as_ref(),
                "sh".as_ref(),
                self.dir.as_os_str(),
                tmux,
                target,
            ]
        };
        join.into_iter().map(OsStr::to_owned).collect()
    }

    /// Makes the directory ready for a server that may be started now, or runs already.
    pub(crate) fn prepare(&self, holder: &Path) -> Result<()> {
        let make = || -> io::Result<()> {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.dir)?;
            let dir = Dir::open(&self.dir)?;
            let there = dir.read(CONFIGURATION, SETTINGS.len() as u64);
            if there.ok().as_deref() != Some(SETTINGS.as_bytes()) {
                dir.replace(CONFIGURATION, SETTINGS.as_bytes(), 0o600)?;
            }
            if fs::read_link(self.holder()).ok().as_deref() != Some(holder) {
                replace_link(&self.holder(), holder)?;
            }
            Ok(())
        };
        make().map_err(|error| Failure::system(format!("cannot prepare {}", self.dir.display()), &error))
    }

    /// Asks the server something, and starts it where that makes it start. Returns what it prints.
    pub(crate) async fn ask<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Result<String> {
        let mut command = Command::new(&self.program);
        command.args(["-S", SOCKET, "-f", CONFIGURATION]).args(args);
        // A server that is started by this keeps what it is given here, for itself and for every pane.
        command.current_dir(&self.dir).env_clear().env("WHARF_DOORS", &self.dir);
        // Beyond what tmux itself needs, what a daemon does that a holder starts for a process of its session.
        let kept = ["PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE"];
        let daemons =
            ["XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "WHARF_HOLDER"];
        for kept in kept.into_iter().chain(daemons) {
            if let Some(value) = std::env::var_os(kept) {
                command.env(kept, value);
            }
        }
        output(&mut command).await
    }

    /// Whether the server has no descriptor left. It cannot say so itself: it takes nobody's question then. Whoever made
    /// a socket is known without an answer.
    pub(crate) async fn is_out_of_descriptors(&self) -> bool {
        let Ok(dir) = fs::File::open(&self.dir) else { return false };
        let socket = format!("/proc/self/fd/{}/{SOCKET}", dir.as_raw_fd());
        let Ok(Ok(stream)) = tokio::time::timeout(ANSWER_TIMEOUT, UnixStream::connect(socket)).await else {
            return false;
        };
        let Some(pid) = stream.peer_cred().ok().and_then(|peer| peer.pid()) else { return false };
        let limits = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap_or_default();
        let most = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
        let most = most.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
        let open = fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, |entries| entries.count() as u64);
        most.is_some_and(|most| open + DESCRIPTORS_PER_PANE > most)
    }

    /// What tmux calls its version.
    pub(crate) async fn version(&self) -> Result<String> {
        let mut command = Command::new(&self.program);
        command.arg("-V").env_clear();
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        let printed = output(&mut command).await?;
        Ok(printed.trim().trim_start_matches("tmux ").to_owned())
    }
}

/// How many descriptors a server needs for one more pane, what brings its output, and whoever asks for it.
const DESCRIPTORS_PER_PANE: u64 = 6;

/// Whether the system has no terminal left: tmux says only that it could not fork.
pub(crate) fn out_of_terminals() -> bool {
    fs::OpenOptions::new().read(true).write(true).open("/dev/ptmx").is_err()
}

/// Runs tmux to its end, with a deadline.
pub(crate) async fn output(command: &mut Command) -> Result<String> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let ran = tokio::time::timeout(ANSWER_TIMEOUT, command.output()).await;
    let ran = ran.map_err(|_| {
        Failure::new(Code::Timeout, format!("tmux did not answer within {} s", ANSWER_TIMEOUT.as_secs()))
            .hint("its server may be stopped or hung; sessions on other backends are not affected")
    })?;
    let ran = ran.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            Failure::new(Code::Unavailable, "there is no tmux here").hint("install tmux")
        }
        _ => Failure::system("cannot run tmux", &error),
    })?;
    if !ran.status.success() {
        let said = String::from_utf8_lossy(&ran.stderr);
        return Err(Failure::new(Code::Unreachable, format!("tmux refused: {}", said.trim())));
    }
    Ok(String::from_utf8_lossy(&ran.stdout).into_owned())
}

/// A link is there, old or new.
fn replace_link(path: &Path, target: &Path) -> io::Result<()> {
    let mut fresh = path.as_os_str().to_owned();
    fresh.push(format!(".{}.new", std::process::id()));
    let fresh = PathBuf::from(fresh);
    let _ = fs::remove_file(&fresh);
    symlink(target, &fresh)?;
    fs::rename(&fresh, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_in_the_place_of_the_configuration_is_neither_followed_nor_waited_for() {
        let root = tempfile::tempdir().unwrap();
        let server = Server::new("tmux".into(), root.path().join("tmux"));
        server.prepare(Path::new("/holder")).unwrap();
        let conf = root.path().join("tmux").join(CONFIGURATION);
        let precious = root.path().join("precious");
        fs::write(&precious, SETTINGS).unwrap();
        fs::remove_file(&conf).unwrap();
        symlink(&precious, &conf).unwrap();
        server.prepare(Path::new("/holder")).unwrap();
        assert!(fs::symlink_metadata(&conf).unwrap().is_file(), "a link is taken for the configuration");
        fs::remove_file(&conf).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&conf).status().unwrap();
        assert!(made.success());
        server.prepare(Path::new("/holder")).unwrap();
        assert_eq!(fs::read_to_string(&conf).unwrap(), SETTINGS);
        // One without an end is not read.
        let huge = fs::File::options().write(true).open(&conf).unwrap();
        huge.set_len(1 << 40).unwrap();
        server.prepare(Path::new("/holder")).unwrap();
        assert_eq!(fs::metadata(&conf).unwrap().len(), SETTINGS.len() as u64);
    }
}
