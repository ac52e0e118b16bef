use wharf_model::key_bytes;

use crate::dispatch::Serve;
use crate::trouble::{Done, invalid};
use crate::typing::{Keyboard, WITHIN};

/// Arguments of `keys`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session, by name or id
    name: String,
    /// Keys: Enter, Escape, C-c, M-x, Up, F5, or one character
    #[arg(required = true, value_name = "KEY")]
    keys: Vec<String>,
    /// Take the words as text and not as names of keys
    #[arg(short, long)]
    literal: bool,
}

pub(crate) fn run(args: Args, _: Serve) -> Done {
    let mut bytes = Vec::new();
    if args.literal {
        bytes.extend_from_slice(args.keys.join(" ").as_bytes());
    } else {
        for key in &args.keys {
            let pressed = key_bytes(key).map_err(|error| {
                invalid(error.to_string())
                    .hint("keys are Enter, Escape, Tab, Up, F5, C-c, M-x or one character; -l types text")
            })?;
            bytes.extend(pressed);
        }
    }
    Keyboard::of(&args.name)?.type_in(&bytes, WITHIN)?;
    Ok(0)
}
