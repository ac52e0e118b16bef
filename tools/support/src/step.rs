//! Runs the commands of a task, says how it ended, and finds cargo, the repository and programs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result, bail};

/// How a program ends, which says on standard error what went wrong.
pub fn end(program: &str, outcome: Result<()>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{program}: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The cargo that runs us.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root()).env("PATH", search_path());
    command
}

/// The repository.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("tools/support stands in the repository").to_path_buf()
}

/// Whether nothing may be left out.
pub fn in_ci() -> bool {
    std::env::var_os("CI").is_some_and(|value| !value.is_empty() && value != "false" && value != "0")
}

/// PATH, and the directories of the system's servers, which an ordinary user's has not: `sshd` is there and runs for anybody.
pub fn search_path() -> OsString {
    with_servers(std::env::var_os("PATH").unwrap_or_default())
}

fn with_servers(path: OsString) -> OsString {
    let mut dirs: Vec<PathBuf> = std::env::split_paths(&path).collect();
    for dir in ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from) {
        if !dirs.contains(&dir) {
            dirs.push(dir);
        }
    }
    std::env::join_paths(dirs).unwrap_or(path)
}

/// Whether a program is found in the search path.
pub fn has(program: &str) -> bool {
    std::env::split_paths(&search_path()).any(|dir| dir.join(program).is_file())
}

/// Runs one step, says what it is and how long it took.
pub fn step(title: &str, command: &mut Command) -> Result<()> {
    println!("== {title}");
    let began = Instant::now();
    let status =
        command.status().with_context(|| format!("cannot run {}", command.get_program().display()))?;
    if !status.success() {
        bail!("{title}: failed ({status})");
    }
    println!("== {title}: ok, {:.1} s", began.elapsed().as_secs_f64());
    Ok(())
}

/// Runs a command and returns what it printed.
pub fn output(command: &mut Command) -> Result<String> {
    let shown = format!("{command:?}");
    let output = command.output().with_context(|| format!("cannot run {shown}"))?;
    if !output.status.success() {
        bail!("{shown}: {}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim_end());
    }
    String::from_utf8(output.stdout).with_context(|| format!("{shown} printed something that is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_found_with_the_path_of_an_ordinary_user() {
        // What Debian gives users, what it gives root, and what one of them has set up.
        for (path, whole) in [
            ("/usr/local/bin:/usr/bin:/bin", "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"),
            (
                "/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin",
                "/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin",
            ),
            ("/my/bin:/usr/sbin", "/my/bin:/usr/sbin:/usr/local/sbin:/sbin"),
        ] {
            assert_eq!(with_servers(path.into()), whole, "{path}");
        }
        let all: Vec<PathBuf> = std::env::split_paths(&search_path()).collect();
        for dir in ["/usr/local/sbin", "/usr/sbin", "/sbin"] {
            assert!(all.iter().any(|other| other == Path::new(dir)), "{dir} is not in {all:?}");
        }
    }
}
