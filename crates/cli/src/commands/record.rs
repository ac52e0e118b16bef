//! `wharf record`: exports a session's output as an asciicast.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use wharf_log::asciicast::{self, About, Version};
use wharf_model::{Act, Failure, Home};

use crate::dispatch::Serve;
use crate::table::command_line;
use crate::trouble::{Done, Trouble};
use crate::{permission, place};

/// Arguments of `record`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Write a session's output as an asciicast
    Export(Export),
}

#[derive(Debug, clap::Args)]
struct Export {
    /// The session, by name or id
    name: String,
    /// The file; standard output when absent
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The second version of the format, for asciinema before 3.0
    #[arg(long)]
    v2: bool,
}

pub(crate) fn run(args: Args, _: Serve) -> Done {
    let What::Export(export) = args.what;
    let home = place::home()?;
    let dir = place::session(&home, &export.name)?;
    permission::to(&home, Act::Read, "read the output of", &dir, &export.name)?;
    let about = about(&dir, &export)?;
    let log = dir.join(Home::LOG);
    match export.output {
        None => {
            let mut out = Watched::new(BufWriter::new(io::stdout().lock()));
            let written = asciicast::export(&log, &mut out, &about).and_then(|()| out.flush());
            out.told(written, "the recording")?;
        }
        Some(file) => {
            let to = File::create(&file)
                .map_err(|error| Failure::system(format_args!("cannot write {}", file.display()), &error))?;
            let mut out = Watched::new(BufWriter::new(to));
            let written = asciicast::export(&log, &mut out, &about).and_then(|()| out.flush());
            out.told(written, &file.display().to_string())?;
        }
    }
    Ok(0)
}

fn about(dir: &std::path::Path, export: &Export) -> Result<About, Failure> {
    let ticket = place::ticket(dir)?;
    let exit = place::exit(dir)?;
    let spec = ticket.as_ref().map(|ticket| &ticket.spec);
    Ok(About {
        version: if export.v2 { Version::V2 } else { Version::V3 },
        title: Some(export.name.clone()),
        command: spec.map(|spec| command_line(&spec.argv)),
        // No variable is told: any of them may be a secret.
        term: None,
        env: Vec::new(),
        exit: exit.as_ref().map(wharf_model::ExitRecord::shell_code),
        ended: exit.map(|exit| exit.ended.0.saturating_mul(1_000)),
    })
}

/// Remembers whether a failure was the reader's or the writer's.
struct Watched<W> {
    to: W,
    failed: Option<io::Error>,
}

impl<W: Write> Watched<W> {
    fn new(to: W) -> Self {
        Self { to, failed: None }
    }

    fn told(&mut self, result: io::Result<()>, to: &str) -> Result<(), Trouble> {
        match (result, self.failed.take()) {
            (Ok(()), _) => Ok(()),
            (Err(_), Some(error)) if error.kind() == io::ErrorKind::BrokenPipe => Err(Trouble::Closed),
            (Err(_), Some(error)) => Err(Failure::system(format_args!("cannot write {to}"), &error).into()),
            (Err(error), None) => Err(Failure::system("cannot read the log", &error).into()),
        }
    }
}

impl<W: Write> Write for Watched<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.to.write(bytes).inspect_err(|error| self.failed = Some(error.kind().into()))
    }
    fn flush(&mut self) -> io::Result<()> {
        self.to.flush().inspect_err(|error| self.failed = Some(error.kind().into()))
    }
}
