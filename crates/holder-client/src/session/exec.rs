//! A further command in a session's place, on a connection of its own that waits as long as the command takes.

use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use wharf_backend::{ExecRequest, Result};
use wharf_boundary::SessionDir;
use wharf_holder::wire;
use wharf_model::{Code, Failure};

use crate::client::{Client, Event};
use crate::pumped;

/// Runs it, and answers with its code as a shell would have it.
pub(super) fn run(home: &Path, isolated: bool, request: &ExecRequest) -> Result<i32> {
    let failed = |error: io::Error| {
        if SessionDir::open(home).is_ok_and(|dir| dir.has_exit()) {
            return Failure::new(Code::Ended, "the session has ended");
        }
        Failure::system("cannot run a further command", &error)
    };
    let mut client = Client::connect(home, "program").map_err(failed)?;
    let stdio = [request.stdio[0].as_fd(), request.stdio[1].as_fd(), request.stdio[2].as_fd()];
    let exec = wire::Exec { dir: request.dir.clone(), tty: request.tty };
    // What runs in a place of its own does not get the caller's descriptors, be they a terminal or not.
    if isolated {
        return pumped::exec(&mut client, &request.argv, &request.env, &exec, stdio);
    }
    let wanted = client.exec(&request.argv, &request.env, &exec, stdio).map_err(failed)?;
    loop {
        match client.next_event().map_err(failed)? {
            Some(Event::Done { seq, answer }) if seq == wanted => {
                let code = answer.first_chunk().map(|bytes| i32::from_le_bytes(*bytes));
                return code.ok_or_else(|| Failure::new(Code::Internal, "the holder's answer is odd"));
            }
            Some(Event::Refused { seq, failure }) if seq == wanted => return Err(failure),
            Some(Event::Exit(_)) | None => {
                return Err(Failure::new(Code::Ended, "the session ended, and the command with it"));
            }
            Some(_) => {}
        }
    }
}
