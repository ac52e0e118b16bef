//! `wharf write`: types text or standard input into a session.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Read};
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use wharf_model::Failure;

use crate::dispatch::Serve;
use crate::duration;
use crate::trouble::{Done, invalid};
use crate::typing::{Keyboard, MAX_WRITE_LEN, WRITE_TIMEOUT};

/// Arguments of `write`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session, by name or id
    name: String,
    /// The text; several words are joined by spaces, `-` or none reads standard input
    #[arg(value_name = "TEXT")]
    text: Vec<OsString>,
    /// How long each piece of up to 1 MiB may take to go in
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    timeout: Option<Duration>,
    /// End the input of a session without a terminal afterwards
    #[arg(long)]
    eof: bool,
}

pub(crate) fn run(args: Args, _: Serve) -> Done {
    let within = args.timeout.unwrap_or(WRITE_TIMEOUT);
    let from_stdin = match args.text.as_slice() {
        [] => !args.eof || !io::stdin().is_terminal(),
        [only] => only == "-",
        _ => false,
    };
    if from_stdin && args.text.is_empty() && io::stdin().is_terminal() {
        return Err(invalid("there is nothing to write")
            .hint("give TEXT, or - to read standard input")
            .into());
    }
    let mut keyboard = Keyboard::of(&args.name, within)?;
    if from_stdin {
        copy(&mut keyboard, within)?;
    } else {
        let words: Vec<&[u8]> = args.text.iter().map(|word| word.as_bytes()).collect();
        for piece in words.join(&b' ').chunks(MAX_WRITE_LEN) {
            keyboard.type_in(piece, within)?;
        }
    }
    if args.eof {
        keyboard.close()?;
    }
    Ok(0)
}

/// Types all of standard input, a piece at a time.
fn copy(keyboard: &mut Keyboard, within: Duration) -> Result<(), Failure> {
    let mut stdin = io::stdin().lock();
    loop {
        let mut piece = Vec::new();
        let read = stdin.by_ref().take(MAX_WRITE_LEN as u64).read_to_end(&mut piece);
        read.map_err(|error| Failure::system("cannot read standard input", &error))?;
        if piece.is_empty() {
            return Ok(());
        }
        keyboard.type_in(&piece, within)?;
    }
}
