//! Further commands in a session's place and tree.

use std::io::{PipeReader, Read, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::OFlags;
use rustix::pty::{OpenptFlags, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use wharf_model::{Code, Text};

use crate::ExecRequest;
use crate::conformance::running::absent;
use crate::conformance::{ANSWER_TIMEOUT, CASE_TIMEOUT, Place, Running, carrying, none_carry, until, within};

struct Ends {
    input: std::io::PipeWriter,
    output: PipeReader,
    errors: PipeReader,
}

/// Its output, error, input, directory, variables and code are its own.
pub async fn a_command_runs_beside(place: Arc<Place>) {
    let session = place.sleeper().await;
    let argv = place.shell("echo \"$MORE\"; echo err >&2; cat; exit 9").argv;
    let (request, mut ends) = request(&place, &session, argv);
    if !place.can().exec {
        return absent("a further command", session.connection.exec(request).await);
    }
    ends.input.write_all(b"typed").expect("a pipe takes a little");
    let Ends { input, output, errors } = ends;
    drop(input);
    let code = within(CASE_TIMEOUT, "a further command", session.connection.exec(request)).await;
    assert_eq!(code.expect("it runs"), 9);
    assert_eq!(all(output).await, "more\ntyped");
    assert_eq!(all(errors).await, "err\n");
    assert!(session.connection.status().borrow().exit.is_none(), "the session goes on");
    assert_eq!(session.stop(Duration::ZERO).await.log_end.0, 0, "its output is not the session's");
}

/// A signal is told as a shell would tell it, and what cannot run is refused.
pub async fn codes_are_those_of_a_shell(place: Arc<Place>) {
    let session = place.sleeper().await;
    let (killed, _ends) = request(&place, &session, place.shell("kill -9 $$; sleep 60").argv);
    if !place.can().exec {
        return absent("a further command", session.connection.exec(killed).await);
    }
    let code = within(CASE_TIMEOUT, "a further command", session.connection.exec(killed)).await;
    assert_eq!(code.expect("it runs"), 137);
    let (missing, _ends) = request(&place, &session, vec![place.tools().missing.clone()]);
    let refused = within(CASE_TIMEOUT, "a refusal", session.connection.exec(missing)).await;
    assert_eq!(refused.expect_err("it is missing").code, Code::CommandNotFound);
}

/// It ends with the session.
pub async fn it_ends_with_the_session(place: Arc<Place>) {
    let session = place.sleeper().await;
    let (mut request, ends) =
        request(&place, &session, place.shell("echo up; trap '' TERM HUP; sleep 600; sleep 600").argv);
    if !place.can().exec {
        return absent("a further command", session.connection.exec(request).await);
    }
    let mark = format!("{}-exec", session.token);
    request.env.push(("MARK".into(), mark.as_str().into()));
    let connection = Arc::clone(&session.connection);
    let running = tokio::spawn(async move { connection.exec(request).await });
    if place.tools().host {
        until("the further command runs", async || !carrying(&mark).is_empty()).await;
    } else {
        let mut up = [0; 3];
        let mut output = ends.output;
        let read = tokio::task::spawn_blocking(move || output.read_exact(&mut up));
        within(CASE_TIMEOUT, "its output", read).await.expect("no panic").expect("it prints");
    }
    session.stop(Duration::from_millis(100)).await;
    within(ANSWER_TIMEOUT, "the further command", running).await.expect("no panic").ok();
    if place.tools().host {
        none_carry(&mark);
    }
}

/// A session that is over is no place.
pub async fn not_after_the_end(place: Arc<Place>) {
    let session = place.sleeper().await;
    let Some(argv) = place.tools().exit(0) else { return place.need(false, "a shell") };
    let (request, _ends) = request(&place, &session, argv);
    if !place.can().exec {
        return absent("a further command", session.connection.exec(request).await);
    }
    session.stop(Duration::ZERO).await;
    let refused = within(CASE_TIMEOUT, "a refusal", session.connection.exec(request)).await;
    assert_eq!(refused.expect_err("it has ended").code, Code::Ended);
}

/// A command on a terminal controls one, has its size and what is typed. In a place of its own that is never the caller's:
/// nothing that it leaves behind has that open.
pub async fn a_terminal_is_its_own(place: Arc<Place>) {
    place.need(place.tools().stty, "stty");
    let session = place.sleeper().await;
    let script = "trap '' HUP; test -t 0 && test -t 1 && test -t 2 && stty size; (: > /dev/tty) && echo controls; read -r line; \
                  echo \"got $line\"; sleep 600 & exit 9";
    let (mut request, _ends) = request(&place, &session, place.shell(script).argv);
    let (outer, inner) = terminal().expect("a terminal");
    let again = || inner.try_clone().expect("a descriptor");
    (request.stdio, request.tty) = ([again(), again(), again()], true);
    drop(inner);
    let isolated = place.can().isolation || session.ticket.spec.sandbox.is_some();
    let connection = Arc::clone(&session.connection);
    let running = tokio::spawn(async move { connection.exec(request).await });
    let mut seen = String::new();
    let mut shows = async |words: &str| {
        let mut buffer = [0; 4096];
        if let Ok(count) = rustix::io::read(&outer, &mut buffer) {
            seen.push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
        seen.contains(words)
    };
    until("it controls a terminal", async || shows("controls").await).await;
    rustix::io::write(&outer, b"typed\r").expect("a terminal takes a little");
    let code = within(CASE_TIMEOUT, "a further command", running).await.expect("no panic");
    until("it has what was typed", async || shows("got typed").await).await;
    assert_eq!(code.expect("it runs"), 9);
    assert!(seen.contains("31 97"), "the size is the caller's: {seen:?}");
    if isolated {
        until("nobody has the caller's terminal", async || hung_up(&outer)).await;
    }
    session.stop(Duration::ZERO).await;
}

/// A terminal of 97 columns and 31 rows: its outer end, which does not block, and its inner.
fn terminal() -> std::io::Result<(OwnedFd, OwnedFd)> {
    let outer = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
    rustix::io::fcntl_setfd(&outer, rustix::io::FdFlags::CLOEXEC)?;
    unlockpt(&outer)?;
    let (name, flags) = (ptsname(&outer, Vec::new())?, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC);
    let inner = rustix::fs::open(&name, flags, rustix::fs::Mode::empty())?;
    rustix::io::ioctl_fionbio(&outer, true)?;
    tcsetwinsize(&outer, Winsize { ws_row: 31, ws_col: 97, ws_xpixel: 0, ws_ypixel: 0 })?;
    Ok((outer, inner))
}

/// Whether nobody has the inner end of a terminal.
fn hung_up(outer: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(outer, PollFlags::empty())];
    rustix::event::poll(&mut fds, Some(&Timespec::default())).is_ok()
        && fds[0].revents().contains(PollFlags::HUP)
}

fn request(place: &Place, session: &Running, argv: Vec<Text>) -> (ExecRequest, Ends) {
    let (stdin, input) = std::io::pipe().expect("a pipe");
    let (output, stdout) = std::io::pipe().expect("a pipe");
    let (errors, stderr) = std::io::pipe().expect("a pipe");
    let mut env = place.launch(argv.clone()).env;
    env.retain(|(name, _)| name.as_bytes() != b"WHARF_TOKEN");
    env.push(("WHARF_TOKEN".into(), session.token.as_str().into()));
    env.push(("MORE".into(), "more".into()));
    let request = ExecRequest {
        argv,
        env,
        dir: session.ticket.spec.dir.clone(),
        stdio: [stdin.into(), stdout.into(), stderr.into()],
        tty: false,
    };
    (request, Ends { input, output, errors })
}

async fn all(mut reader: PipeReader) -> String {
    let read = tokio::task::spawn_blocking(move || {
        let mut text = String::new();
        reader.read_to_string(&mut text).map(|_| text)
    });
    within(CASE_TIMEOUT, "the end of its output", read).await.expect("no panic").expect("it can be read")
}
