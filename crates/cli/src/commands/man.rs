use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap_mangen::Man;
use wharf_model::Failure;

use crate::dispatch::Serve;
use crate::trouble::Done;
use crate::{EXIT_CODES, help, output};

/// Arguments of `man`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Write every page to this directory; without it the first page is printed
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
        output::bytes(&page(tree, "wharf").map_err(cannot(Path::new("the manual")))?)?;
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
