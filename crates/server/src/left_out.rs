//! What stands in the place of a backend or an environment that this build was made without.
//!
//! Whoever asks for one is told so, in the same words everywhere; sessions that another build started there are *unknown* to this
//! one, and nothing is done to them.

use std::sync::Arc;

use async_trait::async_trait;
use wharf_backend::{Adoption, Backend, Connection, Environment, Launch, Probe, Progress};
use wharf_model::{Capabilities, Code, Failure, SessionId, Spec, Ticket};

/// One that is not here.
pub(crate) struct LeftOut {
    /// The word by which users know it.
    pub(crate) name: &'static str,
    /// What brings it.
    pub(crate) feature: &'static str,
}

impl LeftOut {
    fn refusal(&self) -> Failure {
        Failure::new(Code::Unsupported, format!("this build has no {}", self.name))
            .hint(format!("take a build of Wharf with the feature `{}`: the usual one has it", self.feature))
    }

    fn absence(&self) -> Probe {
        let Failure { message, hint, .. } = self.refusal();
        Probe { available: false, version: None, detail: message, hint }
    }
}

#[async_trait]
impl Backend for LeftOut {
    fn name(&self) -> &'static str {
        self.name
    }

    /// What decides which place is asked: all that depends on more ends with the answer to that.
    fn capabilities(&self) -> Capabilities {
        let isolation = self.feature == "docker";
        Capabilities { tty: true, pipes: true, guests: true, isolation, ..Capabilities::default() }
    }

    async fn probe(&self) -> Probe {
        self.absence()
    }

    async fn start(&self, _: Launch) -> Result<(Ticket, Arc<dyn Connection>), Failure> {
        Err(self.refusal())
    }

    async fn adopt(&self, _: &Ticket) -> Result<Adoption, Failure> {
        Err(self.refusal())
    }

    async fn list(&self) -> Result<Vec<Ticket>, Failure> {
        Err(self.refusal())
    }

    async fn sweep(&self, _: &Ticket) -> Result<u32, Failure> {
        Err(self.refusal())
    }

    async fn strays(&self, _: &Ticket) -> Result<Vec<i32>, Failure> {
        Err(self.refusal())
    }

    async fn finds_all(&self, _: &Ticket) -> bool {
        false
    }

    async fn kill(&self, _: &Ticket) -> Result<(), Failure> {
        Err(self.refusal())
    }

    /// Ends nothing: what was left out of the build has no tasks.
    async fn close(&self) {}
}

#[async_trait]
impl Environment for LeftOut {
    fn name(&self) -> &'static str {
        self.name
    }

    fn concerns(&self, spec: &Spec) -> bool {
        match self.name {
            "nix" => spec.nix.is_some(),
            "sandbox" => spec.sandbox.is_some(),
            _ => false,
        }
    }

    async fn probe(&self) -> Probe {
        self.absence()
    }

    async fn prepare(&self, _: &Launch, _: &Capabilities, _: &Progress) -> Result<Vec<String>, Failure> {
        Err(self.refusal())
    }

    async fn apply(&self, _: Launch, _: &Capabilities) -> Result<Launch, Failure> {
        Err(self.refusal())
    }

    fn release(&self, _: &SessionId, _: &Spec) {}
}

#[cfg(test)]
mod tests {
    use wharf_backend::fake::FakeBackend;
    use wharf_engine::{Config, Engine};
    use wharf_model::{Container, Home, Nix, Sandbox};

    use super::*;

    #[tokio::test]
    async fn whoever_asks_for_what_was_left_out_is_told() {
        let root = tempfile::tempdir().unwrap();
        let backends = ["tmux", "docker"].map(|name| LeftOut { name, feature: name });
        let [tmux, docker] = backends.map(|one| Arc::new(one) as Arc<dyn Backend>);
        let all: Vec<Arc<dyn Backend>> = vec![Arc::new(FakeBackend::new()), tmux, docker];
        let mut config = Config::new(Home::below(root.path()), all);
        let environments = ["nix", "sandbox"].map(|name| LeftOut { name, feature: name });
        config.environments =
            environments.map(|one| Arc::new(one) as Arc<dyn Environment>).into_iter().collect();
        let engine = Engine::open(config).await.unwrap();
        let plain = || Spec::new(["true"], "/");
        let on = |backend: &str| Spec { backend: Some(backend.to_owned()), ..plain() };
        for (spec, name) in [
            (on("tmux"), "tmux"),
            (Spec { container: Some(Box::new(Container::default())), ..on("docker") }, "docker"),
            (Spec { nix: Some(Box::new(Nix::default())), ..plain() }, "nix"),
            (Spec { sandbox: Some(Box::new(Sandbox::default())), ..plain() }, "sandbox"),
        ] {
            let failure = engine.start(spec).await.unwrap_err();
            assert_eq!(
                (failure.code, failure.message),
                (Code::Unsupported, format!("this build has no {name}"))
            );
            assert!(failure.hint.unwrap().contains(&format!("`{name}`")));
        }
        let open = Spec { container: Some(Box::new(Container::default())), ..plain() };
        let failure = engine.start(open).await.unwrap_err();
        assert_eq!(failure.code, Code::Unavailable);
        assert!(failure.message.ends_with("docker: this build has no docker"), "{failure}");
        engine.close().await;
    }
}
