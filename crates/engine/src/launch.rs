//! Validates a spec and decides the launch that a backend is told: ports, variables, files.

use std::path::PathBuf;

use wharf_backend::Launch;
use wharf_model::{Code, Container, EngineVariables, Failure, Home, Spec, Text, Ticket};

use crate::shared::Shared;
use crate::{Result, disk, login, require};

/// Refuses what can never run, and fills in what the caller left open. Touches nothing.
pub(crate) fn validate(spec: &mut Spec) -> Result<()> {
    let invalid = |message: String| Err(Failure::new(Code::Invalid, message));
    // For environments to say, and nobody else.
    spec.enter.clear();
    if let Some(container) = &mut spec.container {
        // What nix starts it has to know beforehand.
        container.image_command = spec.argv.is_empty() && spec.nix.is_none();
        check_container(container)?;
    }
    if spec.argv.is_empty() && !spec.container.as_ref().is_some_and(|container| container.image_command) {
        // The user's own shell is one of this host.
        let shell = || login::shell(&spec.env.caller);
        let shell = spec.container.as_ref().map_or_else(shell, |_| "/bin/sh".into());
        spec.argv.push(shell);
    }
    if spec.argv.first().is_some_and(Text::is_empty) {
        return invalid("the command is empty".to_owned());
    }
    if spec.argv.iter().chain([&spec.dir]).any(nul) {
        return invalid("an argument or the directory holds a NUL byte".to_owned());
    }
    if !spec.dir.as_path().is_absolute() {
        return Err(Failure::new(Code::Invalid, format!("{:?} is not an absolute path", spec.dir))
            .hint("the directory to run in must start with /"));
    }
    for change in &spec.env.changes {
        use wharf_model::Change::{Append, Set};
        if let Set(name, value) | Append(name, value, _) = change {
            variable(name, value)?;
        }
    }
    for (name, value) in &spec.env.caller {
        variable(name, value)?;
    }
    for port in &spec.ports {
        variable(&port.variable.as_str().into(), &Text::default())?;
    }
    crate::secrets::validate(spec)?;
    spec.size = spec.size.sane();
    Ok(())
}

/// Refuses what no engine can be told.
fn check_container(container: &Container) -> Result<()> {
    if let Some(entrypoint) = container.entrypoint.as_ref().filter(|words| words.is_empty() || nul(words)) {
        return Err(Failure::new(Code::Invalid, format!("{entrypoint:?} is no entry point")));
    }
    let plain = |text: &str| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte))
    };
    if let Some(platform) = container.platform.as_ref().filter(|platform| !plain(platform)) {
        return Err(Failure::new(Code::Invalid, format!("{platform:?} is no platform"))
            .hint("a platform is OS/ARCHITECTURE, such as linux/arm64"));
    }
    let said = container.engine.iter().flat_map(EngineVariables::all);
    said.into_iter().try_for_each(|(name, value)| variable(name, value))
}

fn nul(text: &Text) -> bool {
    text.as_bytes().contains(&0)
}

pub(crate) fn variable(name: &Text, value: &Text) -> Result<()> {
    if name.is_empty() || name.as_bytes().contains(&b'=') || nul(name) || nul(value) {
        // The value may be a secret; the name is not.
        return Err(Failure::new(Code::Invalid, format!("the variable {name:?} cannot be set"))
            .hint("a name is not empty and holds neither '=' nor NUL; a value holds no NUL"));
    }
    Ok(())
}

/// The start of a made-up name: the command's own, as far as a name may hold it, or the image's where it says what is run.
pub(crate) fn stem_of(spec: &Spec) -> String {
    match &spec.container {
        Some(container) if spec.argv.is_empty() => {
            let image = container.image.rsplit('/').next().unwrap_or_default();
            stem(&[image.split([':', '@']).next().unwrap_or_default().into()])
        }
        _ => stem(&spec.argv),
    }
}

fn stem(argv: &[Text]) -> String {
    let command = argv.first().map(Text::lossy).unwrap_or_default();
    let base = command.rsplit('/').next().unwrap_or_default();
    let kept = base.chars().filter(|c| c.is_ascii_alphanumeric() || "._-".contains(*c));
    let stem: String = kept.skip_while(|c| !c.is_ascii_alphanumeric()).take(40).collect();
    if stem.is_empty() { "session".to_owned() } else { stem }
}

impl Shared {
    /// Decides everything that a backend must be told: ports, variables, files. On failure the caller undoes.
    pub(crate) async fn prepare(&self, mut ticket: Ticket) -> Result<Launch> {
        self.ports.reserve(&ticket.id, &mut ticket.spec.ports)?;
        let mut env = self.variables(&ticket).await?;
        self.agent_variables(&ticket, &mut env);
        let home = self.home.session(&ticket.id);
        crate::secrets::check(&home, &ticket)?;
        if let Some(prompt) = &ticket.spec.prompt {
            disk::session_dir(&home)?;
            disk::replace(&home.join(Home::PROMPT), prompt.as_bytes())?;
        }
        let launch = self.dress(of(ticket, home, env)).await?;
        let spec = &launch.spec;
        if spec.container.is_none() {
            require::check(&spec.require, &launch.env, spec.dir.as_path())?;
        } else if !spec.require.is_empty() {
            return Err(Failure::unsupported("a look for programs before the start", "a container"));
        }
        Ok(launch)
    }
}

/// The launch of a ticket with these variables, before any environment has changed it.
pub(crate) fn of(ticket: Ticket, home: PathBuf, env: Vec<(Text, Text)>) -> Launch {
    Launch {
        home,
        id: ticket.id,
        name: ticket.name,
        run: ticket.run,
        token: ticket.token,
        created: ticket.created,
        argv: ticket.spec.argv.clone(),
        env,
        spec: ticket.spec,
    }
}

/// A mark for one run's processes.
pub(crate) fn token() -> Result<String> {
    Ok(format!("{:016x}{:016x}", crate::shared::random()?, crate::shared::random()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_up_names_come_from_the_command() {
        let of = |text: &str| stem(&[text.into()]);
        assert_eq!(of("/usr/bin/bash"), "bash");
        assert_eq!(of("-bash"), "bash");
        assert_eq!(of("$(x)"), "x");
        assert_eq!(of("🚢"), "session");
        assert_eq!(of("fake:sleep"), "fakesleep");
        assert_eq!(stem(&[]), "session");
        assert_eq!(of(&"a".repeat(500)).len(), 40);
    }

    #[test]
    fn what_can_never_run_is_refused() {
        let refuse = |change: &dyn Fn(&mut Spec)| {
            let mut spec = Spec::new(["x"], "/");
            change(&mut spec);
            validate(&mut spec).unwrap_err().code
        };
        assert_eq!(refuse(&|spec| spec.dir = "relative".into()), Code::Invalid);
        assert_eq!(refuse(&|spec| spec.argv = vec!["a\0b".into()]), Code::Invalid);
        assert_eq!(refuse(&|spec| spec.argv = vec!["".into()]), Code::Invalid);
        let set = |name: &str, value: &str| vec![wharf_model::Change::Set(name.into(), value.into())];
        assert_eq!(refuse(&|spec| spec.env.changes = set("A=B", "1")), Code::Invalid);
        assert_eq!(refuse(&|spec| spec.env.changes = set("", "1")), Code::Invalid);
        assert_eq!(refuse(&|spec| spec.env.changes = set("A", "1\0")), Code::Invalid);
    }

    #[test]
    fn no_command_in_a_container_is_the_images_to_say() {
        let of = |change: &dyn Fn(&mut Spec)| {
            let mut spec = Spec::new(Vec::<&str>::new(), "/");
            // Whatever a caller says of it.
            let container = Container { image_command: false, ..Container::of("there:5000/box/alpine:3") };
            spec.container = Some(Box::new(container));
            change(&mut spec);
            validate(&mut spec).unwrap();
            let image_command = spec.container.as_ref().unwrap().image_command;
            (image_command, spec.argv.len(), stem_of(&spec))
        };
        assert_eq!(of(&|_| {}), (true, 0, "alpine".to_owned()));
        assert_eq!(of(&|spec| spec.argv.push("ls".into())), (false, 1, "ls".to_owned()));
        assert_eq!(of(&|spec| spec.nix = Some(Box::default())), (false, 1, "sh".to_owned()));
        let mut spec = Spec::new(["x"], "/");
        spec.container =
            Some(Box::new(Container { platform: Some("linux/arm64 x".into()), ..Container::of("a") }));
        assert_eq!(validate(&mut spec).unwrap_err().code, Code::Invalid);
    }

    #[test]
    fn no_command_is_the_users_shell() {
        let mut spec = Spec::new(Vec::<&str>::new(), "/");
        spec.env.caller = vec![("SHELL".into(), "/bin/fancy".into())];
        validate(&mut spec).unwrap();
        assert_eq!(spec.argv, vec![Text::from("/bin/fancy")]);
    }
}
