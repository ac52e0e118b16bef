//! A further command over there, on descriptors of this side: they stay here, and what goes through them is carried.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::sync::mpsc;
use wharf_backend::Result;
use wharf_holder::wire;
use wharf_model::{Code, Failure};

use super::site::{SOCKET, Site};
use super::tube::{Input, Output};

/// Pieces on their way at most.
const MAX_QUEUED_CHUNKS: usize = 16;
/// How often a descriptor that nothing happens on is left, to see whether it is still wanted.
const CANCEL_POLL_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
/// What a pipe that takes anything takes at once.
const CHUNK_LEN: usize = 4096;
/// How long a terminal over there may take to be ready.
const TERMINAL_READY_TIMEOUT: Duration = Duration::from_secs(20);
/// How often a terminal's size is looked at.
const SIZE_POLL_INTERVAL: Duration = Duration::from_millis(250);
/// How long an engine may take to know how a process ended whose stream is over.
const EXIT_CODE_TIMEOUT: Duration = Duration::from_secs(5);

/// The most that a holder has to say of why a command did not run.
const MAX_REFUSAL: usize = 64 << 10;

/// Has the command over there end where nobody waits for it any more: its caller was killed, or went away.
struct Recall {
    site: Arc<Site>,
    mark: String,
    over: bool,
}

impl Drop for Recall {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        let (site, mark) = (Arc::clone(&self.site), std::mem::take(&mut self.mark));
        tokio::spawn(async move {
            let _turn = site.transport().recall_turn().await;
            let recalled = async {
                let (_, _input, mut output) = site.run(&["recall", &mark], false).await?;
                // To its end: without anybody who reads it an engine may not start it.
                while let Ok(Some(_)) = output.next().await {}
                Result::Ok(())
            };
            if let Ok(Err(failure)) = tokio::time::timeout(TERMINAL_READY_TIMEOUT, recalled).await {
                tracing::debug!(session = %site.ticket.id, %failure, "a command whose caller is gone runs on");
            }
        });
    }
}

/// Runs the command that a frame asks for. Its code, as a shell would have it.
pub(super) async fn lend(site: &Arc<Site>, frame: Vec<u8>, stdio: Vec<OwnedFd>) -> Result<i32> {
    let Ok([stdin, stdout, stderr]) = <[OwnedFd; 3]>::try_from(stdio) else {
        return Err(Failure::new(Code::Invalid, "a further command needs three descriptors"));
    };
    let tty = wants_terminal(&frame);
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|error| Failure::new(Code::Internal, error.to_string()))?;
    let mark = format!("\u{1}{:032x}", u128::from_le_bytes(random));
    let mut recall = Recall { site: Arc::clone(site), mark: mark.clone(), over: false };
    let (exec, mut input, mut output) = site.run(&["lend", SOCKET, &mark], tty).await?;
    let gone = |error: std::io::Error| Failure::system("cannot pass the command on", &error);
    let terminal = if tty {
        // The terminal over there does what terminals do; this one passes everything on.
        pass_through(&stdin).map_err(gone)?;
        let late = |_| Failure::new(Code::Timeout, "the terminal over there was not ready in time");
        let ready = tokio::time::timeout(TERMINAL_READY_TIMEOUT, output.until(mark.as_bytes())).await;
        ready.map_err(late)?.map_err(gone)?;
        // Before the command can look at it.
        if let Ok(size) = rustix::termios::tcgetwinsize(&stdin) {
            site.resize(&exec, size.ws_col, size.ws_row).await;
        }
        Some(stdin.try_clone().map_err(gone)?)
    } else {
        None
    };
    input.write(&frame).await.map_err(gone)?;
    let typed = async {
        feed(stdin, &mut input).await;
        // The end of the input is not the end of the command.
        std::future::pending::<()>().await;
    };
    let sized = async {
        if let Some(terminal) = &terminal {
            follow_size(site, &exec, terminal).await;
        }
        std::future::pending::<()>().await;
    };
    let refused = tokio::select! {
        refused = show(output, stdout, stderr, mark.as_bytes(), tty) => refused,
        () = typed => None,
        () = sized => None,
    };
    if let Some(failure) = refused {
        recall.over = true;
        return Err(failure);
    }
    let until = tokio::time::Instant::now() + EXIT_CODE_TIMEOUT;
    loop {
        match site.code(&exec).await {
            Ok(Some(code)) => {
                recall.over = true;
                return Ok(code as i32);
            }
            Err(_) if !site.state().await?.is_some_and(|state| state.running) => {
                return Err(Failure::new(Code::Ended, "the session ended, and the command with it"));
            }
            _ if tokio::time::Instant::now() >= until => {
                return Err(Failure::new(Code::Unreachable, "the engine does not say how the command ended"));
            }
            _ => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

/// Has a terminal change nothing of what goes through it.
fn pass_through(terminal: &OwnedFd) -> std::io::Result<()> {
    let mut modes = rustix::termios::tcgetattr(terminal)?;
    modes.make_raw();
    Ok(rustix::termios::tcsetattr(terminal, rustix::termios::OptionalActions::Now, &modes)?)
}

fn wants_terminal(frame: &[u8]) -> bool {
    let payload = frame.get(wharf_holder::frame::HEADER..).unwrap_or_default();
    let sections = wire::split_sections::<3>(payload);
    sections
        .is_ok_and(|[control, ..]| serde_json::from_slice::<wire::Exec>(control).is_ok_and(|exec| exec.tty))
}

/// Gives the terminal over there the size of the one here, whenever that changes. Nobody is told of that but its owner, so
/// it is looked at.
async fn follow_size(site: &Site, exec: &str, terminal: &OwnedFd) {
    let size = rustix::termios::tcgetwinsize(terminal);
    let mut known = size.ok().map(|size| (size.ws_col, size.ws_row));
    while let Ok(size) = rustix::termios::tcgetwinsize(terminal) {
        let size = (size.ws_col, size.ws_row);
        if known != Some(size) {
            known = Some(size);
            site.resize(exec, size.0, size.1).await;
        }
        tokio::time::sleep(SIZE_POLL_INTERVAL).await;
    }
}

/// Passes on what is typed, to its end.
async fn feed(stdin: OwnedFd, input: &mut Input) {
    let (pieces, mut read) = mpsc::channel::<Vec<u8>>(MAX_QUEUED_CHUNKS);
    // A read cannot be called off, so it is not begun before there is something to read.
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

/// Shows what is printed, to its end. A command that did not run is told by the mark before anything else.
async fn show(
    mut output: Output,
    stdout: OwnedFd,
    stderr: OwnedFd,
    mark: &[u8],
    tty: bool,
) -> Option<Failure> {
    let (out, shown) = shower(stdout);
    let (err, complained) = shower(stderr);
    let (mut held, mut decided) = (Vec::new(), false);
    while let Ok(Some((error, bytes))) = output.next().await {
        // A terminal has one stream for both.
        if !error && !tty {
            let _ = out.send(bytes.to_vec()).await;
            continue;
        }
        held.extend_from_slice(&bytes);
        decided |= !held.starts_with(&mark[..mark.len().min(held.len())]) || held.len() > MAX_REFUSAL;
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
    // All of it is in the hands of whoever reads before the code is told.
    let _ = tokio::join!(shown, complained);
    refused
}

/// Writes pieces to a descriptor for as long as somebody sends any.
fn shower(to: OwnedFd) -> (mpsc::Sender<Vec<u8>>, tokio::task::JoinHandle<()>) {
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
                        // Nobody reads it any more.
                        Err(_) => return,
                    }
                }
            }
        }
    });
    (pieces, shown)
}
