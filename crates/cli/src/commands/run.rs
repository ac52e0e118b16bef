//! `wharf run`: starts a session, then attaches to it or prints its name.

use std::io::{self, IsTerminal};
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use wharf_api::{StartRequest, Started};
use wharf_model::{Code, Failure, Name, Pin, Project, Spec};

use crate::attach::{Begin, Options, attach};
use crate::dispatch::Serve;
use crate::start::StartArgs;
use crate::trouble::Done;
use crate::{call, output, place, surroundings};

/// Arguments of `run`.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {
    /// Print the name and leave it running; the default where there is no terminal
    #[arg(short, long, conflicts_with = "attach")]
    pub(crate) detach: bool,
    /// Attach, also where there is no terminal: input, output and signals are passed on, and the command's code is ours
    #[arg(short, long)]
    attach: bool,
    /// Print nothing
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// The keys that leave it running while attached
    #[arg(long, value_name = "KEYS")]
    detach_keys: Option<String>,
    #[command(flatten)]
    pub(crate) start: StartArgs,
}

pub(crate) fn run(args: Args, _: Serve) -> Done {
    let home = place::home()?;
    let terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    let attaches = args.attach || (!args.detach && terminal && !args.start.json);
    let (json, tty) = (args.start.json, args.start.terminal());
    // Whatever is wrong with the keys is said before anything is started.
    let keys = attaches.then(|| super::attach::keys(args.detach_keys, &home)).transpose()?;
    let spec = args.start.spec(&home)?;
    surroundings::ready(&spec)?;
    let (waits, geometry) = (!spec.after.is_empty(), spec.geometry);
    let Some((keys, outer)) = keys else {
        if json {
            let session = start(spec, false)?.session;
            tell_ignored(session.project.as_deref(), &session.pins);
            output::json(&session)?;
        } else {
            let name = start_for_its_name(spec)?;
            if !args.quiet {
                output::text(&format!("{name}\n"))?;
            }
        }
        return Ok(0);
    };
    let session = start(spec, false)?.session;
    tell_ignored(session.project.as_deref(), &session.pins);
    attach(&Options {
        name: session.name.to_string(),
        dir: session.path.as_path().to_owned(),
        tty,
        isolated: !matches!(session.isolation.as_str(), "none" | "sandbox"),
        read_only: false,
        geometry,
        keys,
        outer,
        begin: Begin::Fresh,
        owned: true,
        patience: (!waits).then_some(Duration::from_secs(5)),
    })
}

/// How long a daemon may take to start a session.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Asks a daemon that runs for a session; none where none runs.
fn start_directly(request: &StartRequest) -> Result<Option<Vec<u8>>, Failure> {
    let body = serde_json::to_vec(request)
        .map_err(|error| Failure::new(Code::Internal, format!("cannot write the request: {error}")))?;
    call::directly("/v1/sessions", Some(&body), START_TIMEOUT)
}

/// Asks for a session of which only the name is wanted, so that the rest of the answer is not read.
fn start_for_its_name(spec: Spec) -> Result<Name, Failure> {
    #[derive(Deserialize)]
    struct Answer {
        session: Named,
        #[serde(default)]
        hard_limits: Vec<String>,
    }
    #[derive(Deserialize)]
    struct Named {
        name: Name,
        #[serde(default)]
        project: Option<Project>,
        #[serde(default)]
        pins: Vec<Pin>,
    }
    let request = StartRequest { spec, ensure: false };
    match (start_directly(&request)?, request.spec.name) {
        // One in a group may have that in front of it.
        (Some(body), Some(name)) if request.spec.group.is_none() && !mentions_any(&body) => Ok(name),
        (Some(body), _) => {
            let answer = read::<Answer>(&body)?;
            note_limits(&answer.hard_limits);
            tell_ignored(answer.session.project.as_ref(), &answer.session.pins);
            Ok(answer.session.name)
        }
        (None, name) => {
            let session = start(Spec { name, ..request.spec }, false)?.session;
            tell_ignored(session.project.as_deref(), &session.pins);
            Ok(session.name)
        }
    }
}

/// Whether an answer may have something to tell: of a project's file, of paths that are not used, of limits. Most have not, and
/// are not read.
fn mentions_any(body: &[u8]) -> bool {
    const KEYS: [&[u8]; 3] = [b"\"project\":", b"\"unused\":", b"\"hard_limits\""];
    KEYS.iter().any(|key| body.windows(key.len()).any(|part| part == *key))
}

/// Says what of a project's file does not count, and which paths are not what they say they are.
pub(super) fn tell_ignored(project: Option<&Project>, pins: &[Pin]) {
    for pin in pins {
        if let Some(why) = &pin.unused {
            output::note(format!("warning: {} is not used {why}", pin.given.lossy()));
        }
    }
    let Some(project) = project.filter(|project| !project.ignored.is_empty()) else { return };
    for told in project.told() {
        output::note(format!("warning: {told}"));
    }
    if !project.trusted && !project.sha256.is_empty() {
        output::note(format!("hint: `wharf trust {}` shows it and asks", project.file.lossy()));
    }
}

fn note_limits(limits: &[String]) {
    if !limits.is_empty() {
        output::note(format!("the session is under {}, as its daemon is", limits.join(" and ")));
    }
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Failure> {
    serde_json::from_slice(body)
        .map_err(|error| Failure::new(Code::Internal, format!("cannot read the daemon's answer: {error}")))
}

/// Asks for a session.
pub(super) fn start(spec: Spec, ensure: bool) -> Result<Started, Failure> {
    let request = StartRequest { spec, ensure };
    match start_directly(&request) {
        Ok(Some(body)) => {
            return read(&body).inspect(|started: &Started| note_limits(&started.hard_limits));
        }
        Err(failure) if !(ensure && failure.code == Code::Unreachable) => return Err(failure),
        Ok(None) | Err(_) => {}
    }
    // An ensure may be repeated; a start may not, for the first one may have worked.
    let started = if ensure {
        call::again(async |client| client.start(&request).await)
    } else {
        call::once(async |client| client.start(&request).await)
    };
    started.inspect(|started| note_limits(&started.hard_limits))
}
