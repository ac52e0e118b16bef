//! A terminal of our own making for a command that runs elsewhere, joined to the user's.

use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{Winsize, tcsetwinsize};
use wharf_holder::wire::Exec;
use wharf_holder_client::client::Client;
use wharf_holder_client::fresh_terminal;
use wharf_model::{Code, Failure, Size, Text};

use crate::commands::finished;
use crate::signals::Signals;
use crate::terminal::{self, Modes, RawMode};
use crate::trouble::{Done, Trouble};

/// Runs a command on a new terminal, and joins that to ours until the command ends.
pub(crate) fn exec(client: &mut Client, argv: &[Text], env: &[(Text, Text)], dir: Text) -> Done {
    let cannot = |error: io::Error| Failure::system("cannot make a terminal", &error);
    let signals = Signals::catch(&[libc::SIGWINCH, libc::SIGTERM, libc::SIGHUP, libc::SIGINT, libc::SIGQUIT])
        .map_err(cannot)?;
    let (outer, inner) = fresh_terminal::pair().map_err(cannot)?;
    resize(&outer);
    let seq = client
        .exec(argv, env, &Exec { dir, tty: true }, [inner.as_fd(), inner.as_fd(), inner.as_fd()])
        .map_err(|error| Failure::system("cannot pass the command to the session", &error))?;
    drop(inner);
    let raw = io::stdin().is_terminal().then(|| RawMode::enter(io::stdin())).transpose().map_err(cannot)?;
    let mut joined =
        Joined { client, outer, signals, modes: Modes::new(), typed: Vec::new(), stdin: true, seq };
    let done = joined.run();
    if io::stdout().is_terminal() {
        let reset = joined.modes.reset();
        let _ = write_all(io::stdout().as_fd(), &reset);
    }
    drop(raw);
    done
}

fn resize(outer: &OwnedFd) {
    let Size { cols, rows } = terminal::size(io::stdin()).unwrap_or_default();
    let _ = tcsetwinsize(outer, Winsize { ws_row: rows, ws_col: cols, ws_xpixel: 0, ws_ypixel: 0 });
}

fn write_all(to: BorrowedFd<'_>, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(to, bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

struct Joined<'a> {
    client: &'a mut Client,
    outer: OwnedFd,
    signals: Signals,
    modes: Modes,
    typed: Vec<u8>,
    stdin: bool,
    seq: u32,
}

impl Joined<'_> {
    fn run(&mut self) -> Done {
        // The holder may have answered in the same breath as something else.
        loop {
            let [signals, holder, shown, typed] = self.wait()?;
            if signals && let Some(signal) = self.signalled() {
                return Ok(128 + signal as u8);
            }
            if shown {
                self.show()?;
            }
            if typed {
                self.read();
            }
            if !self.typed.is_empty() {
                let written = rustix::io::write(&self.outer, &self.typed).unwrap_or(0);
                self.typed.drain(..written);
            }
            if holder {
                let gone = !matches!(self.client.receive(), Ok(1..));
                // What cannot be understood is never taken in, and would pile up.
                let odd = |error: io::Error| Failure::new(Code::Unreachable, error.to_string());
                while let Some(event) = self.client.buffered().map_err(odd)? {
                    if let Some(code) = finished(Some(event), self.seq)? {
                        // What it printed last is in the terminal already.
                        while self.show()? {}
                        return Ok(code);
                    }
                }
                if gone {
                    finished(None, self.seq)?;
                }
            }
        }
    }

    /// Waits until something can be done: signals, holder, output, input.
    fn wait(&self) -> Result<[bool; 4], Failure> {
        let stdin = io::stdin();
        let mut outer = PollFlags::IN;
        outer.set(PollFlags::OUT, !self.typed.is_empty());
        let mut fds = vec![
            PollFd::new(&self.signals, PollFlags::IN),
            PollFd::new(&*self.client, PollFlags::IN),
            PollFd::new(&self.outer, outer),
        ];
        if self.stdin && self.typed.len() < 64 << 10 {
            fds.push(PollFd::new(&stdin, PollFlags::IN));
        }
        match poll(&mut fds, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(Failure::system("cannot wait", &error.into())),
        }
        let ready = |at: usize| fds.get(at).is_some_and(|fd| !fd.revents().is_empty());
        // A terminal that nobody has open any more says so for ever: that must not become a busy wait.
        if fds[2].revents() == PollFlags::HUP {
            let mut others = [fds[0].clone(), fds[1].clone()];
            let _ = poll(&mut others, Some(&Timespec { tv_sec: 0, tv_nsec: 20_000_000 }));
            return Ok([!others[0].revents().is_empty(), !others[1].revents().is_empty(), false, ready(3)]);
        }
        Ok([ready(0), ready(1), ready(2), ready(3)])
    }

    fn signalled(&mut self) -> Option<i32> {
        for signal in self.signals.take() {
            if signal != libc::SIGWINCH {
                return Some(signal);
            }
            resize(&self.outer);
        }
        None
    }

    /// Shows what was printed; whether there may be more.
    fn show(&mut self) -> Result<bool, Trouble> {
        let mut buffer = [0; 16 << 10];
        let Ok(count @ 1..) = rustix::io::read(&self.outer, &mut buffer) else { return Ok(false) };
        self.modes.shown(&buffer[..count]);
        write_all(io::stdout().as_fd(), &buffer[..count]).map_err(|error| Trouble::output(&error))?;
        Ok(true)
    }

    fn read(&mut self) {
        let mut buffer = [0; 16 << 10];
        match rustix::io::read(io::stdin().as_fd(), &mut buffer) {
            Ok(count @ 1..) => self.typed.extend_from_slice(&buffer[..count]),
            Err(Errno::INTR | Errno::AGAIN) => {}
            // The end of our input is the end-of-file key of the terminal.
            Ok(_) | Err(_) => {
                self.stdin = false;
                self.typed.push(0x04);
            }
        }
    }
}
