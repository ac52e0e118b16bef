//! Refuses a spec that can never run, and fills in what its caller left open.

use wharf_model::{Code, Container, EngineVariables, Failure, Spec, Text};

use crate::Result;
use crate::launch::login_shell;

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
        let shell = || login_shell::shell(&spec.env.caller);
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
    crate::launch::secrets::validate(spec)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instance::names::stem_of;

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
