//! What makes a shared container another one, and the mark of that.

use std::path::Path;

use wharf_model::{Container, Expected, Limits};

/// What decides whether two sessions may share a container.
pub(crate) struct Make<'a> {
    /// Whose it is: an engine may be shared by many.
    pub(crate) install: &'a str,
    pub(crate) endpoint: &'a str,
    pub(crate) image: &'a str,
    pub(crate) container: &'a Container,
    pub(crate) user: &'a str,
    pub(crate) limits: &'a Limits,
    pub(crate) holder: &'a Path,
    /// What its paths of the host are now.
    pub(crate) mounted: &'a [Expected],
}

impl Make<'_> {
    /// The mark of this make: another one for whatever makes a container another one. Commands, their variables and directories
    /// do not.
    pub(crate) fn mark(&self) -> String {
        let container = Container {
            image: String::new(),
            pull: wharf_model::Pull::default(),
            build: None,
            image_variables: false,
            image_dir: false,
            image_command: false,
            entrypoint: None,
            platform: None,
            engine: None,
            cap_drop: Vec::new(),
            ..self.container.clone()
        };
        let holder = self.holder.to_string_lossy();
        let all = serde_json::json!([
            self.install,
            self.endpoint,
            self.image,
            container,
            self.user,
            self.limits,
            holder,
            self.mounted
        ]);
        // FNV-1a of 128 bits: the same in every version, and nobody gains by two that are alike.
        let hash =
            all.to_string().bytes().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128, |hash, byte| {
                (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
            });
        format!("{hash:032x}")
    }
}

/// Whether this is a mark of ours: it becomes a name in the instance's directory.
pub(crate) fn is_mark(mark: &str) -> bool {
    mark.len() == 32 && mark.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_a_name_and_no_path() {
        assert!(is_mark("0123456789abcdef0123456789abcdef"));
        for odd in ["", "..", "../../../../../../../../../../home", "0123456789ABCDEF0123456789ABCDEF"] {
            assert!(!is_mark(odd), "{odd}");
        }
    }

    #[test]
    fn a_mark_is_that_of_the_container_and_not_of_the_command() {
        let container = Container { reuse: true, ..Container::of("a") };
        let limits = Limits::default();
        let mark = |container: &Container, user: &str| {
            let (endpoint, image, holder) = ("unix:///x", "sha256:1", Path::new("/h"));
            Make { install: "i", endpoint, image, container, user, limits: &limits, holder, mounted: &[] }
                .mark()
        };
        let one = mark(&container, "0:0");
        assert_eq!(one.len(), 32);
        assert_eq!(mark(&Container { image_dir: true, image: "b".into(), ..container.clone() }, "0:0"), one);
        assert_ne!(mark(&Container { read_only: true, ..container.clone() }, "0:0"), one);
        assert_ne!(mark(&container, "1:1"), one);
    }
}
