//! A backend from outside: nothing of Wharf is changed for it, and it passes the same suite as Wharf's own.
//!
//! This one runs commands on this host with a limit on processes. It rewrites the launch and leaves the rest to
//! `local`; one that reaches another place would do that in the same seven functions. The suite runs on it in
//! `crates/engine/tests/outside_backend.rs`.
//!
//! `cargo build -p wharf && cargo run -p wharf-engine --example outside_backend`

mod frugal;

use std::sync::Arc;

use wharf_engine::{Config, Engine, Failure};
use wharf_model::{Home, Spec};

use crate::frugal::Frugal;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let root = std::env::temp_dir().join(format!("wharf-outside-{}", std::process::id()));
    let home = Home::below(&root);
    let engine = Engine::open(Config::new(home.clone(), vec![Arc::new(Frugal::new(&home))])).await?;
    let session = engine.start(Spec::new(["sleep", "1000"], "/")).await?;
    println!("{} runs on {}, limits: {:?}", session.name, session.backend, session.limits);
    engine.session(session.name.as_str()).await?.stop(None, "the example").await?;
    engine.close().await;
    std::fs::remove_dir_all(&root).map_err(|error| Failure::system("cannot clean up", &error))
}
