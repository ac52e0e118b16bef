//! What rewrites a launch before it runs.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use tokio::sync::Notify;
use wharf_backend::{Launch, Probe};
use wharf_engine::{Engine, Environment, Failure, Filter, Progress};
use wharf_model::{Capabilities, Code, SessionId, Spec};

use crate::place::{Place, named, output};

/// Puts a word before the command's last one; waits first where it is told to.
struct Prefix {
    wait: bool,
    waiting: Arc<Notify>,
    /// The sessions that it has in mind.
    kept: Arc<Mutex<Vec<SessionId>>>,
}

#[async_trait]
impl Environment for Prefix {
    fn name(&self) -> &'static str {
        "nix"
    }

    fn concerns(&self, spec: &Spec) -> bool {
        spec.nix.is_some()
    }

    async fn probe(&self) -> Probe {
        Probe { available: true, version: None, detail: "fine".to_owned(), hint: None }
    }

    async fn prepare(
        &self,
        _: &Launch,
        _: &Capabilities,
        progress: &Progress,
    ) -> Result<Vec<String>, Failure> {
        progress.tell("a step");
        Ok(vec!["ready".to_owned()])
    }

    async fn apply(&self, mut launch: Launch, _: &Capabilities) -> Result<Launch, Failure> {
        self.kept.lock().unwrap().push(launch.id.clone());
        if self.wait {
            self.waiting.notify_one();
            std::future::pending::<()>().await;
        }
        let last = launch.argv.pop().unwrap_or_default();
        launch.argv.push(format!("wrapped {}", last.lossy()).into());
        launch.env.push(("DRESSED".into(), "yes".into()));
        launch.spec.in_force.push("prefix: in force".to_owned());
        Ok(launch)
    }

    fn release(&self, id: &SessionId, _: &Spec) {
        self.kept.lock().unwrap().retain(|kept| kept != id);
    }
}

async fn engine(place: &Place, wait: bool) -> (Engine, Arc<Notify>) {
    remembering(place, wait, &Arc::default()).await
}

async fn remembering(place: &Place, wait: bool, kept: &Arc<Mutex<Vec<SessionId>>>) -> (Engine, Arc<Notify>) {
    let waiting = Arc::new(Notify::new());
    let prefix = Prefix { wait, waiting: Arc::clone(&waiting), kept: Arc::clone(kept) };
    let environments: Vec<Arc<dyn Environment>> = vec![Arc::new(prefix)];
    (Engine::open(place.config().with_environments(environments)).await.unwrap(), waiting)
}

fn dressed(name: &str, argv: &[&str]) -> Spec {
    Spec { nix: Some(Box::default()), ..named(name, argv) }
}

#[tokio::test]
async fn a_launch_is_rewritten_and_the_session_says_so() {
    let place = Place::new();
    let (engine, _) = engine(&place, false).await;
    engine.start(dressed("a", &["fake:print", "word"])).await.unwrap();
    engine.session("a").await.unwrap().wait().await.unwrap();
    assert_eq!(output(&engine, "a").await, "wrapped word\n");
    let session = engine.find("a").await.unwrap();
    assert_eq!(session.argv[1].lossy(), "word", "what was asked for stays what it is");
    assert_eq!(session.environment, ["prefix: in force"]);
    let env = engine.session("a").await.unwrap().env().await.unwrap();
    assert!(env.iter().any(|(name, _)| name.as_bytes() == b"DRESSED"), "also for what is run beside it");

    // Each run anew, and never twice.
    engine.session("a").await.unwrap().restart(None, "the test").await.unwrap();
    engine.session("a").await.unwrap().wait().await.unwrap();
    assert_eq!(output(&engine, "a").await, "wrapped word\nwrapped word\n");
    assert_eq!(engine.find("a").await.unwrap().environment, ["prefix: in force"]);

    engine.start(named("b", &["fake:print", "word"])).await.unwrap();
    engine.session("b").await.unwrap().wait().await.unwrap();
    assert_eq!(output(&engine, "b").await, "word\n");
    engine.close().await;
}

#[tokio::test]
async fn an_environment_that_there_is_not_is_refused() {
    let place = Place::new();
    let (engine, _) = engine(&place, false).await;
    let spec = Spec { sandbox: Some(Box::default()), ..named("a", &["fake:sleep"]) };
    assert_eq!(engine.start(spec).await.unwrap_err().code, Code::Unsupported);
    assert!(engine.list(&Filter::default()).is_empty());
    engine.close().await;
}

#[tokio::test]
async fn a_stop_ends_what_is_still_being_made_ready() {
    let place = Place::new();
    let (engine, waiting) = engine(&place, true).await;
    let start = tokio::spawn({
        let engine = engine.clone();
        async move { engine.start(dressed("a", &["fake:sleep"])).await }
    });
    waiting.notified().await;
    engine.session("a").await.unwrap().stop(None, "the test").await.unwrap();
    assert_eq!(start.await.unwrap().unwrap_err().code, Code::Cancelled);
    assert!(engine.list(&Filter::default()).is_empty());
    assert_eq!(std::fs::read_dir(place.home().sessions()).unwrap().count(), 0, "nothing is left");
    // The name is free, and the engine's end does not wait for it either.
    let start = tokio::spawn({
        let engine = engine.clone();
        async move { engine.start(dressed("a", &["fake:sleep"])).await }
    });
    waiting.notified().await;
    engine.close().await;
    assert_eq!(start.await.unwrap().unwrap_err().code, Code::Unreachable);
}

#[tokio::test]
async fn preparing_tells_its_steps_and_starts_nothing() {
    let place = Place::new();
    let (engine, _) = engine(&place, false).await;
    let (listener, mut steps) = tokio::sync::mpsc::channel(8);
    let ready = engine.prepare(dressed("a", &["fake:sleep"]), &Progress::to(listener)).await.unwrap();
    assert_eq!(ready, ["ready"]);
    assert_eq!(steps.recv().await.as_deref(), Some("a step"));
    assert!(engine.list(&Filter::default()).is_empty());
    assert_eq!(std::fs::read_dir(place.home().sessions()).unwrap().count(), 0);
    engine.close().await;
}

#[tokio::test]
async fn what_was_kept_for_a_session_goes_with_it() {
    let place = Place::new();
    let kept = Arc::default();
    let (engine, _) = remembering(&place, false, &kept).await;
    let session = engine.start(dressed("a", &["fake:print", "word"])).await.unwrap();
    engine.session("a").await.unwrap().wait().await.unwrap();
    assert_eq!(kept.lock().unwrap().len(), 1, "{} can be started again", session.id);
    engine.session("a").await.unwrap().remove(false).await.unwrap();
    assert_eq!(*kept.lock().unwrap(), []);
    // One that never came to be.
    engine.start(dressed("b", &["fake:missing"])).await.unwrap_err();
    assert_eq!(*kept.lock().unwrap(), []);
    engine.close().await;
}
