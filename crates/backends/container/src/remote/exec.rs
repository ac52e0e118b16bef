//! Runs a further command in a container on another host: the descriptors stay here, and their bytes are forwarded.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::sync::mpsc;
use wharf_backend::Result;
use wharf_holder::wire;
use wharf_model::{Code, Failure};

use super::container::{RemoteContainer, SOCKET};
use super::exec_stream::{ExecInput, ExecOutput};

/// How many chunks may be queued in each direction.
const MAX_QUEUED_CHUNKS: usize = 16;
/// How often a blocking thread checks whether its descriptor is still wanted.
const CANCEL_POLL_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
/// How many bytes are read or written at once: a pipe that is writable takes that many without blocking.
const CHUNK_LEN: usize = 4096;
/// How long a terminal in the container may take to be ready.
const TERMINAL_READY_TIMEOUT: Duration = Duration::from_secs(20);
/// How often the size of the caller's terminal is compared with the last one.
const SIZE_POLL_INTERVAL: Duration = Duration::from_millis(250);
/// How long an engine may take to report the exit code of a process whose stream has ended.
const EXIT_CODE_TIMEOUT: Duration = Duration::from_secs(5);

/// How many bytes a holder's reason for not running a command may have.
const MAX_REFUSAL_LEN: usize = 64 << 10;

/// Ends the command in the container when its caller was killed or went away.
struct RecallOnDrop {
    remote: Arc<RemoteContainer>,
    mark: String,
    ended: bool,
}

impl Drop for RecallOnDrop {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        let (remote, mark) = (Arc::clone(&self.remote), std::mem::take(&mut self.mark));
        let (session, tasks) = (self.remote.ticket.id.clone(), self.remote.transport().tasks().clone());
        let Some(place) = self.remote.transport().recalls().place() else {
            tracing::warn!(%session, "a command whose caller is gone runs on: too many wait to be ended");
            return;
        };
        tasks.spawn_work(async move {
            let _place = place;
            if let Err(failure) = recall(&remote, &mark).await {
                tracing::warn!(%session, %failure, "a command whose caller is gone may run on");
            }
        });
    }
}

/// Ends the command of a mark in the container, once it is its turn.
async fn recall(remote: &RemoteContainer, mark: &str) -> Result<()> {
    let late = || Failure::new(Code::Timeout, "the engine did not end it in time");
    let _turn = remote.transport().recalls().turn().await.ok_or_else(late)?;
    let recalled = async {
        let (_, _input, mut output) = remote.run(&["recall", mark], false).await?;
        // Read to the end: an engine may not start a process whose output nobody reads.
        while let Ok(Some(_)) = output.next().await {}
        Ok(())
    };
    tokio::time::timeout(TERMINAL_READY_TIMEOUT, recalled).await.map_err(|_| late())?
}

/// Runs the command that a frame asks for. Returns its exit code, as a shell would have it.
pub(super) async fn exec(remote: &Arc<RemoteContainer>, frame: Vec<u8>, stdio: Vec<OwnedFd>) -> Result<i32> {
    let Ok([stdin, stdout, stderr]) = <[OwnedFd; 3]>::try_from(stdio) else {
        return Err(Failure::new(Code::Invalid, "a further command needs three descriptors"));
    };
    let tty = wants_terminal(&frame);
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|error| Failure::new(Code::Internal, error.to_string()))?;
    let mark = format!("\u{1}{:032x}", u128::from_le_bytes(random));
    let mut recall = RecallOnDrop { remote: Arc::clone(remote), mark: mark.clone(), ended: false };
    let (exec, mut input, mut output) = remote.run(&["lend", SOCKET, &mark], tty).await?;
    let gone = |error: std::io::Error| Failure::system("cannot pass the command on", &error);
    let terminal = if tty {
        // The terminal in the container handles keys and echo; this one must forward every byte.
        pass_through(&stdin).map_err(gone)?;
        let late = |_| Failure::new(Code::Timeout, "the terminal over there was not ready in time");
        let ready = tokio::time::timeout(TERMINAL_READY_TIMEOUT, output.until(mark.as_bytes())).await;
        ready.map_err(late)?.map_err(gone)?;
        // Set the size before the command can read it.
        if let Ok(size) = rustix::termios::tcgetwinsize(&stdin) {
            remote.resize(&exec, size.ws_col, size.ws_row).await;
        }
        Some(stdin.try_clone().map_err(gone)?)
    } else {
        None
    };
    input.write(&frame).await.map_err(gone)?;
    let input_forwarded = async {
        forward_input(stdin, &mut input).await;
        // The command may go on after its input ended.
        std::future::pending::<()>().await;
    };
    let size_followed = async {
        if let Some(terminal) = &terminal {
            follow_size(remote, &exec, terminal).await;
        }
        std::future::pending::<()>().await;
    };
    let refused = tokio::select! {
        refused = show_output(output, stdout, stderr, mark.as_bytes(), tty) => refused,
        () = input_forwarded => None,
        () = size_followed => None,
    };
    if let Some(failure) = refused {
        recall.ended = true;
        return Err(failure);
    }
    let until = tokio::time::Instant::now() + EXIT_CODE_TIMEOUT;
    loop {
        match remote.code(&exec).await {
            Ok(Some(code)) => {
                recall.ended = true;
                return Ok(code as i32);
            }
            Err(_) if !remote.state().await?.is_some_and(|state| state.running) => {
                return Err(Failure::new(Code::Ended, "the session ended, and the command with it"));
            }
            _ if tokio::time::Instant::now() >= until => {
                return Err(Failure::new(Code::Unreachable, "the engine does not say how the command ended"));
            }
            _ => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

/// Sets a terminal to raw mode, so that it changes no byte.
fn pass_through(terminal: &OwnedFd) -> std::io::Result<()> {
    let mut modes = rustix::termios::tcgetattr(terminal)?;
    modes.make_raw();
    Ok(rustix::termios::tcsetattr(terminal, rustix::termios::OptionalActions::Now, &modes)?)
}

fn wants_terminal(frame: &[u8]) -> bool {
    let payload = frame.get(wharf_holder::frame::HEADER_LEN..).unwrap_or_default();
    let sections = wire::split_sections::<3>(payload);
    sections
        .is_ok_and(|[control, ..]| serde_json::from_slice::<wire::Exec>(control).is_ok_and(|exec| exec.tty))
}

/// Copies the size of the caller's terminal to the one in the container whenever it changes. Only the terminal's
/// owner is notified of changes, so this polls.
async fn follow_size(remote: &RemoteContainer, exec: &str, terminal: &OwnedFd) {
    let size = rustix::termios::tcgetwinsize(terminal);
    let mut known = size.ok().map(|size| (size.ws_col, size.ws_row));
    while let Ok(size) = rustix::termios::tcgetwinsize(terminal) {
        let size = (size.ws_col, size.ws_row);
        if known != Some(size) {
            known = Some(size);
            remote.resize(exec, size.0, size.1).await;
        }
        tokio::time::sleep(SIZE_POLL_INTERVAL).await;
    }
}

/// Forwards the caller's input until it ends.
async fn forward_input(stdin: OwnedFd, input: &mut ExecInput) {
    let (pieces, mut read) = mpsc::channel::<Vec<u8>>(MAX_QUEUED_CHUNKS);
    // A blocking read cannot be cancelled, so poll before each one.
    tokio::task::spawn_blocking(move || {
        let mut buffer = [0; CHUNK_LEN];
        while !pieces.is_closed() {
            let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
            match poll(&mut fds, Some(&CANCEL_POLL_INTERVAL)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => continue,
                Ok(_) => {}
                Err(_) => return,
            }
            match rustix::io::read(stdin.as_fd(), &mut buffer) {
                Ok(n @ 1..) => {
                    if pieces.blocking_send(buffer[..n].to_vec()).is_err() {
                        return;
                    }
                }
                Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
                Ok(_) | Err(_) => return,
            }
        }
    });
    while let Some(bytes) = read.recv().await {
        if input.write(&bytes).await.is_err() {
            return;
        }
    }
    let _ = input.close().await;
}

/// Writes the command's output to the caller's descriptors until it ends. If the error stream begins with the mark,
/// the holder did not run the command, and the failure that follows the mark is returned.
async fn show_output(
    mut output: ExecOutput,
    stdout: OwnedFd,
    stderr: OwnedFd,
    mark: &[u8],
    tty: bool,
) -> Option<Failure> {
    let (out, shown) = spawn_writer(stdout);
    let (err, complained) = spawn_writer(stderr);
    let (mut held, mut decided) = (Vec::new(), false);
    while let Ok(Some((error, bytes))) = output.next().await {
        // A terminal has one stream for output and errors.
        if !error && !tty {
            let _ = out.send(bytes.to_vec()).await;
            continue;
        }
        held.extend_from_slice(&bytes);
        decided |= !held.starts_with(&mark[..mark.len().min(held.len())]) || held.len() > MAX_REFUSAL_LEN;
        if decided {
            let _ = err.send(std::mem::take(&mut held)).await;
        }
    }
    let refused = held.strip_prefix(mark).map(|json| {
        let odd = || Failure::new(Code::Internal, "the holder's answer is odd");
        serde_json::from_slice(json).unwrap_or_else(|_| odd())
    });
    if refused.is_none() && !held.is_empty() {
        let _ = err.send(held).await;
    }
    drop((out, err));
    // Return the code only once the reader has all output.
    let _ = tokio::join!(shown, complained);
    refused
}

/// Spawns a thread that writes chunks to a descriptor until the sender is dropped.
fn spawn_writer(to: OwnedFd) -> (mpsc::Sender<Vec<u8>>, tokio::task::JoinHandle<()>) {
    let (pieces, mut sent) = mpsc::channel::<Vec<u8>>(MAX_QUEUED_CHUNKS);
    let wanted = pieces.downgrade();
    let shown = tokio::task::spawn_blocking(move || {
        while let Some(bytes) = sent.blocking_recv() {
            for piece in bytes.chunks(CHUNK_LEN) {
                let mut rest = piece;
                while !rest.is_empty() {
                    let mut fds = [PollFd::new(&to, PollFlags::OUT)];
                    match poll(&mut fds, Some(&CANCEL_POLL_INTERVAL)) {
                        Ok(0) if wanted.upgrade().is_none() => return,
                        Ok(0) | Err(rustix::io::Errno::INTR) => continue,
                        Ok(_) => {}
                        Err(_) => return,
                    }
                    match rustix::io::write(to.as_fd(), rest) {
                        Ok(n) => rest = &rest[n..],
                        Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
                        // The reader is gone.
                        Err(_) => return,
                    }
                }
            }
        }
    });
    (pieces, shown)
}

#[cfg(all(test, feature = "remote-engines"))]
mod tests {
    use std::path::Path;

    use tokio::runtime::Handle;
    use wharf_backend::BackendTasks;

    use super::*;
    use crate::engine::fake::{Answer, FakeEngine};
    use crate::ticket_data::test_ticket;

    #[tokio::test]
    async fn commands_whose_callers_are_gone_wait_in_bounded_number_and_end_with_the_backend() {
        let served = FakeEngine::serve_remote(|path| match path {
            path if path.contains("/exec") => Answer::Stalls(String::new()),
            _ => Answer::Usual,
        });
        let served = served.await;
        let tasks = BackendTasks::default();
        let engine = served.reach_with(&tasks).await.unwrap();
        let remote = Arc::new(
            RemoteContainer::of(&engine, "c", &test_ticket(Path::new("/none"))).expect("it is remote"),
        );
        let alive = || Handle::current().metrics().num_alive_tasks();
        let before = alive();
        for number in 0..2000 {
            let mark = number.to_string();
            drop(RecallOnDrop { remote: Arc::clone(&remote), mark, ended: false });
        }
        let waiting = alive() - before;
        assert!((8..=256).contains(&waiting), "{waiting} tasks");
        tasks.close().await;
        assert!(remote.transport().recalls().place().is_some(), "those that are gone take no place");
    }
}
