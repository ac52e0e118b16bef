//! Reads the variables that the user's login shell exports, and keeps them for a minute.

use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::process::Command;
use tokio::time::Instant;
use wharf_model::{Code, Failure, Text};

use crate::Result;

/// How long an answer of the login shell is good for.
const MAX_AGE: Duration = Duration::from_secs(60);
/// How long a killed shell may take to be gone.
const KILL_TIMEOUT: Duration = Duration::from_secs(1);
/// The most that a login shell's variables may be.
const MAX_OUTPUT_LEN: u64 = 4 * 1024 * 1024;
/// Stands before the variables: whatever a profile prints comes before it.
const MARK: &[u8] = b"wharf-variables-follow\n";

type Variables = Arc<Vec<(Text, Text)>>;

/// What the user's login shell exports; asked at most once a minute.
#[derive(Default)]
pub(crate) struct Login {
    known: Mutex<Option<(Text, Instant, Variables)>>,
}

impl Login {
    /// The variables, from memory or from the shell.
    pub(crate) async fn variables(&self, shell: &Text, within: Duration) -> Result<Variables> {
        if let Some(fresh) = self.fresh(shell) {
            return Ok(fresh);
        }
        let variables = Arc::new(ask(shell, within).await?);
        let answer = (shell.clone(), Instant::now(), Arc::clone(&variables));
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
        Ok(variables)
    }

    fn fresh(&self, shell: &Text) -> Option<Variables> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (of, at, variables) = known.as_ref()?;
        (of == shell && at.elapsed() < MAX_AGE).then(|| Arc::clone(variables))
    }
}

/// The user's shell: the caller's word for it, else this process's, else the one that is everywhere.
pub(crate) fn shell(caller: &[(Text, Text)]) -> Text {
    let named = |vars: &[(Text, Text)]| {
        let found = vars.iter().find(|(name, _)| name.as_bytes() == b"SHELL").map(|(_, value)| value.clone());
        found.filter(|shell| shell.as_path().is_absolute())
    };
    named(caller)
        .or_else(|| std::env::var_os("SHELL").map(Text::from).filter(|shell| shell.as_path().is_absolute()))
        .unwrap_or_else(|| "/bin/sh".into())
}

async fn ask(shell: &Text, within: Duration) -> Result<Vec<(Text, Text)>> {
    let name = shell.lossy().into_owned();
    let named = |error: std::io::Error| Failure::system(format!("cannot ask the login shell {name}"), &error);
    let mut command = Command::new(shell.as_os_str());
    command.args(["-l", "-c", "echo wharf-variables-follow; exec env -0"]).env_clear();
    // What login(1) would give it; the profile makes the rest.
    for variable in ["HOME", "USER", "LOGNAME", "LANG", "XDG_RUNTIME_DIR"] {
        command.envs(std::env::var_os(variable).map(|value| (variable, value)));
    }
    command.env("SHELL", shell.as_os_str()).env("PATH", "/usr/local/bin:/usr/bin:/bin").env("TERM", "dumb");
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .kill_on_drop(true);
    let mut child = command.spawn().map_err(named)?;
    let group = child.id().and_then(|pid| rustix::process::Pid::from_raw(pid as i32));
    let mut stdout = child.stdout.take().expect("it was asked for above").take(MAX_OUTPUT_LEN);
    let mut bytes = Vec::new();
    let answer = tokio::time::timeout(within, async {
        stdout.read_to_end(&mut bytes).await?;
        child.wait().await
    });
    if let Ok(status) = answer.await {
        status.map_err(named)?
    } else {
        // Not reaped yet, so the number is still its own; a profile's children are in the same group.
        if let Some(group) = group {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        // One that cannot even be killed is left to the runtime, which reaps it whenever it ends.
        let _ = tokio::time::timeout(KILL_TIMEOUT, child.wait()).await;
        return Err(Failure::new(
            Code::Timeout,
            format!("the login shell {name} did not answer within {within:?}"),
        )
        .hint("its profile waits for something; start without the login environment"));
    };
    parse(&bytes).ok_or_else(|| {
        Failure::new(Code::Unavailable, format!("the login shell {name} did not print its variables"))
            .hint("start without the login environment")
    })
}

fn parse(bytes: &[u8]) -> Option<Vec<(Text, Text)>> {
    let at = bytes.windows(MARK.len()).rposition(|window| window == MARK)? + MARK.len();
    let pairs = bytes[at..].split(|byte| *byte == 0).filter_map(|pair| {
        let split = pair.iter().position(|byte| *byte == b'=')?;
        Some((pair[..split].into(), pair[split + 1..].into()))
    });
    // The shell's own bookkeeping, and the terminal that it did not have.
    let ours = |name: &Text| matches!(name.as_bytes(), b"_" | b"SHLVL" | b"PWD" | b"OLDPWD" | b"TERM");
    Some(pairs.filter(|(name, _)| !ours(name)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_of_a_profile_is_not_taken_for_variables() {
        let bytes = b"A=noise\nwelcome\nwharf-variables-follow\nB=1\nstill B\0PATH=/bin\0SHLVL=2\0C=\0";
        let expected: Vec<(Text, Text)> =
            vec![("B".into(), "1\nstill B".into()), ("PATH".into(), "/bin".into()), ("C".into(), "".into())];
        assert_eq!(parse(bytes), Some(expected));
        assert_eq!(parse(b"A=1"), None);
    }

    #[tokio::test]
    async fn a_shell_that_hangs_is_ended() {
        let dir = tempfile::tempdir().unwrap();
        let shell = dir.path().join("hang");
        std::fs::write(&shell, "#!/bin/sh\nsleep 600\n").unwrap();
        std::fs::set_permissions(&shell, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        let failure = ask(&shell.into(), Duration::from_millis(100)).await.unwrap_err();
        assert_eq!(failure.code, Code::Timeout);
    }

    #[tokio::test]
    async fn the_shell_is_asked_once() {
        let login = Login::default();
        let shell: Text = "/bin/sh".into();
        let first = login.variables(&shell, Duration::from_secs(5)).await.unwrap();
        assert!(first.iter().any(|(name, _)| name.as_bytes() == b"PATH"));
        let second = login.variables(&shell, Duration::from_secs(5)).await.unwrap();
        assert!(Arc::ptr_eq(&first, &second));
    }
}
