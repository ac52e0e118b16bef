//! `wharf man`: shows or writes the manual pages.

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap_mangen::Man;
use wharf_model::Failure;

use crate::dispatch::Serve;
use crate::trouble::Done;
use crate::{EXIT_CODES, help, output};

/// Arguments of `man`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Write every page to this directory; without it the first page is shown, or printed as it is where it goes to no
    /// terminal
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

pub(crate) fn run(args: Args, _: Serve) -> Done {
    let tree = help::tree();
    let cannot = |what: &Path| {
        let what = format!("cannot write {}", what.display());
        move |error: io::Error| Failure::system(&what, &error)
    };
    let Some(dir) = args.output else {
        let words = tree.clone().render_long_help().to_string();
        let page = page(tree, "wharf").map_err(cannot(Path::new("the manual")))?;
        // Whoever looks at it wants it set; whoever pipes it on, or writes it to a file, wants the page itself.
        if !io::stdout().is_terminal() {
            output::raw(&page)?;
        } else if !set(&page) {
            output::text(&words)?;
        }
        return Ok(0);
    };
    fs::create_dir_all(&dir).map_err(cannot(&dir))?;
    let verbs: Vec<_> =
        tree.get_subcommands().cloned().map(|verb| (format!("wharf-{}", verb.get_name()), verb)).collect();
    for (name, command) in [("wharf".to_owned(), tree)].into_iter().chain(verbs) {
        let file = dir.join(format!("{name}.1"));
        page(command, &name).and_then(|page| fs::write(&file, page)).map_err(cannot(&file))?;
    }
    Ok(0)
}

/// Shows a page by the system's own reader of them; false where there is none.
fn set(page: &[u8]) -> bool {
    let reader = Command::new("man").args(["-l", "-"]).stdin(Stdio::piped()).stderr(Stdio::null()).spawn();
    let Ok(mut reader) = reader else { return false };
    // A reader that was left early has closed its end, and has shown what was wanted.
    let given = reader.stdin.take().is_some_and(|mut input| input.write_all(page).is_ok());
    reader.wait().is_ok_and(|status| status.success()) || !given
}

/// One page, with the exit codes at its end.
fn page(command: clap::Command, name: &str) -> io::Result<Vec<u8>> {
    let name: &'static str = name.to_owned().leak();
    let mut page = Vec::new();
    Man::new(command.name(name).disable_help_flag(true)).render(&mut page)?;
    page.extend_from_slice(b".SH \"EXIT STATUS\"\n");
    for (code, meaning) in EXIT_CODES {
        let meaning = meaning.replace('-', "\\-");
        page.extend_from_slice(format!(".TP\n\\fB{code}\\fR\n{meaning}\n").as_bytes());
    }
    Ok(page)
}
