//! `wharf trust`: the user accepts a project's own file, having seen it.

use std::io::{self, BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

use wharf_api::{TrustAccept, TrustLook, TrustRevoke};
use wharf_model::ProjectView;

use crate::dispatch::Serve;
use crate::duration::{human, now};
use crate::table::Table;
use crate::trouble::{Done, Trouble, invalid};
use crate::{call, diff, output, start};

/// Arguments of `trust`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: Option<What>,
    /// The file, or its directory; the one that counts for sessions here when absent
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

/// What else there is to do about trust.
#[derive(Debug, clap::Subcommand)]
enum What {
    /// List the files that are trusted
    Ls(List),
    /// Trust a file no longer
    Revoke(Revoke),
}

/// Arguments of `trust ls`.
#[derive(Debug, clap::Args)]
struct List {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Arguments of `trust revoke`.
#[derive(Debug, clap::Args)]
struct Revoke {
    /// The file, or its directory
    file: PathBuf,
}

pub(crate) fn run(args: Args, _: Serve) -> Done {
    match args.what {
        Some(What::Ls(list)) => listed(list.json),
        Some(What::Revoke(revoke)) => revoked(&revoke.file),
        None => accepted(args.file.as_deref(), args.yes),
    }
}

fn accepted(file: Option<&Path>, yes: bool) -> Done {
    let look = TrustLook { path: start::absolute(file.unwrap_or(Path::new(".")))?, search: file.is_none() };
    let view = call::again(async |client| client.look_at_project(&look).await)?;
    let file = view.file.lossy().into_owned();
    if view.trusted {
        output::note(format!("{file} is trusted already"));
        return Ok(0);
    }
    output::text(&page(&view))?;
    if !yes && !agreed(&file)? {
        output::note("it stays as it was: what is more careful counts, the rest is ignored");
        return Ok(1);
    }
    let accept = TrustAccept { file: view.file, sha256: view.sha256 };
    call::once(async |client| client.trust(&accept).await)?;
    output::note(format!(
        "{file} is trusted, for as long as it does not change; sessions that start from now on follow it"
    ));
    Ok(0)
}

/// What is new in it, or all of it where nothing of it was ever accepted.
fn page(view: &ProjectView) -> String {
    let (about, lines) = match &view.before {
        Some(before) => ("since it was last trusted", diff::diff(before, &view.text)),
        None => ("never trusted before", diff::whole(&view.text)),
    };
    format!("{} ({about})\nsha256 {}\n\n{lines}", view.file.lossy(), view.sha256)
}

fn agreed(file: &str) -> Result<bool, Trouble> {
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return Err(invalid(format!("nobody can be asked whether to trust {file}"))
            .hint("look at it, then say it with --yes")
            .into());
    }
    let _ = write!(
        io::stderr(),
        "\nIt can decide which programs run and which keys are pressed. Trust it? [y/N] "
    );
    let mut answer = String::new();
    io::stdin()
        .lock()
        .read_line(&mut answer)
        .map_err(|error| wharf_model::Failure::system("cannot read the answer", &error))?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

fn listed(json: bool) -> Done {
    let files = call::again(async |client| client.trusted().await)?;
    if json {
        output::json(&files)?;
        return Ok(0);
    }
    let now = now();
    let mut table = Table::new(&["FILE", "SHA256", "AGE"]);
    for file in files {
        table.row([file.file.lossy().into_owned(), file.sha256, human(file.at, now)]);
    }
    output::table(&table)?;
    Ok(0)
}

fn revoked(file: &Path) -> Done {
    let whole = start::absolute(file)?;
    // One that is gone, or whose directory is, can be named by the path that the list has.
    let known = call::again(async |client| client.trusted().await)?;
    let path = whole.as_path();
    let mut names = vec![path.to_owned(), path.join("wharf.toml")];
    if let (Some(dir), Some(name)) = (path.parent().and_then(|dir| dir.canonicalize().ok()), path.file_name())
    {
        names.push(dir.join(name));
    }
    names.extend(path.canonicalize().map(|dir| dir.join("wharf.toml")));
    let listed = known.into_iter().find(|trusted| names.iter().any(|name| trusted.file.as_path() == name));
    let request = TrustRevoke { file: listed.map_or(whole, |trusted| trusted.file) };
    call::once(async |client| client.revoke_trust(&request).await)?;
    output::note(format!("{} is not trusted any more", request.file.lossy()));
    Ok(0)
}
