//! The exec proxy: a further command for somebody who can pass no descriptors gets those that we were started with.

use std::io::{self, IoSlice, Read, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use wharf_model::{Code, Failure};

use super::relay;

use crate::frame::{Decoder, Kind};
use crate::linux::{self, own};
use crate::pace::{Pace, TOO_MUCH_OUTPUT};

/// The request of the frame that asks for a command: each caller has one.
const SEQ: u32 = 1;
/// What our code is where the command did not run; why is told on standard error, after the mark.
const REFUSED: u8 = 125;

/// Runs `wharf-holder lend SOCKET MARK`: the frame that asks for the command comes first on standard input, what follows
/// is the command's. At a terminal, the mark says when it can come. Ends as the command does.
pub(super) fn run(socket: &Path, mark: &str) -> ExitCode {
    match ask(socket, mark) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            let json = serde_json::to_string(&failure).unwrap_or_default();
            let _ = io::stderr().write_all(format!("{mark}{json}").as_bytes());
            ExitCode::from(REFUSED)
        }
    }
}

fn ask(socket: &Path, mark: &str) -> Result<u8, Failure> {
    let failed = |error: io::Error| Failure::system("cannot run a further command", &error);
    let frame = if rustix::termios::isatty(rustix::stdio::stdin()) { typed(mark) } else { first() };
    let frame = frame.map_err(failed)?;
    let holder = relay::reach(socket, false).map_err(|_| Failure::new(Code::Ended, "the session is over"))?;
    let stdio = [rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()];
    let went = linux::send(holder.as_fd(), &[IoSlice::new(&frame)], &stdio).map_err(failed)?;
    (&holder).write_all(&frame[went..]).map_err(failed)?;
    let (mut frames, mut buffer) = (Decoder::of_answers(), [0; 4 << 10]);
    // The holder may be somebody else by now: one who talks on and on is not heard out.
    let mut pace = Pace::new(Instant::now());
    loop {
        while let Some((header, payload)) = frames.next().map_err(failed)? {
            match Kind::known(header.kind) {
                Some(Kind::Ack) if header.seq == SEQ => {
                    let code = payload.first_chunk().map_or(i32::from(REFUSED), |b| i32::from_le_bytes(*b));
                    return Ok((code & 0xff) as u8);
                }
                Some(Kind::Error) => {
                    let failure = serde_json::from_slice(payload);
                    return Err(failure.unwrap_or_else(|error| failed(error.into())));
                }
                Some(Kind::Exit) => return Err(over()),
                // No holder answers so: somebody else does, and may never say more.
                _ if header.seq == SEQ => {
                    return Err(Failure::new(Code::Unreachable, "the holder's answer is odd"));
                }
                other => {
                    pace.spend(other, payload.len());
                    if pace.pause(Instant::now).is_some() {
                        return Err(Failure::new(Code::Unreachable, TOO_MUCH_OUTPUT));
                    }
                }
            }
        }
        match (&holder).read(&mut buffer) {
            Ok(0) => return Err(over()),
            Ok(n) => frames.push(&buffer[..n]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(error)),
        }
    }
}

fn over() -> Failure {
    Failure::new(Code::Ended, "the session ended, and the command with it")
}

/// Reads the frame by way of a terminal, which is the command's afterwards, as it was before. The mark says that it can come.
fn typed(mark: &str) -> io::Result<Vec<u8>> {
    let terminal = rustix::stdio::stdin();
    let before = rustix::termios::tcgetattr(terminal)?;
    let mut raw = before.clone();
    raw.make_raw();
    rustix::termios::tcsetattr(terminal, rustix::termios::OptionalActions::Now, &raw)?;
    io::stdout().write_all(mark.as_bytes())?;
    io::stdout().flush()?;
    let frame = first();
    rustix::termios::tcsetattr(terminal, rustix::termios::OptionalActions::Now, &before)?;
    own::leave_terminal();
    frame
}

/// Reads one frame and not a byte beyond it, as it came.
fn first() -> io::Result<Vec<u8>> {
    let (mut frames, mut bytes, mut buffer) = (Decoder::default(), Vec::new(), [0; 4 << 10]);
    loop {
        let wanted = frames.missing().min(buffer.len());
        match rustix::io::read(rustix::stdio::stdin(), &mut buffer[..wanted]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => {
                frames.push(&buffer[..n]);
                bytes.extend_from_slice(&buffer[..n]);
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if frames.next()?.is_some() {
            return Ok(bytes);
        }
    }
}
