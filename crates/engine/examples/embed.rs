//! Wharf in twenty lines: a session without a daemon.
//!
//! `cargo build -p wharf && cargo run -p wharf-engine --example embed`

use std::sync::Arc;
use std::time::Duration;

use wharf_engine::local::Options;
use wharf_engine::prelude::*;

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), Failure> {
    let root = std::env::temp_dir().join(format!("wharf-embed-{}", std::process::id()));
    let home = Home::below(&root);
    let local = Arc::new(LocalBackend::new(Options::new(&home)));
    let engine = Engine::open(Config::new(home, vec![local])).await?;

    let started = engine.start(Spec::new(["sh", "-c", "read name; echo hello, $name"], "/")).await?;
    let session = engine.session(started.id.as_str()).await?;
    session.write(b"wharf\n", Duration::from_secs(5)).await?;
    println!("{} ended with {:?}", started.name, session.wait().await?.code);
    let mut output = session.output(Offset(0), false).await?;
    while let Some(OutputChunk::Data { bytes, .. }) = output.next().await? {
        print!("{}", String::from_utf8_lossy(&bytes));
    }

    engine.close().await;
    std::fs::remove_dir_all(&root).map_err(|error| Failure::system("cannot clean up", &error))
}
