//! Chooses the backend and environment of the cycles, and prepares a nix for them.

use std::fmt;
use std::fs;

use anyhow::Result;
use wharf_tool_support::container_engine::{ContainerEngine, Kind};
use wharf_tool_support::instance::Instance;

/// Where sessions run, and in what.
pub(super) struct Dress {
    pub(super) backend: String,
    pub(super) pipes: bool,
    pub(super) nix: bool,
    /// The flake of the dev shell, once it is there.
    pub(super) flake: String,
    pub(super) sandbox: bool,
}

impl Dress {
    /// Gives the instance what it needs: a nix of its own, without a network.
    pub(super) fn prepare(&mut self, instance: Instance) -> Result<Instance> {
        if !self.nix {
            return Ok(instance);
        }
        let home = instance.home().to_owned();
        fs::create_dir_all(home.join("nix/conf"))?;
        fs::create_dir_all(home.join("flake"))?;
        let registry = home.join("nix/conf/registry.json");
        fs::write(&registry, r#"{"flakes":[],"version":2}"#)?;
        let settings = format!(
            "experimental-features = nix-command flakes\nsandbox = false\nbuild-users-group =\n\
             substituters =\nflake-registry = {}\n",
            registry.display()
        );
        fs::write(home.join("nix/conf/nix.conf"), settings)?;
        let system = format!("{}-linux", std::env::consts::ARCH);
        let flake = format!(
            "{{ outputs = {{ self }}: {{ devShells.{system}.default = derivation {{ name = \"dev\"; \
             system = \"{system}\"; builder = \"/bin/bash\"; args = [ \"-c\" \"echo > $out\" ]; outputs = [ \"out\" ]; }}; }}; }}\n"
        );
        fs::write(home.join("flake/flake.nix"), flake)?;
        self.flake = format!("path:{}", home.join("flake").display());
        let places = [
            ("NIX_CONF_DIR", "conf"),
            ("NIX_STORE_DIR", "store"),
            ("NIX_STATE_DIR", "var"),
            ("NIX_LOG_DIR", "log"),
        ];
        Ok(places.into_iter().fold(instance, |instance, (name, below)| {
            instance.with_variable(name, home.join("nix").join(below))
        }))
    }

    /// The words that start a session of this name. It has a child of its own, which must go with it.
    pub(super) fn run<'a>(&'a self, name: &'a str) -> Vec<&'a str> {
        let mut words = vec!["run", "-d", "--backend", &self.backend, "--name", name];
        if self.pipes {
            words.push("--no-tty");
        }
        if self.nix {
            words.extend(["--nix", &self.flake]);
        }
        if self.sandbox {
            words.push("--sandbox");
        }
        if Kind::of(&self.backend).is_some() {
            words.extend(["--image", ContainerEngine::IMAGE, "--network", "none"]);
        }
        words.extend(["--", "/bin/sh", "-c", "sleep 600 & echo up; exec sleep 600"]);
        words
    }
}

impl fmt::Display for Dress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.backend)?;
        for (worn, word) in [(self.pipes, "pipes"), (self.nix, "nix"), (self.sandbox, "sandbox")] {
            if worn {
                write!(f, " with {word}")?;
            }
        }
        Ok(())
    }
}
