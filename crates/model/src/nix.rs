//! Defines what a spec says about a Nix dev shell, and parses `FLAKE#SHELL`.

use serde::{Deserialize, Serialize};

use crate::Text;

/// The Nix dev shell that a session's command runs in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Nix {
    /// The flake: a directory, or a reference as nix has it. The session's own directory when empty.
    pub flake: Text,
    /// Which of its shells; its default one when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shell: Option<String>,
    /// Whether the shell's `shellHook` is run before the command.
    #[serde(skip_serializing_if = "is_false")]
    pub hook: bool,
    /// Whether nix itself starts the command, each time, in place of a shell that was captured once.
    #[serde(skip_serializing_if = "is_false")]
    pub wrapped: bool,
    /// Whether it is left out where nix cannot be used here, in place of a failure.
    #[serde(skip_serializing_if = "is_false")]
    pub auto: bool,
    /// The directory of captured shells; the instance's own when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<Text>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the shape that serde wants")]
fn is_false(value: &bool) -> bool {
    !*value
}

impl Nix {
    /// What `FLAKE[#SHELL]` means.
    pub fn parse(text: &str) -> Self {
        let (flake, shell) = text.split_once('#').unwrap_or((text, ""));
        let shell = (!shell.is_empty()).then(|| shell.to_owned());
        Self { flake: flake.into(), shell, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flake_may_name_its_shell() {
        let of = |text: &str| {
            let nix = Nix::parse(text);
            (nix.flake.lossy().into_owned(), nix.shell)
        };
        assert_eq!(of(""), (String::new(), None));
        assert_eq!(of("."), (".".into(), None));
        assert_eq!(of("#ci"), (String::new(), Some("ci".into())));
        assert_eq!(of("/a/b#ci"), ("/a/b".into(), Some("ci".into())));
        assert_eq!(of("github:o/r#"), ("github:o/r".into(), None));
    }
}
