//! Makes an agent's command line, conversation and variables out of a spec, by the agent's profile.

use std::path::Path;

use wharf_agents::Profile;
use wharf_model::{Change, Code, Conversation, Failure, Home, Project, Spec, Text, Ticket};

use crate::Result;
use crate::instance::shared::{Shared, random};
use crate::observe::event_log::any_event;
use crate::observe::profiles::{has_no_project, load_profiles, profile_of, project};

impl Shared {
    /// Decides what the project's own file changes, and makes the command line of a spec that names an agent.
    pub(crate) async fn expand(&self, spec: &mut Spec) -> Result<()> {
        spec.project = self.project(spec.dir.as_path()).await?;
        self.launch_line(spec)
    }

    /// What the project's file changes for sessions in a directory. The directory may be one that never answers.
    pub(crate) async fn project(&self, dir: &Path) -> Result<Option<Box<Project>>> {
        if has_no_project(dir) {
            return Ok(None);
        }
        let (home, dir) = (self.home.clone(), dir.to_owned());
        let what = format!("the directory {}", dir.display());
        self.beside.look(&what, move || project(&home, &dir)).await
    }

    fn launch_line(&self, spec: &mut Spec) -> Result<()> {
        let Some(agent) = &mut spec.agent else { return Ok(()) };
        let profile = load_profiles(&self.home, spec.project.as_deref())?.named(&agent.name)?;
        let launch = profile.launch(&agent.conversation, &agent.arguments, &uuid()?)?;
        agent.id = launch.conversation;
        spec.argv = launch.argv;
        // A container does not have this host's programs.
        let command = if spec.container.is_some() { &self.inner_hook_command } else { &self.hook_command };
        if let Some(command) = command.as_ref().filter(|_| agent.hooks) {
            let hooks = profile.session_hooks(command, &agent.arguments);
            // Before the user's own arguments, the last of which may be a prompt.
            let place = spec.argv.len() - agent.arguments.len();
            spec.argv.splice(place..place, hooks.iter().map(|word| Text::from(word.as_str())));
        }
        Ok(())
    }

    /// The command line of another run: it goes on with the conversation, where there is one.
    pub(crate) async fn expand_again(&self, ticket: &mut Ticket) -> Result<()> {
        ticket.spec.project = self.project(ticket.spec.dir.as_path()).await?;
        let Some(agent) = &mut ticket.spec.agent else { return Ok(()) };
        let events = self.home.session(&ticket.id).join(Home::EVENTS);
        let begun = any_event(&events, |event| match event.kind.as_str() {
            "turn.started" => true,
            "message" => event.data.get("status").is_some_and(|status| status == "confirmed"),
            _ => false,
        })
        .await?;
        // One without a turn is not on the agent's disk, and cannot be resumed.
        let profile = load_profiles(&self.home, ticket.spec.project.as_deref())?.named(&agent.name)?;
        match &agent.id {
            Some(id) if begun && !profile.launch.resume.is_empty() => {
                agent.conversation = Conversation::Resume(id.clone());
            }
            _ => {}
        }
        self.launch_line(&mut ticket.spec)
    }

    /// An agent's program that is not there is told with what its profile knows of how to get it.
    pub(crate) fn how_to_get(&self, failure: Failure, ticket: &Ticket) -> Failure {
        if failure.code != Code::CommandNotFound {
            return failure;
        }
        let profile: &Profile = &profile_of(&self.home, ticket);
        let program = ticket.spec.argv.first().map(Text::lossy).unwrap_or_default();
        // A line such as `npx codex` lacks another program.
        let meant = ticket.spec.agent.is_some() || profile.programs.iter().any(|known| *known == program);
        let Some(install) = profile.launch.install.as_deref().filter(|_| meant) else { return failure };
        let way = format!("`{install}` installs {}", profile.title);
        let hint = match &failure.hint {
            Some(hint) => format!("{way}; {hint}"),
            None => way,
        };
        failure.hint(hint)
    }

    /// Takes away variables that another agent around this one left, and sets what its profile says.
    pub(crate) fn agent_variables(&self, ticket: &Ticket, env: &mut Vec<(Text, Text)>) {
        let asked = |name: &Text| {
            let names = |change: &Change| matches!(change, Change::Set(set, _) | Change::Append(set, ..) if set == name);
            ticket.spec.env.changes.iter().any(names)
        };
        // Also where no agent is seen here: what runs may be a script that starts one.
        let marks = self.profile_cache.marks(&self.home);
        env.retain(|(name, _)| asked(name) || !marks.strips(&name.lossy()));
        if !self.profile_cache.is_agent(&self.home, ticket) {
            return;
        }
        let profile: &Profile = &profile_of(&self.home, ticket);
        env.retain(|(name, _)| asked(name) || !profile.env.strips(&name.lossy()));
        for (name, value) in &profile.env.set {
            if !env.iter().any(|(known, _)| known.as_bytes() == name.as_bytes()) {
                env.push((name.as_str().into(), value.as_str().into()));
            }
        }
    }
}

/// A random UUID, as agents name conversations.
fn uuid() -> Result<String> {
    let (high, low) = (random()?, random()?);
    let bits = (u128::from(high) << 64) | u128::from(low);
    let bits = bits & !(0xf << 76) | (4 << 76);
    let bits = bits & !(0x3 << 62) | (2 << 62);
    let hex = format!("{bits:032x}");
    Ok([&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_is_a_random_one() {
        let id = uuid().unwrap();
        assert_eq!(id.len(), 36);
        assert_eq!(id.as_bytes()[14], b'4', "{id}");
        assert!(b"89ab".contains(&id.as_bytes()[19]), "{id}");
        assert_ne!(id, uuid().unwrap());
    }
}
