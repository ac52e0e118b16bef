//! `wharf exec`: runs one more command in a session's place and process tree.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;

use wharf_holder::wire::Exec;
use wharf_holder_client::client::Event;
use wharf_holder_client::pumped;
use wharf_model::{Code, Failure, Text};

use crate::dispatch::Serve;
use crate::trouble::{Done, Trouble};
use crate::{attach, call, inner_terminal};

/// Arguments of `exec`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Give it a terminal; the default where standard input is one
    #[arg(short, long)]
    tty: bool,
    /// Give it no terminal
    #[arg(short = 'T', long, conflicts_with = "tty")]
    no_tty: bool,
    /// The directory to run in; the session's own when absent
    #[arg(short = 'w', long, value_name = "DIR")]
    dir: Option<OsString>,
    /// The session, by name or id
    name: String,
    /// The command and its arguments
    #[arg(required = true, value_name = "COMMAND", trailing_var_arg = true)]
    argv: Vec<OsString>,
}

pub(crate) fn run(args: Args, _: Serve) -> Done {
    let (session, env) = call::again(async |client| {
        let session = client.session(&args.name).await?;
        Ok((session, client.env(&args.name).await?))
    })?;
    let ended = || {
        Failure::new(Code::Ended, format!("the session {:?} has ended", args.name))
            .hint(format!("`wharf restart {}` starts it again", args.name))
    };
    if session.state.is_over() {
        return Err(ended().into());
    }
    let dir = match args.dir {
        Some(dir) => session.dir.as_path().join(dir).into(),
        None => session.dir.clone(),
    };
    let patience = Some(std::time::Duration::from_secs(2));
    let attach::Reached::Live(mut client) =
        attach::reach(session.path.as_path(), session.name.as_str(), "program", patience)?
    else {
        return Err(ended().into());
    };
    if !client.has("exec") {
        return Err(Failure::unsupported("further commands", "the holder of this session").into());
    }
    let argv: Vec<Text> = args.argv.into_iter().map(Text::from).collect();
    let tty = args.tty || (io::stdin().is_terminal() && !args.no_tty);
    if tty {
        return inner_terminal::exec(&mut client, &argv, &env, dir);
    }
    let exec = Exec { dir, tty: false };
    let (input, output, error) = (io::stdin(), io::stdout(), io::stderr());
    // What is kept apart from us does not get our own descriptors: it could use them after the command has ended.
    if session.isolation != "none" {
        let stdio = [input.as_fd(), output.as_fd(), error.as_fd()];
        let code = pumped::exec(&mut client, &argv, &env, &exec, stdio)?;
        return Ok(u8::try_from(code & 0xff).unwrap_or(125));
    }
    let seq = client
        .exec(&argv, &env, &exec, [input.as_fd(), output.as_fd(), error.as_fd()])
        .map_err(|error| Failure::system("cannot pass the command to the session", &error))?;
    loop {
        let odd = |error: io::Error| Failure::new(Code::Unreachable, error.to_string());
        let event = client.next_event().map_err(odd)?;
        if let Some(code) = finished(event, seq)? {
            return Ok(code);
        }
    }
}

/// The command's code, once the holder has told it.
pub(crate) fn finished(event: Option<Event>, seq: u32) -> Result<Option<u8>, Trouble> {
    match event {
        Some(Event::Done { seq: done, answer }) if done == seq => {
            let code = answer.first_chunk().map_or(125, |bytes| i32::from_le_bytes(*bytes));
            Ok(Some(u8::try_from(code & 0xff).unwrap_or(125)))
        }
        Some(Event::Refused { seq: refused, failure }) if refused == seq => Err(failure.into()),
        Some(Event::Exit(_)) => {
            Err(Failure::new(Code::Ended, "the session ended, and the command with it").into())
        }
        Some(_) => Ok(None),
        None => {
            Err(Failure::new(Code::Unreachable, "the session's holder went away while the command ran")
                .into())
        }
    }
}
