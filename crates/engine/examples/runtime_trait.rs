//! A small `Runtime` trait, as orchestrators define it for themselves, on top of Wharf: create, send, alive, destroy.
//!
//! The handle is the session's id. It can be stored: after a restart of this program it still finds the agent.
//!
//! `cargo build -p wharf && cargo run -p wharf-engine --example runtime_trait`

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use wharf_engine::{Config, Engine, Failure};
use wharf_local::{LocalBackend, Options};
use wharf_model::{Change, Home, Spec};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// How an agent process is executed. The caller keeps the handle and passes it back.
#[async_trait]
trait Runtime: Send + Sync {
    /// Runs a shell line in a directory.
    async fn create(&self, id: &str, cwd: &Path, launch: &str, env: &[(String, String)]) -> Result<String>;
    /// Types a line.
    async fn send_message(&self, handle: &str, msg: &str) -> Result<()>;
    /// Whether it runs.
    async fn is_alive(&self, handle: &str) -> Result<bool>;
    /// Ends it, with everything that it started.
    async fn destroy(&self, handle: &str) -> Result<()>;
}

struct Wharf(Engine);

#[async_trait]
impl Runtime for Wharf {
    async fn create(&self, id: &str, cwd: &Path, launch: &str, env: &[(String, String)]) -> Result<String> {
        let mut spec = Spec::new(["sh", "-c", launch], cwd);
        spec.name = Some(id.parse()?);
        spec.env.caller = std::env::vars_os().map(|(name, value)| (name.into(), value.into())).collect();
        let set = env.iter().map(|(name, value)| Change::Set(name.as_str().into(), value.as_str().into()));
        spec.env.changes.extend(set);
        Ok(self.0.start(spec).await?.id.to_string())
    }

    async fn send_message(&self, handle: &str, msg: &str) -> Result<()> {
        let session = self.0.session(handle).await?;
        Ok(session.write(format!("{msg}\r").as_bytes(), Duration::from_secs(10)).await?)
    }

    async fn is_alive(&self, handle: &str) -> Result<bool> {
        Ok(!self.0.session(handle).await?.snapshot().await?.state.is_over())
    }

    async fn destroy(&self, handle: &str) -> Result<()> {
        let session = self.0.session(handle).await?;
        session.stop(None, "destroy").await?;
        Ok(session.remove(false).await?)
    }
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<()> {
    let root = std::env::temp_dir().join(format!("wharf-runtime-{}", std::process::id()));
    let home = Home::below(&root);
    let local = Arc::new(LocalBackend::new(Options::new(&home)));
    let runtime = Wharf(Engine::open(Config::new(home, vec![local])).await?);

    let env = [("GREETING".to_owned(), "good $(morning)".to_owned())];
    let agent = runtime
        .create("agent-1", Path::new("/"), "while read l; do echo \"$GREETING, $l\"; done", &env)
        .await?;
    runtime.send_message(&agent, "agent").await?;
    let alive = runtime.is_alive(&agent).await?;
    runtime.destroy(&agent).await?;
    let gone = runtime.is_alive(&agent).await.is_err();
    println!("alive: {alive}, then gone: {gone}");
    assert!(alive && gone);

    runtime.0.close().await;
    std::fs::remove_dir_all(&root).map_err(|error| Failure::system("cannot clean up", &error))?;
    Ok(())
}
