//! `wharf show`: prints all that is known of one session.

use std::fmt::Write as _;

use wharf_model::{Home, MadeContainer, Mounted, MountedBy, Pin, ScopeKind, Session};

use crate::dispatch::Serve;
use crate::duration::{human, now, rfc3339};
use crate::quantity::human_bytes;
use crate::selection::ending;
use crate::table::{clean, command_line};
use crate::trouble::Done;
use crate::{call, output};

/// How many digits of a container's id people need.
const SHORT_ID_LEN: usize = 12;

/// Arguments of `show`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session, by name or id
    name: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args, _: Serve) -> Done {
    let session = call::again(async |client| client.glance(&args.name).await)?;
    if args.json {
        output::json(&session)?;
    } else {
        output::text(&page(&session))?;
    }
    Ok(0)
}

fn page(session: &Session) -> String {
    let now = now();
    let mut page = String::new();
    let mut line = |what: &str, text: &str| {
        let _ = writeln!(page, "{what:<10} {}", clean(text));
    };
    line("name", session.name.as_str());
    line("id", session.id.as_str());
    if let Some(group) = &session.group {
        line("group", group.as_str());
    }
    for (key, value) in &session.labels {
        line("label", &format!("{key}={value}"));
    }
    let detail = session.detail.as_ref().map(|detail| format!(": {detail}")).unwrap_or_default();
    let paused = if session.paused { ", paused" } else { "" };
    let suspended = if session.suspended { ", suspended by a signal" } else { "" };
    line(
        "state",
        &format!("{} for {}{paused}{suspended}{detail}", session.state.as_str(), human(session.since, now)),
    );
    if let Some(evidence) = &session.evidence {
        line("because", &format!("{evidence} (source: {})", session.source.as_str()));
    }
    if let Some(agent) = &session.agent {
        let conversation = session.conversation.as_ref().map(|id| format!(", conversation {id}"));
        line("agent", &format!("{agent}{}", conversation.unwrap_or_default()));
    }
    if let Some(exit) = &session.exit {
        let by = exit.by.as_ref().map(|by| format!(", asked by {by}")).unwrap_or_default();
        line("exit", &format!("{}{by}, at {}", ending(exit), rfc3339(exit.ended)));
    }
    if let Some(pid) = session.pid {
        line("pid", &pid.to_string());
    }
    line("command", &command_line(&session.argv));
    line("directory", &session.dir.lossy());
    line("created", &format!("{} ({} ago)", rfc3339(session.created), human(session.created, now)));
    line("run", &format!("{}, restart {}", session.run, restart(session)));
    let place = if session.tty {
        format!("a terminal of {}x{}, {} attached", session.size.cols, session.size.rows, session.attached)
    } else {
        "pipes".to_owned()
    };
    line("place", &format!("{}, {place}", session.backend));
    if let Some(guest) = &session.guest {
        line("guest", &format!("{guest}, which is somebody else's: it is let go and never ended"));
    }
    if let Some(made) = &session.container {
        line("container", &container(made, session.state.is_over()));
    }
    if let Some(why) = &session.chosen {
        line("chosen", why);
    }
    if let Some(project) = &session.project {
        let how = if project.trusted { "trusted" } else { "not trusted: `wharf trust` shows it" };
        line("project", &format!("{} ({how})", project.file.lossy()));
        for ignored in &project.ignored {
            line("ignored", &format!("{}: {}", ignored.setting, ignored.why));
        }
    }
    line("isolation", &isolation(session));
    for words in &session.environment {
        line("inside", words);
    }
    for mounted in &session.mounts {
        line("mount", &mount(mounted));
    }
    for pin in &session.pins {
        line("pinned", &self::pin(pin));
    }
    for port in &session.ports {
        line("port", &format!("{} as {}", port.number, port.variable));
    }
    let limits = [
        session.limits.memory.map(|bytes| format!("memory {}", human_bytes(bytes))),
        session.limits.cpus.map(|cpus| format!("cpus {cpus}")),
        session.limits.pids.map(|pids| format!("pids {pids}")),
    ];
    let limits: Vec<String> = limits.into_iter().flatten().collect();
    if !limits.is_empty() {
        line("limits", &limits.join(", "));
    }
    line("tree kill", scope(session.scope.kind));
    line("log", &session.path.as_path().join(Home::LOG).to_string_lossy());
    if let Some(file) = &session.copy_to {
        line("copied to", &file.lossy());
    }
    page
}

/// The container that a session has or had.
fn container(made: &MadeContainer, over: bool) -> String {
    let id = made.id.get(..SHORT_ID_LEN).unwrap_or(&made.id);
    let there = match (over, made.kept) {
        (true, false) => ", gone with its session",
        (true, true) => ", kept for `restart` until `rm`",
        (false, true) => ", kept after its end",
        (false, false) => "",
    };
    format!("{} ({id}) of {}{there}", made.name, made.engine)
}

fn restart(session: &Session) -> &'static str {
    match session.restart {
        wharf_model::Restart::No => "no",
        wharf_model::Restart::OnFailure => "on-failure",
        wharf_model::Restart::Always => "always",
    }
}

fn mount(mounted: &Mounted) -> String {
    let source =
        if mounted.source.is_empty() { "a volume of its own".into() } else { mounted.source.lossy() };
    let access = if mounted.read_only { "read-only" } else { "writable" };
    let by = match mounted.by {
        MountedBy::User => "as you asked",
        MountedBy::Image => "by the image",
        MountedBy::Wharf => "by wharf",
        MountedBy::Other => "by others",
    };
    let what = if mounted.what.is_empty() { String::new() } else { format!(": {}", mounted.what) };
    format!("{source} at {}, {access}, {by}{what}", mounted.target.lossy())
}

fn pin(pin: &Pin) -> String {
    let path = pin.path.lossy();
    let given =
        if pin.given == pin.path { String::new() } else { format!(", given as {}", pin.given.lossy()) };
    match &pin.unused {
        Some(why) => format!("{path} is not used: {why}"),
        None => format!("{path}{given}: {}", pin.words()),
    }
}

fn isolation(session: &Session) -> String {
    match session.isolation.as_str() {
        "none" => "none: its processes can do what you can".to_owned(),
        "sandbox" => "sandbox: its processes can do what the lines below say".to_owned(),
        other => other.to_owned(),
    }
}

fn scope(kind: ScopeKind) -> &'static str {
    match kind {
        ScopeKind::Cgroup2 => "cgroup v2 (cgroup.kill)",
        ScopeKind::Cgroup1 => "cgroup v1 (freezer)",
        ScopeKind::Namespace => "its own process namespace, which ends with its holder",
        ScopeKind::Walk => "walk of descendants (no cgroup can be made here)",
    }
}
