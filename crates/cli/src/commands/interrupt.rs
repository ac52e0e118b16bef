use crate::dispatch::Serve;
use crate::place;
use crate::trouble::Done;
use crate::typing::{Keyboard, WITHIN};

/// Arguments of `interrupt`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Sessions, by name or id
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
}

pub(crate) fn run(args: Args, _: Serve) -> Done {
    let home = place::home()?;
    for name in &args.names {
        let ticket = place::ticket(&place::session(&home, name)?)?;
        let mut keyboard = Keyboard::of(name)?;
        // A terminal makes a signal of the key, or hands it to an application that wants it. Pipes have no keys.
        if ticket.is_none_or(|ticket| ticket.spec.tty) {
            keyboard.type_in(b"\x03", WITHIN)?;
        } else {
            keyboard.signal(libc::SIGINT)?;
        }
    }
    Ok(0)
}
