use std::ffi::OsString;

use wharf_api::EnvRequest;
use wharf_model::{Change, Text};

use crate::dispatch::Serve;
use crate::trouble::{Done, invalid};
use crate::{call, output, variables};

/// Arguments of `env`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session, by name or id
    name: String,
    /// Variables to set: NAME=VALUE, or NAME to pass on the value it has here
    #[arg(value_name = "NAME=VALUE")]
    set: Vec<OsString>,
    /// A variable to take away; may be repeated
    #[arg(short = 'u', long, value_name = "NAME")]
    unset: Vec<OsString>,
    /// Print JSON: an array of [name, value]
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args, _: Serve) -> Done {
    if !args.set.is_empty() || !args.unset.is_empty() {
        let request = changes(&args)?;
        call::again(async |client| client.set_env(&args.name, &request).await)?;
        output::note(format!(
            "{}: holds for `wharf exec` and for the next start; the command that runs keeps what it has",
            args.name
        ));
        return Ok(0);
    }
    let vars = call::again(async |client| client.env(&args.name).await)?;
    if args.json {
        output::json(&vars)?;
        return Ok(0);
    }
    let mut text = Vec::new();
    for (name, value) in &vars {
        text.extend_from_slice(name.as_bytes());
        text.push(b'=');
        text.extend_from_slice(value.as_bytes());
        text.push(b'\n');
    }
    output::bytes(&text)?;
    Ok(0)
}

fn changes(args: &Args) -> Result<EnvRequest, wharf_model::Failure> {
    let mut request = EnvRequest::default();
    for text in &args.set {
        match variables::change(text, ":", |name| std::env::var_os(name))? {
            Change::Set(name, value) => request.set.push((name, value)),
            _ => {
                return Err(invalid(format!("{} appends", text.display()))
                    .hint("`wharf env` sets whole values: NAME=VALUE"));
            }
        }
    }
    request.unset = args.unset.iter().map(|name| Text::from(name.as_os_str())).collect();
    Ok(request)
}
