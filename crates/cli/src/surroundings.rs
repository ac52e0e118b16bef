//! The arguments that describe what a command runs in on this host: a dev shell, a sandbox.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use wharf_model::{Failure, Network, Nix, Sandbox, Spec, Text};

use crate::call;
use crate::progress::Steps;
use crate::trouble::invalid;

/// What a command runs in.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Environments")]
pub(crate) struct SurroundingsArgs {
    /// Run it in the dev shell of a flake, the directory's own when none is named (`--` must follow then); with `auto` only
    /// where the directory has one and nix can be used
    #[arg(long, value_name = "FLAKE[#SHELL]", num_args = 0..=1, default_missing_value = "")]
    nix: Option<OsString>,
    /// Run the shell's shellHook first
    #[arg(long, requires = "nix")]
    nix_hook: bool,
    /// Let `nix develop` start it each time, in place of a shell that was captured once
    #[arg(long, requires = "nix")]
    nix_wrapped: bool,
    /// The directory of captured dev shells
    #[arg(long, value_name = "DIR")]
    env_cache: Option<PathBuf>,
    /// Let it read the system and its directory, change only its directory, and open no Unix sockets
    #[arg(long)]
    sandbox: bool,
    /// A file or directory that it may also read; may be repeated
    #[arg(long, value_name = "PATH", requires = "sandbox")]
    sandbox_read: Vec<PathBuf>,
    /// A file or directory that it may also change; may be repeated
    #[arg(long, value_name = "PATH", requires = "sandbox")]
    sandbox_write: Vec<PathBuf>,
    /// How far its network reaches: off, loopback (one of its own), open
    #[arg(long, value_name = "off|loopback|open", requires = "sandbox", default_value = "open", value_parser = network)]
    sandbox_network: Network,
}

fn network(text: &str) -> Result<Network, String> {
    [Network::Off, Network::Loopback, Network::Open]
        .into_iter()
        .find(|network| network.as_str() == text)
        .ok_or_else(|| format!("{text:?} is none of off, loopback, open"))
}

impl SurroundingsArgs {
    /// The dev shell, where one is asked for.
    pub(crate) fn nix(&self, dir: &Path) -> Result<Option<Box<Nix>>, Failure> {
        let Some(flake) = &self.nix else { return Ok(None) };
        let flake = flake.to_str().ok_or_else(|| {
            invalid(format!("{} is no flake", flake.display())).hint("-w names a directory that is not UTF-8")
        })?;
        let mut nix = Nix::parse(flake);
        if nix.flake.as_bytes() == b"auto" {
            let Some(found) = flake_of(dir) else { return Ok(None) };
            nix.flake = found.into();
            nix.auto = true;
        }
        // Relative to where this is typed, and not to where the command runs.
        if matches!(nix.flake.as_bytes().first(), Some(b'.' | b'/')) {
            nix.flake = crate::start::absolute(nix.flake.as_path())?;
        }
        nix.hook = self.nix_hook;
        nix.wrapped = self.nix_wrapped;
        nix.cache = self.env_cache.as_deref().map(crate::start::absolute).transpose()?;
        if nix.flake.is_empty() {
            nix.flake = dir.into();
        }
        Ok(Some(Box::new(nix)))
    }

    /// The sandbox, where one is asked for.
    pub(crate) fn sandbox(&self) -> Result<Option<Box<Sandbox>>, Failure> {
        if !self.sandbox {
            return Ok(None);
        }
        let all = |paths: &[PathBuf]| -> Result<Vec<Text>, Failure> {
            paths.iter().map(|path| crate::start::absolute(path)).collect()
        };
        let (read, write) = (all(&self.sandbox_read)?, all(&self.sandbox_write)?);
        Ok(Some(Box::new(Sandbox { read, write, network: self.sandbox_network })))
    }
}

/// The directory of the flake that a directory belongs to: its own, or one above it in the same repository.
fn flake_of(dir: &Path) -> Option<&Path> {
    for above in dir.ancestors() {
        if above.join("flake.nix").is_file() {
            return Some(above);
        }
        if above.join(".git").exists() {
            return None;
        }
    }
    None
}

/// Makes the dev shell or the image of a spec ready, which may take minutes. Whoever interrupts this ends the build.
pub(crate) fn ready(spec: &Spec) -> Result<(), Failure> {
    let image = spec.container.as_ref().is_some_and(|container| container.pull != wharf_model::Pull::Never);
    if spec.nix.is_none() && !image {
        return Ok(());
    }
    // What nix says is for people: a script that reads standard error is not surprised by it.
    let mut steps = Steps::default();
    prepare(spec, |step| steps.tell(step))?;
    Ok(())
}

/// Makes a spec's environments ready, and tells each step. Returns what is ready.
pub(crate) fn prepare(spec: &Spec, mut tell: impl FnMut(&str)) -> Result<Vec<String>, Failure> {
    call::once(async |client| {
        let mut steps = client.prepare(spec).await?;
        while let Some(line) = steps.next().await? {
            if let Some(step) = &line.step {
                tell(step);
            }
            if let Some(ready) = line.ready {
                return Ok(ready);
            }
        }
        Err(Failure::new(wharf_model::Code::Unreachable, "the daemon ended before the environment was ready")
            .hint("ask again: what was built is kept"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flake_is_that_of_the_directory_or_of_its_repository() {
        let dir = tempfile::tempdir().unwrap();
        let repository = dir.path().join("repository");
        let deep = repository.join("a/b");
        std::fs::create_dir_all(&deep).unwrap();
        std::fs::create_dir(repository.join(".git")).unwrap();
        std::fs::write(dir.path().join("flake.nix"), "{}").unwrap();
        assert_eq!(flake_of(&deep), None, "one above the repository is another's");
        std::fs::write(repository.join("flake.nix"), "{}").unwrap();
        assert_eq!(flake_of(&deep), Some(repository.as_path()));
        let args = SurroundingsArgs { nix: Some("auto".into()), ..SurroundingsArgs::default() };
        let nix = args.nix(&deep).unwrap().unwrap();
        assert!(nix.auto && nix.flake.as_path() == repository);
        std::fs::remove_file(repository.join("flake.nix")).unwrap();
        assert_eq!(args.nix(&deep).unwrap(), None);
    }
}
