//! A session's secrets: files in a private directory of its own, from its start to its end.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use wharf_boundary::Dir;
use wharf_model::{Code, Failure, Home, Secret, Spec, Text, Ticket};

use crate::Result;
use crate::instance::disk;
use crate::instance::shared::Shared;
use crate::session::handle::Handle;

/// How many secrets a session may have, and how many bytes each.
const MAX_SECRETS: usize = 64;
const MAX_SECRET_LEN: usize = 1 << 20;
/// Where a container has its secrets.
const INSIDE: &str = "/run/secrets";

/// Refuses what cannot be a secret.
pub(crate) fn validate(spec: &Spec) -> Result<()> {
    let invalid = |message: String| Err(Failure::new(Code::Invalid, message));
    if spec.secrets.len() > MAX_SECRETS {
        return invalid(format!("{} secrets are more than {MAX_SECRETS}", spec.secrets.len()));
    }
    let in_container = spec.container.iter().flat_map(|container| &container.secrets);
    let mut names: Vec<&str> = in_container.map(|secret| secret.name.as_str()).collect();
    for secret in &spec.secrets {
        let name = secret.name.as_str();
        if matches!(name, "" | "." | "..") || name.len() > 255 || name.contains(['/', '\0']) {
            return invalid(format!("{name:?} is no name for a secret"));
        }
        if names.contains(&name) {
            return invalid(format!("the secret {name} was given twice"));
        }
        names.push(name);
        match &secret.value {
            None => return invalid(format!("the secret {name} came without its value")),
            Some(value) if value.as_bytes().len() > MAX_SECRET_LEN => {
                return invalid(format!("the secret {name} is longer than {MAX_SECRET_LEN} bytes"));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// Puts the secrets of a session that is about to begin into their place; the ticket has only their names from here on.
pub(crate) fn write_secrets(home: &Path, ticket: &mut Ticket) -> Result<()> {
    if ticket.spec.secrets.is_empty() {
        return Ok(());
    }
    let dir = home.join(Home::SECRETS);
    let cannot = |error| Failure::system(format!("cannot keep the secrets in {}", dir.display()), &error);
    disk::session_dir(home)?;
    let place = Dir::open(home).and_then(|home| home.make_dir(Home::SECRETS, 0o700)).map_err(cannot)?;
    // A container's user may be another; nobody else of this host comes through the directory.
    let mode = if ticket.spec.container.is_some() { 0o444 } else { 0o400 };
    for secret in &mut ticket.spec.secrets {
        let value = secret.value.take().unwrap_or_default();
        place.replace(&secret.name, value.as_bytes(), mode).map_err(cannot)?;
        if let Some(container) = &mut ticket.spec.container {
            container
                .secrets
                .push(Secret { name: secret.name.clone(), source: dir.join(&secret.name).into() });
        }
    }
    Ok(())
}

/// Where a session finds its secrets.
pub(crate) fn dir_for_command(home: &Path, spec: &Spec) -> Option<Text> {
    match &spec.container {
        Some(container) => (!container.secrets.is_empty()).then(|| INSIDE.into()),
        None => (!spec.secrets.is_empty()).then(|| home.join(Home::SECRETS).into()),
    }
}

/// Whether they are still there for another run. What was looked up where it was asked for cannot be looked up again.
pub(crate) fn check(home: &Path, ticket: &Ticket) -> Result<()> {
    let place = Dir::open(&home.join(Home::SECRETS)).ok();
    let there = |name: &str| {
        place.as_ref().is_some_and(|place| matches!(place.kind(name), Ok(Some(wharf_boundary::Kind::File))))
    };
    match ticket.spec.secrets.iter().find(|secret| !there(&secret.name)) {
        None => Ok(()),
        Some(secret) => {
            let message = format!("the secret {} went with the end of session {}", secret.name, ticket.name);
            Err(Failure::new(Code::NotFound, message)
                .hint("secrets are kept while a session lives; start it anew with `wharf run`"))
        }
    }
}

/// Takes the secrets away that stand in a session's directory, whoever left them there.
pub(crate) fn remove_secrets(home: &Path) {
    if !home.join(Home::SECRETS).exists() {
        return;
    }
    if let Err(error) = Dir::open(home).and_then(|home| home.remove_tree(Home::SECRETS)) {
        tracing::warn!(session = %home.display(), %error, "secrets of a session are left");
    }
}

impl Shared {
    /// Takes the secrets of a session away that is over.
    pub(crate) async fn drop_secrets(&self, handle: &Arc<Handle>) {
        let home: PathBuf = self.home.session(&handle.id);
        if handle.ticket().spec.secrets.is_empty() {
            return;
        }
        // What the session made of the directory may take long to go.
        let dropped = self.tasks.spawn_blocking(move || remove_secrets(&home));
        if let Err(error) = dropped.await {
            tracing::warn!(session = %handle.id, %error, "secrets of a session are left");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_model::GivenSecret;

    fn given(name: &str, value: &str) -> GivenSecret {
        GivenSecret { name: name.into(), from: "env:X".into(), value: Some(value.into()) }
    }

    #[test]
    fn what_is_no_secret_is_refused_and_none_is_shown() {
        let refused = |secrets: Vec<GivenSecret>| {
            validate(&Spec { secrets, ..Spec::new(["x"], "/") }).unwrap_err().message
        };
        assert!(refused(vec![given("..", "v")]).contains("no name"));
        assert!(refused(vec![given("a/b", "v")]).contains("no name"));
        assert!(refused(vec![given("a", "v"), given("a", "w")]).contains("twice"));
        assert!(refused(vec![GivenSecret { value: None, ..given("a", "v") }]).contains("without"));
        assert!(refused(vec![given("a", &"v".repeat(MAX_SECRET_LEN + 1))]).contains("longer"));
        let shown = format!("{:?}", given("a", "hidden"));
        assert!(!shown.contains("hidden") && shown.contains("env:X"), "{shown}");
        validate(&Spec { secrets: vec![given("a", "v")], ..Spec::new(["x"], "/") }).unwrap();
    }
}
