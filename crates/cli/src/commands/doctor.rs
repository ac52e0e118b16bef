//! `wharf doctor`: checks all that sessions need on this host, and says what to do about it.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use wharf_api::{Check, daemon};
use wharf_model::{Failure, Home};

use crate::dispatch::Serve;
use crate::table::clean;
use crate::trouble::Done;
use crate::{call, config, output, place};

/// Arguments of `doctor`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A socket's path, with what ends it, may have this many bytes everywhere.
const MAX_SOCKET_PATH_LEN: usize = 104;

pub(crate) fn run(args: Args, _: Serve) -> Done {
    // Whose it is, is one of the things to look at.
    let home = place::named_home()?;
    let mut checks = vec![holder(), configuration(&home)];
    match daemon_checks(&home) {
        Ok(mut more) => {
            needed(&mut more, config::backend(&home).ok().flatten().as_deref());
            checks.extend(more);
            checks.extend(agents());
        }
        // Then what it would have looked at is looked at here.
        Err(failed) => checks.extend([state(home.state()), socket_path(&home), failed]),
    }
    if args.json {
        output::json(&checks)?;
    } else {
        let wide = checks.iter().map(|check| check.name.len()).max().unwrap_or(0);
        let mut page = String::new();
        for check in &checks {
            let mark = if check.ok { "ok  " } else { "FAIL" };
            let _ = writeln!(page, "{mark}  {:<wide$}  {}", check.name, clean(&check.detail));
            if let Some(hint) = check.hint.as_ref().filter(|_| !check.ok) {
                let _ = writeln!(page, "      {:<wide$}  hint: {}", "", clean(hint));
            }
        }
        output::text(&page)?;
    }
    Ok(u8::from(!checks.iter().all(|check| check.ok)))
}

fn good(name: &str, detail: impl Into<String>) -> Check {
    Check { name: name.to_owned(), ok: true, detail: detail.into(), hint: None }
}

fn bad(name: &str, detail: impl Into<String>, hint: impl Into<String>) -> Check {
    Check { name: name.to_owned(), ok: false, detail: detail.into(), hint: Some(hint.into()) }
}

fn state(dir: &Path) -> Check {
    let shown = dir.display().to_string();
    let meta = match fs::metadata(dir) {
        Ok(meta) => meta,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return good("state", format!("{shown} will be made by the first session"));
        }
        Err(error) => {
            return bad(
                "state",
                format!("{shown}: {error}"),
                "set HOME or XDG_STATE_HOME to a place of yours",
            );
        }
    };
    if !meta.is_dir() {
        return bad("state", format!("{shown} is no directory"), "move it away");
    }
    if meta.uid() != rustix::process::geteuid().as_raw() {
        return bad(
            "state",
            format!("{shown} belongs to user {}", meta.uid()),
            "each user needs one of their own",
        );
    }
    let mode = meta.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return bad(
            "state",
            format!("{shown} is open to others (mode {mode:03o})"),
            format!("chmod 700 {shown}"),
        );
    }
    if rustix::fs::access(dir, rustix::fs::Access::WRITE_OK).is_err() {
        return bad("state", format!("{shown} cannot be written"), "make it writable, or set XDG_STATE_HOME");
    }
    good("state", shown)
}

fn socket_path(home: &Home) -> Check {
    // sessions/, sixteen characters, /sock
    let longest = home.sessions().as_os_str().len() + 1 + 16 + 1 + Home::SOCKET.len();
    if longest < MAX_SOCKET_PATH_LEN {
        return good("sockets", format!("the longest path has {longest} of {MAX_SOCKET_PATH_LEN} bytes"));
    }
    good("sockets", format!("paths of {longest} bytes are reached by a detour"))
}

fn holder() -> Check {
    let found = std::env::var_os("WHARF_HOLDER").map(PathBuf::from).or_else(|| {
        let own = std::env::current_exe().ok()?;
        Some(own.with_file_name("wharf-holder"))
    });
    match found {
        Some(path) if rustix::fs::access(&path, rustix::fs::Access::EXEC_OK).is_ok() => {
            good("holder", path.display().to_string())
        }
        Some(path) => bad(
            "holder",
            format!("{} is not there, or not executable", path.display()),
            "install wharf-holder beside wharf, or set WHARF_HOLDER",
        ),
        None => bad("holder", "the program that is running cannot be found", "set WHARF_HOLDER"),
    }
}

fn configuration(home: &Home) -> Check {
    let file = home.config_file();
    match config::load(home) {
        Ok(_) if file.exists() => good("config", file.display().to_string()),
        Ok(_) => good("config", format!("{} does not exist: the defaults hold", file.display())),
        Err(Failure { message, hint, .. }) => bad("config", message, hint.unwrap_or_default()),
    }
}

/// The place that sessions run in unless they name another must be there; the daemon does not know which the user chose.
fn needed(checks: &mut [Check], chosen: Option<&str>) {
    let Some(chosen) = chosen else { return };
    let there = call::again(async |client| client.backends().await)
        .is_ok_and(|all| all.iter().any(|backend| backend.name == chosen && backend.available));
    let name = format!("backend {chosen}");
    if let Some(check) = checks.iter_mut().find(|check| check.name == name && !there) {
        check.ok = false;
        check.detail.push_str("; it is the default");
    }
}

/// The agents that are installed here, and which versions of them.
fn agents() -> Vec<Check> {
    let known = match super::agents::known() {
        Ok(known) => known,
        Err(failure) => return vec![bad("agents", failure.message, failure.hint.unwrap_or_default())],
    };
    let there: Vec<Check> = known
        .into_iter()
        .filter_map(|agent| {
            let place = agent.installed?;
            let version = agent.version.unwrap_or_else(|| "does not say its version".to_owned());
            Some(good(&format!("agent {}", agent.name), format!("{version}, {place}")))
        })
        .collect();
    if there.is_empty() { vec![good("agents", "none is in this shell's PATH")] } else { there }
}

/// What the daemon sees; that it can be started is the first of it.
fn daemon_checks(home: &Home) -> Result<Vec<Check>, Check> {
    let asked = call::runtime().and_then(|runtime| {
        runtime.block_on(async {
            let client = daemon::ensure(home).await?;
            Ok((client.daemon().await?, client.doctor().await?))
        })
    });
    match asked {
        Ok((status, checks)) => {
            let mut all = vec![good("daemon", format!("pid {}, version {}", status.pid, status.version))];
            all.extend(checks);
            Ok(all)
        }
        Err(failure) => {
            let log = format!("{} says more", home.daemon_log().display());
            Err(bad("daemon", failure.message, failure.hint.unwrap_or(log)))
        }
    }
}
