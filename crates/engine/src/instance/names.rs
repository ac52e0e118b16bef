//! Completes a session's name: puts its group in front where names are unique in the group, and makes up the start of one that is not given.

use wharf_model::{Code, Failure, Group, Name, NameScope, Spec, Text};

use crate::Result;
use crate::instance::shared::Shared;

/// The setting, as it is told.
const SETTING: &str = "[names] scope = \"group\" in config.toml";

impl Shared {
    /// Gives a spec the whole name and the group that it means. The group is the one in front of a name that is made up.
    pub(crate) async fn qualify(&self, spec: &mut Spec) -> Result<Option<Group>> {
        if spec.group.is_none() && spec.name.as_ref().is_none_or(|name| name.group().is_none()) {
            return Ok(None);
        }
        if self.name_scope().await? == NameScope::Instance {
            if let Some(name) = &spec.name {
                refuse_group(name)?;
            }
            return Ok(None);
        }
        let within = spec.name.as_ref().and_then(Name::group);
        if let (Some(name), Some(within), Some(group)) = (&spec.name, &within, &spec.group)
            && within != group
        {
            let message = format!("the name {name} is one of the group {within}, and the group is {group}");
            return Err(Failure::new(Code::Invalid, message)
                .hint(format!("leave --group out, or write --group {group} --name {}", name.word())));
        }
        spec.group = spec.group.take().or(within);
        if let (Some(name), Some(group)) = (&mut spec.name, &spec.group) {
            *name = name.within(group);
        }
        Ok(spec.group.clone())
    }

    /// The whole name that a session of this group gets by another one. It stays in its group.
    pub(crate) async fn requalify(&self, name: Name, group: Option<&Group>) -> Result<Name> {
        let within = name.group();
        if within.is_none() && group.is_none() {
            return Ok(name);
        }
        if self.name_scope().await? == NameScope::Instance {
            refuse_group(&name)?;
            return Ok(name);
        }
        match (group, within) {
            (Some(group), within) if within.as_ref().is_none_or(|within| within == group) => {
                Ok(name.within(group))
            }
            (group, _) => {
                let of = group.map_or("in no group".to_owned(), |group| format!("in the group {group}"));
                let message = format!("the session is {of}, and {name} is a name in another");
                Err(Failure::new(Code::Invalid, message).hint(format!(
                    "a session stays in its group: `rename` takes the name alone, {}",
                    name.word()
                )))
            }
        }
    }

    /// What names are unique in now. The file that says so may be on a disk that never answers.
    async fn name_scope(&self) -> Result<NameScope> {
        let naming = self.naming.clone();
        self.beside.look("the configuration", move || naming()).await?
    }
}

/// Refuses a group in a name, where names are unique in the instance.
fn refuse_group(name: &Name) -> Result<()> {
    let Some(group) = name.group() else { return Ok(()) };
    let message = format!("{name} has a group in it, and names are unique in the whole instance");
    Err(Failure::new(Code::Invalid, message)
        .hint(format!("--group {group} --name {}; or set {SETTING}", name.word())))
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
}
