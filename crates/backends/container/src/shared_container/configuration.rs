//! Decides which sessions may share a container: those whose configurations have the same fingerprint.

use std::path::Path;

use wharf_model::{Container, Expected, Limits};

/// All that two sessions must have in common to share a container.
pub(crate) struct SharedConfiguration<'a> {
    /// The install: several may use one engine.
    pub(crate) install: &'a str,
    pub(crate) endpoint: &'a str,
    pub(crate) image: &'a str,
    pub(crate) container: &'a Container,
    pub(crate) user: &'a str,
    pub(crate) limits: &'a Limits,
    pub(crate) holder: &'a Path,
    /// The device and inode of each mounted path of the host.
    pub(crate) mounted: &'a [Expected],
}

impl SharedConfiguration<'_> {
    /// The fingerprint of this configuration. It covers whatever shapes the container; commands, their variables and
    /// their directories do not.
    pub(crate) fn fingerprint(&self) -> String {
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
        // FNV-1a of 128 bits: the same in every version, and nobody gains by a collision.
        let hash =
            all.to_string().bytes().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128, |hash, byte| {
                (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
            });
        format!("{hash:032x}")
    }
}

/// Whether a text is a fingerprint of ours: it becomes a name in the instance's directory.
pub(crate) fn is_fingerprint(fingerprint: &str) -> bool {
    fingerprint.len() == 32
        && fingerprint.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_a_name_and_no_path() {
        assert!(is_fingerprint("0123456789abcdef0123456789abcdef"));
        for odd in ["", "..", "../../../../../../../../../../home", "0123456789ABCDEF0123456789ABCDEF"] {
            assert!(!is_fingerprint(odd), "{odd}");
        }
    }

    #[test]
    fn a_mark_is_that_of_the_container_and_not_of_the_command() {
        let container = Container { reuse: true, ..Container::of("a") };
        let limits = Limits::default();
        let mark = |container: &Container, user: &str| {
            let (endpoint, image, holder) = ("unix:///x", "sha256:1", Path::new("/h"));
            SharedConfiguration {
                install: "i",
                endpoint,
                image,
                container,
                user,
                limits: &limits,
                holder,
                mounted: &[],
            }
            .fingerprint()
        };
        let one = mark(&container, "0:0");
        assert_eq!(one.len(), 32);
        assert_eq!(mark(&Container { image_dir: true, image: "b".into(), ..container.clone() }, "0:0"), one);
        assert_ne!(mark(&Container { read_only: true, ..container.clone() }, "0:0"), one);
        assert_ne!(mark(&container, "1:1"), one);
    }
}
