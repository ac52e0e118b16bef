//! `wharf image`: lists, pulls, builds, prunes and removes container images.

use std::path::{Path, PathBuf};

use wharf_api::{PruneRequest, RemoveImageRequest};
use wharf_model::{Code, Container, Failure, ImageSummary, Pull, Spec};

use crate::dispatch::Serve;
use crate::duration::{human, now};
use crate::each::each;
use crate::progress::Steps;
use crate::quantity::human_bytes;
use crate::table::Table;
use crate::trouble::Done;
use crate::{call, container, output, start, surroundings};

/// Arguments of `image`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// List the images of every engine that answers
    Ls(Ls),
    /// Fetch an image
    Pull(PullArgs),
    /// Build an image from a directory with a Dockerfile, or from that Dockerfile
    Build(Build),
    /// Remove images that were built here and that no container needs: those whose name a newer one has taken
    Prune(Prune),
    /// Remove images, unless a container needs them
    Rm(Rm),
}

/// The engine that is meant.
#[derive(Debug, clap::Args)]
struct Engine {
    /// The backend whose engine is meant: docker, podman
    #[arg(short, long, value_name = "BACKEND")]
    backend: Option<String>,
}

#[derive(Debug, clap::Args)]
struct Ls {
    #[command(flatten)]
    engine: Engine,
    /// Only those that were built here
    #[arg(long)]
    ours: bool,
    /// Only ids
    #[arg(short, long, conflicts_with = "json")]
    quiet: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct PullArgs {
    /// The image
    image: String,
    /// The platform that it is for, such as linux/arm64; the engine's own when absent
    #[arg(long, value_name = "OS/ARCH")]
    platform: Option<String>,
    #[command(flatten)]
    engine: Engine,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct Build {
    /// The directory, or the Dockerfile
    #[arg(default_value = ".")]
    path: PathBuf,
    /// What to call it; by where it comes from when absent
    #[arg(short, long, value_name = "IMAGE")]
    tag: Option<String>,
    #[command(flatten)]
    engine: Engine,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct Prune {
    /// Also those that have a name
    #[arg(short, long)]
    all: bool,
    /// Only say what would be removed
    #[arg(short = 'n', long)]
    dry_run: bool,
    #[command(flatten)]
    engine: Engine,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct Rm {
    /// Images, by name or id
    #[arg(required = true, value_name = "IMAGE")]
    images: Vec<String>,
    #[command(flatten)]
    engine: Engine,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args, _: Serve) -> Done {
    match args.what {
        What::Ls(args) => ls(&args),
        What::Pull(args) => {
            let container =
                Container { pull: Pull::Always, platform: args.platform, ..Container::of(args.image) };
            made(container, args.engine.backend, args.json)
        }
        What::Build(args) => {
            let image = args.tag.unwrap_or_default();
            let build = Some(start::absolute(&args.path)?);
            made(Container { image, build, ..Container::default() }, args.engine.backend, args.json)
        }
        What::Prune(args) => prune(args),
        What::Rm(args) => rm(&args),
    }
}

fn ls(args: &Ls) -> Done {
    let said = container::engine_asked();
    let mut images =
        call::again(async |client| client.images(args.engine.backend.as_deref(), Some(&said)).await)?;
    images.retain(|image| image.ours || !args.ours);
    if args.json {
        output::json(&images)?;
    } else if args.quiet {
        output::text(&images.iter().flat_map(|image| [&image.id, "\n"]).collect::<String>())?;
    } else {
        output::table(&listing(&images))?;
    }
    Ok(0)
}

fn listing(images: &[ImageSummary]) -> Table {
    let now = now();
    let mut table = Table::new(&["IMAGE", "ID", "BACKEND", "SIZE", "AGE", "BUILT HERE", "CONTAINERS"]);
    for image in images {
        let names = if image.names.is_empty() { "-".to_owned() } else { image.names.join(" ") };
        table.row([
            names,
            short(&image.id).to_owned(),
            image.backend.clone(),
            human_bytes(image.size),
            human(image.created, now),
            if image.ours { "yes" } else { "no" }.to_owned(),
            image.containers.to_string(),
        ]);
    }
    table
}

/// As much of an id as people need.
fn short(id: &str) -> &str {
    let id = id.strip_prefix("sha256:").unwrap_or(id);
    id.get(..12).unwrap_or(id)
}

/// Fetches or builds an image, and tells which it is now.
fn made(container: Container, backend: Option<String>, json: bool) -> Done {
    let mut spec = Spec::new(["true"], start::absolute(Path::new("."))?);
    spec.backend.clone_from(&backend);
    let said = container::engine_asked();
    spec.container = Some(Box::new(Container { engine: Some(said.clone()), ..container }));
    let mut steps = Steps::default();
    let ready = surroundings::prepare(&spec, |step| steps.tell(step))?;
    steps.end();
    let images = call::again(async |client| client.images(backend.as_deref(), Some(&said)).await)?;
    // What is ready is told in words, which have the engine's own id of it.
    let image = images.into_iter().find(|image| ready.iter().any(|line| line.contains(short(&image.id))));
    let image =
        image.ok_or_else(|| Failure::new(Code::NotFound, "the image is gone again: somebody removed it"))?;
    if json {
        output::json(&image)?;
    } else {
        output::text(&format!("{}\n", image.names.first().unwrap_or(&image.id)))?;
    }
    Ok(0)
}

fn prune(args: Prune) -> Done {
    let request = PruneRequest {
        backend: args.engine.backend,
        engine: Some(container::engine_asked()),
        all: args.all,
        dry_run: args.dry_run,
    };
    let removed = call::once(async |client| client.prune_images(&request).await)?;
    if args.json {
        output::json(&removed)?;
        return Ok(0);
    }
    let done = if args.dry_run { "would be removed" } else { "removed" };
    for image in &removed {
        let name = image.names.first().map_or_else(|| short(&image.id).to_owned(), Clone::clone);
        output::text(&format!("{name} {done}, {}\n", human_bytes(image.size)))?;
    }
    if removed.is_empty() {
        output::note("nothing that was built here is left over");
    }
    Ok(0)
}

fn rm(args: &Rm) -> Done {
    let mut removed = Vec::new();
    let code = each(&args.images, args.json, |name| {
        let (backend, engine) = (args.engine.backend.clone(), Some(container::engine_asked()));
        let request = RemoveImageRequest { backend, engine, name: name.to_owned() };
        call::once(async |client| client.remove_image(&request).await)?;
        if args.json {
            removed.push(name.to_owned());
        } else {
            output::text(&format!("{name} removed\n"))?;
        }
        Ok(0)
    })?;
    if args.json {
        output::json(&removed)?;
    }
    Ok(code)
}
