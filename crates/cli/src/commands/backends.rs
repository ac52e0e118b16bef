use crate::dispatch::Serve;
use crate::table::Table;
use crate::trouble::Done;
use crate::{call, output};

/// Arguments of `backends`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args, _: Serve) -> Done {
    let backends = call::again(async |client| client.backends().await)?;
    if args.json {
        output::json(&backends)?;
        return Ok(0);
    }
    let mut table = Table::new(&["NAME", "DEFAULT", "AVAILABLE", "VERSION", "ISOLATION", "DETAIL"]);
    let yes = |yes: bool| if yes { "yes" } else { "no" }.to_owned();
    for backend in backends {
        let detail = match &backend.hint {
            Some(hint) => format!("{} (hint: {hint})", backend.detail),
            None => backend.detail,
        };
        table.row([
            backend.name,
            yes(backend.default),
            yes(backend.available),
            backend.version.unwrap_or_else(|| "-".to_owned()),
            if backend.capabilities.isolation { "yes" } else { "none" }.to_owned(),
            detail,
        ]);
    }
    output::table(&table)?;
    Ok(0)
}
