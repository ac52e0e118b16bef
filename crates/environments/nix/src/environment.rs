//! Implements `Environment` for Nix: enters a captured dev shell, or lets nix start the command.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use wharf_backend::{Environment, Launch, Probe, Progress};
use wharf_model::{Capabilities, Code, Failure, Home, Nix, SessionId, Spec, Text};

use crate::cache::{self, Entry};
use crate::capture::{Captured, capture};
use crate::dev_shell::DevShell;
use crate::flake::{self, Flake};
use crate::merge::merge;
use crate::program::{Around, Program, Programs};
use crate::{Result, hook, key, place};

/// Runs commands in the dev shell of a flake.
pub struct NixEnvironment {
    cache: PathBuf,
    programs: Programs,
}

/// How a shell is entered.
enum Way {
    /// With the variables of a shell that was captured.
    Captured(Entry, Box<DevShell>),
    /// By nix, with these words before the command.
    Wrapped(Vec<Text>),
}

impl NixEnvironment {
    /// One that keeps what it captured in an instance's own directory.
    pub fn new(home: &Home) -> Self {
        Self { cache: home.state().join("environments").join("nix"), programs: Programs::default() }
    }

    /// The directory of captured shells that was asked for, or the instance's own.
    fn cache_of(&self, nix: &Nix) -> PathBuf {
        nix.cache.as_ref().map_or_else(|| self.cache.clone(), |cache| cache.as_path().to_owned())
    }

    /// The way into the shell of a launch, and what there is to say of it.
    async fn way(
        &self,
        nix: &Nix,
        launch: &Launch,
        place: &Capabilities,
        progress: &Progress,
    ) -> Result<(Way, Vec<String>)> {
        let dir = launch.spec.dir.as_path();
        let host = place.isolation.then(|| place::host_variables(launch));
        let around = Around { env: host.as_ref().unwrap_or(&launch.env), dir };
        let program = if place.isolation {
            match self.shared(launch, around).await {
                Some(program) if !nix.wrapped => program,
                _ => return Ok(by_itself(nix, launch)),
            }
        } else {
            self.programs.find(around).await?
        };
        let flake = Flake::of(nix, around).await?;
        let cache = self.cache_of(nix);
        cache::checked(&cache)?;
        let key = key::of(&flake, &program, around).await?;
        let entry = key.map(|key| Entry::of(&cache, &key)).transpose()?;
        let captured = match &entry {
            _ if nix.wrapped => Captured::Not("this was asked for".to_owned()),
            Some(entry) => capture(entry, &flake, &program, around, progress).await?,
            None => Captured::Not("its directory has too many files to tell when it changes".to_owned()),
        };
        let of = format!("nix {}: the dev shell of {}", program.version, flake.name());
        match (captured, entry) {
            (Captured::Shell(shell), Some(entry)) => {
                let on = if place.isolation { " on the host, whose store the place sees," } else { "" };
                let said = format!("{of}, captured{on} and kept in {}", entry.dir.display());
                Ok((Way::Captured(entry, shell), vec![said]))
            }
            (Captured::Not(_), _) if place.isolation => Ok(by_itself(nix, launch)),
            (Captured::Not(why), entry) => {
                let profile = entry.map(|entry| entry.profile().into());
                let argv = wrapped(program.path.as_path().into(), profile, &flake.absolute());
                Ok((Way::Wrapped(argv), vec![format!("{of}, entered by `nix develop` at each start: {why}")]))
            }
            (Captured::Shell(_), None) => {
                Err(Failure::new(Code::Internal, "a shell was captured and has no place"))
            }
        }
    }

    /// The host's nix, where a place of its own sees what that has built.
    async fn shared(&self, launch: &Launch, around: Around<'_>) -> Option<Arc<Program>> {
        let container = launch.spec.container.as_ref()?;
        if !container.volumes.iter().any(place::is_same) {
            return None;
        }
        let program = self.programs.find(around).await.ok()?;
        place::sees(container, &program.store).then_some(program)
    }
}

/// The way by the nix of the place itself.
fn by_itself(nix: &Nix, launch: &Launch) -> (Way, Vec<String>) {
    let reference = flake::inside(nix, launch.spec.dir.as_path());
    let said =
        format!("nix: the dev shell of {reference}, entered by the place's own `nix develop` at each start");
    (Way::Wrapped(wrapped("nix".into(), None, &reference)), vec![said])
}

/// The words with which nix starts a command in a shell.
fn wrapped(program: Text, profile: Option<Text>, reference: &str) -> Vec<Text> {
    let mut argv = vec![program];
    argv.extend(Program::FIRST.map(Text::from));
    argv.push("develop".into());
    // Kept from collection here as well.
    argv.extend(profile.into_iter().flat_map(|profile| ["--profile".into(), profile]));
    argv.extend([reference.into(), "--command".into()]);
    argv
}

#[async_trait]
impl Environment for NixEnvironment {
    fn name(&self) -> &'static str {
        "nix"
    }

    fn concerns(&self, spec: &Spec) -> bool {
        spec.nix.is_some()
    }

    async fn probe(&self) -> Probe {
        let env: Vec<(Text, Text)> = std::env::vars_os().map(|(n, v)| (n.into(), v.into())).collect();
        let around = Around { env: &env, dir: std::path::Path::new("/") };
        match self.programs.find(around).await {
            Ok(program) => Probe {
                available: true,
                detail: format!("{} for {}", program.path.display(), program.system),
                version: Some(program.version.clone()),
                hint: None,
            },
            Err(failure) => {
                Probe { available: false, version: None, detail: failure.message, hint: failure.hint }
            }
        }
    }

    async fn prepare(
        &self,
        launch: &Launch,
        place: &Capabilities,
        progress: &Progress,
    ) -> Result<Vec<String>> {
        let Some(nix) = &launch.spec.nix else { return Ok(Vec::new()) };
        let (_, said) = self.way(nix, launch, place, progress).await?;
        Ok(said)
    }

    async fn apply(&self, mut launch: Launch, place: &Capabilities) -> Result<Launch> {
        let Some(nix) = launch.spec.nix.clone() else { return Ok(launch) };
        let (way, mut said) = self.way(&nix, &launch, place, &Progress::default()).await?;
        match way {
            Way::Wrapped(_) if launch.spec.sandbox.is_some() => {
                // It needs its daemon's socket and its store, which a sandbox closes.
                return Err(Failure::unsupported("`nix develop`", "a sandbox")
                    .hint("leave --nix-wrapped or --sandbox out"));
            }
            Way::Wrapped(mut argv) => {
                argv.append(&mut launch.argv);
                launch.argv = argv;
                said.push("nix: its shellHook is run before the command".to_owned());
            }
            Way::Captured(entry, shell) => {
                entry.used_by(&launch.id, &launch.home)?;
                launch.env = merge(launch.env, &shell.exported(), &launch.spec.env);
                if let Some(file) = entry.hook().filter(|_| nix.hook) {
                    let file = Text::from(file);
                    if let Some(container) = &mut launch.spec.container {
                        place::show(container, &file);
                    }
                    // Bash reads it from inside.
                    if let Some(sandbox) = &mut launch.spec.sandbox
                        && !sandbox.read.contains(&file)
                    {
                        sandbox.read.push(file.clone());
                    }
                    let bash = shell.text("BASH").unwrap_or("/bin/bash");
                    launch.argv = hook::argv(bash, file, launch.argv);
                    said.push("nix: its shellHook is run before the command".to_owned());
                } else if nix.hook {
                    said.push("nix: it has no shellHook".to_owned());
                }
            }
        }
        launch.spec.in_force.append(&mut said);
        Ok(launch)
    }

    fn release(&self, id: &SessionId, spec: &Spec) {
        if let Some(nix) = &spec.nix {
            cache::release(&self.cache_of(nix), id);
        }
    }
}
