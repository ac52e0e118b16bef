//! Starts a daemon where none answers.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::pipe::PipeFlags;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use wharf_holder_client::client::Event;
use wharf_model::{Code, Failure, Home, SessionId, Text};

use crate::{Client, check_ours, daemon_environment, daemon_log, linux, private_directory};

/// The variable that names the descriptor on which a daemon says that it is ready, or why not.
pub const READY_FD_VARIABLE: &str = "WHARF_READY_FD";
/// What a ready daemon writes there. A failure is written as JSON instead.
pub const READY_MARK: u8 = b'+';

/// How long a daemon may take until it is ready: it adopts every session first.
const START_TIMEOUT: Duration = Duration::from_secs(20);
/// How long to wait for another that starts or ends at the same time.
const OTHER_DAEMON_TIMEOUT: Duration = Duration::from_secs(10);

/// A client of the instance's daemon, which is started where none answers.
pub async fn ensure(home: &Home) -> Result<Client, Failure> {
    ensure_with(home, false).await
}

/// The same; where one is started, it takes over the hard limits of this process, whatever they do to its sessions.
pub async fn ensure_under_limits(home: &Home) -> Result<Client, Failure> {
    ensure_with(home, true).await
}

async fn ensure_with(home: &Home, inherit_limits: bool) -> Result<Client, Failure> {
    let exe = std::env::current_exe()
        .map_err(|error| Failure::system("cannot find the program that is running", &error))?;
    reach(home, &exe, inherit_limits).await
}

/// The same with a given program, which is run as `EXE daemon run`.
pub async fn ensure_by(home: &Home, exe: &Path) -> Result<Client, Failure> {
    reach(home, exe, false).await
}

async fn reach(home: &Home, exe: &Path, inherit_limits: bool) -> Result<Client, Failure> {
    // Before anything that listens there is believed.
    check_ours(home.state())?;
    let begun = Instant::now();
    let mut pause = Duration::from_millis(5);
    loop {
        match Client::try_connect(home.socket()).await {
            Ok(client) => return Ok(client),
            Err(refusal) if !refusal.absent => return Err(refusal.failure),
            Err(_) => {}
        }
        match start(home, exe, inherit_limits).await {
            Ok(()) => return Client::connect(home.socket()).await,
            // Another holds the instance: it is about to listen, or about to go.
            Err(failure) if failure.code == Code::Locked => {
                if begun.elapsed() > OTHER_DAEMON_TIMEOUT {
                    let message = format!("{failure}, and does not answer at {}", home.socket().display());
                    let hint = format!("{} says what it does", home.daemon_log().display());
                    return Err(Failure::new(Code::Unreachable, message).hint(hint));
                }
            }
            Err(failure) => return Err(failure),
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_millis(500));
    }
}

/// Starts a daemon and waits until it is ready.
async fn start(home: &Home, exe: &Path, inherit_limits: bool) -> Result<(), Failure> {
    private_directory(home.state())?;
    let (ours, theirs) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)
        .map_err(|errno| Failure::system("cannot make a pipe", &io::Error::from(errno)))?;
    let mut child = match holder() {
        Some(session) if spawn_outside(home, &session, &theirs, inherit_limits).is_ok() => None,
        _ => Some(spawn(home, exe, &theirs, inherit_limits)?),
    };
    drop(theirs);
    let said = tokio::time::timeout(START_TIMEOUT, read(ours)).await;
    let log = home.daemon_log();
    let failure = match said {
        Ok(Ok(said)) if said == [READY_MARK] => return Ok(()),
        Ok(Ok(said)) => serde_json::from_slice(&said).unwrap_or_else(|_| {
            // It went before it could say why.
            Failure::new(
                Code::Unavailable,
                format!(
                    "the daemon ended before it was ready{}",
                    child.as_mut().map_or_else(String::new, status)
                ),
            )
            .hint(format!("{} says why", log.display()))
        }),
        Ok(Err(error)) => Failure::system("cannot hear from the daemon", &error),
        // It is not ended: it may be adopting more sessions than anybody thought of.
        Err(_) => {
            let message = format!("the daemon was not ready within {} s", START_TIMEOUT.as_secs());
            Failure::new(Code::Timeout, message).hint(format!("{} says what it does", log.display()))
        }
    };
    if let Some(child) = &mut child {
        let _ = child.try_wait();
    }
    Err(failure)
}

/// The directory of the session that we are part of, where one of this instance is.
fn holder() -> Option<PathBuf> {
    let id: SessionId = std::env::var("WHARF_SESSION_ID").ok()?.parse().ok()?;
    let home = Home::resolve(|name| std::env::var_os(name)).ok()?;
    Some(home.session(&id))
}

/// Has the holder of our session start the daemon. A child of ours would be part of the session, and end with it.
fn spawn_outside(home: &Home, session: &Path, ready: &OwnedFd, inherit_limits: bool) -> io::Result<()> {
    let mut holder = wharf_holder_client::client::Client::connect(session, "program")?;
    let log = daemon_log::open(home)?;
    let vars = daemon_environment::variables(inherit_limits);
    let ready_is_stdin = (Text::from(READY_FD_VARIABLE), Text::from("0"));
    let vars: Vec<(Text, Text)> = vars.map(|(n, v)| (n.into(), v.into())).chain([ready_is_stdin]).collect();
    let asked = holder.start_daemon(&vars, ready.as_fd(), log.as_fd())?;
    holder.set_timeout(Some(OTHER_DAEMON_TIMEOUT))?;
    loop {
        match holder.next_event()? {
            Some(Event::Done { seq, .. }) if seq == asked => return Ok(()),
            Some(Event::Refused { seq, failure }) if seq == asked => return Err(io::Error::other(failure)),
            Some(_) => {}
            None => return Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

fn spawn(home: &Home, exe: &Path, ready: &OwnedFd, inherit_limits: bool) -> Result<Child, Failure> {
    let unwritable =
        |error| Failure::system(format_args!("cannot write {}", home.daemon_log().display()), &error);
    let out = daemon_log::open(home).map_err(unwritable)?;
    let err = out.try_clone().map_err(unwritable)?;
    let mut command = Command::new(exe);
    command
        .args(["daemon", "run"])
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(err)
        .env_clear()
        .envs(daemon_environment::variables(inherit_limits))
        .env(READY_FD_VARIABLE, ready.as_raw_fd().to_string());
    linux::detached(&mut command, ready);
    command.spawn().map_err(|error| Failure::system(format_args!("cannot run {}", exe.display()), &error))
}

async fn read(end: OwnedFd) -> io::Result<Vec<u8>> {
    let mut said = Vec::new();
    pipe::Receiver::from_owned_fd(end)?.take(64 << 10).read_to_end(&mut said).await?;
    Ok(said)
}

fn status(child: &mut Child) -> String {
    child.try_wait().ok().flatten().map_or_else(String::new, |status| format!(" ({status})"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn script(dir: &Path, text: &str) -> std::path::PathBuf {
        let path = dir.join("daemon");
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        path
    }

    #[tokio::test]
    async fn a_failure_of_the_daemon_is_the_callers() {
        let root = tempfile::tempdir().unwrap();
        let home = Home::below(root.path());
        let said =
            serde_json::to_string(&Failure::new(Code::Exhausted, "no room").hint("make some")).unwrap();
        let exe =
            script(root.path(), &format!("printf '%s' '{said}' >/proc/self/fd/$WHARF_READY_FD; exit 1"));
        let failure = ensure_by(&home, &exe).await.unwrap_err();
        assert_eq!(failure, Failure::new(Code::Exhausted, "no room").hint("make some"));
    }

    #[tokio::test]
    async fn a_daemon_that_dies_at_once_is_reported_with_its_log() {
        let root = tempfile::tempdir().unwrap();
        let home = Home::below(root.path());
        let exe = script(root.path(), "echo oh no >&2; exit 3");
        let failure = ensure_by(&home, &exe).await.unwrap_err();
        assert_eq!(failure.code, Code::Unavailable);
        assert!(failure.hint.unwrap().contains("daemon.log"));
        assert_eq!(fs::read_to_string(home.daemon_log()).unwrap(), "oh no\n");
        assert_eq!(fs::metadata(home.daemon_log()).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[tokio::test]
    async fn a_missing_program_is_named() {
        let root = tempfile::tempdir().unwrap();
        let failure = ensure_by(&Home::below(root.path()), Path::new("/nowhere/wharf")).await.unwrap_err();
        assert!(failure.message.contains("/nowhere/wharf"), "{failure}");
    }

    #[tokio::test]
    async fn the_daemon_gets_its_own_session_and_no_other_descriptor() {
        let root = tempfile::tempdir().unwrap();
        let home = Home::below(root.path());
        // A descriptor that is inherited, as a shell script's lock would be.
        let held = fs::File::open("/dev/null").unwrap();
        rustix::io::fcntl_setfd(&held, rustix::io::FdFlags::empty()).unwrap();
        let exe = script(
            root.path(),
            "ls -l /proc/$$/fd >&2; pwd >&2; cut -d' ' -f6 /proc/$$/stat >&2; echo pid=$$ >&2",
        );
        ensure_by(&home, &exe).await.unwrap_err();
        let said = fs::read_to_string(home.daemon_log()).unwrap();
        let nulls = said.lines().filter(|line| line.contains("/dev/null")).count();
        assert_eq!(nulls, 1, "only standard input is /dev/null:\n{said}");
        assert!(said.lines().any(|line| line == "/"), "{said}");
        let pid = said.lines().find_map(|line| line.strip_prefix("pid=")).unwrap();
        assert!(said.lines().any(|line| line == pid), "it leads its session:\n{said}");
    }
}
