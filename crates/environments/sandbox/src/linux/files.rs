//! Rights on files, by landlock.

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use wharf_model::{Code, Failure, Text};

use super::held::held;
use crate::rules::{DEVICES, SYSTEM};
use crate::{Result, Rules};

/// Before this version a file could be cut short without any right to write it.
const LEAST: ABI = ABI::V3;

/// Keeps this process, and all that it starts, to these files; of terminals, to these. Says whether signals are kept inside
/// as well.
pub(super) fn restrict(rules: &Rules, terminals: &[Text]) -> Result<bool> {
    let rules = &held(rules)?;
    // What a kernel of today can do beyond is taken along where it is there.
    let scoped = create(Some(Scope::Signal | Scope::AbstractUnixSocket));
    let (mut ruleset, signals) = match scoped {
        Ok(ruleset) => (ruleset, true),
        Err(_) => (create(None).map_err(|error| cannot(&error))?, false),
    };
    let read = AccessFs::from_read(LEAST);
    let write = AccessFs::from_all(LEAST) & !(AccessFs::MakeBlock | AccessFs::MakeChar);
    let device = AccessFs::ReadFile
        | AccessFs::WriteFile
        | AccessFs::ReadDir
        | AccessFs::Truncate
        | AccessFs::IoctlDev;
    for path in SYSTEM {
        ruleset = beneath(ruleset, &(*path).into(), read, true)?;
    }
    for path in DEVICES.iter().map(|path| Text::from(*path)).chain(terminals.iter().cloned()) {
        ruleset = beneath(ruleset, &path, device, true)?;
    }
    // What is below something that it may change may have become a link by now: it is covered, and not looked up again.
    for path in rules.read.iter().filter(|path| !is_below(path, &rules.write)) {
        ruleset = beneath(ruleset, path, read, false)?;
    }
    for path in rules.write.iter().filter(|path| !is_below(path, &rules.write)) {
        ruleset = beneath(ruleset, path, write, false)?;
    }
    if let Some(path) = &rules.temporary {
        ruleset = beneath(ruleset, path, write, true)?;
    }
    let status = ruleset.restrict_self().map_err(|error| cannot(&error))?;
    if status.ruleset == RulesetStatus::NotEnforced || !status.no_new_privs {
        return Err(unsupported("this kernel enforces no rules on files"));
    }
    Ok(signals)
}

fn create(scope: Option<BitFlags<Scope>>) -> std::result::Result<landlock::RulesetCreated, RulesetError> {
    let files = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(LEAST))?;
    let files = match scope {
        Some(scope) => files.scope(scope)?,
        None => files,
    };
    let devices = files.set_compatibility(CompatLevel::BestEffort).handle_access(AccessFs::IoctlDev)?;
    devices.create()
}

/// Whether a path is below another of these.
fn is_below(path: &Text, others: &[Text]) -> bool {
    others.iter().any(|other| other != path && path.as_path().starts_with(other.as_path()))
}

/// Adds a rule for a path and all below it. A missing path is an error unless it may be missing.
fn beneath(
    ruleset: landlock::RulesetCreated,
    path: &Text,
    access: BitFlags<AccessFs>,
    may_miss: bool,
) -> Result<landlock::RulesetCreated> {
    let named = |why: String| {
        Failure::new(Code::Invalid, format!("the sandbox cannot have {}: {why}", path.lossy()))
            .hint("name files and directories that are there")
    };
    let fd = match PathFd::new(path.as_path()) {
        Ok(fd) => fd,
        Err(_) if may_miss => return Ok(ruleset),
        Err(error) => return Err(named(error.to_string())),
    };
    let is_dir = path.as_path().is_dir();
    // Rights on what is below mean nothing for a file.
    let access = if is_dir { access } else { access & (AccessFs::from_file(LEAST) | AccessFs::IoctlDev) };
    ruleset.add_rule(PathBeneath::new(fd, access)).map_err(|error| named(error.to_string()))
}

fn cannot(error: &RulesetError) -> Failure {
    unsupported(&error.to_string())
}

fn unsupported(why: &str) -> Failure {
    Failure::new(Code::Unsupported, format!("landlock cannot be had here: {why}")).hint(
        "it takes Linux 6.2 or later with landlock switched on (lsm=landlock,…); a container is another way",
    )
}
