//! One session as a program that embeds the engine holds it: a handle with a method for each thing that can be done.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use wharf_backend::{Archive, ExecRequest, Output, Pending};
use wharf_model::{
    Answered, ExitRecord, Explanation, FileStat, Interrupted, Manner, Name, Offset, Published, Question,
    Receipt, Reply, Session, SessionId, Size, Stats, Text, Until,
};
use wharf_screen::{Format, What};

use crate::Result;
use crate::deliver::messages::Answer;
use crate::deliver::retry::Retry;
use crate::instance::engine::Engine;
use crate::observe::events::EventStream;
use crate::observe::screen::Met;
use crate::observe::view::ScreenChanges;

/// One session of an engine.
///
/// A handle is cheap to clone, may be used from any task, and keeps nothing alive: dropping the last one ends neither the
/// session nor the engine's care for it. It means the session by its id, so it stays valid when the session is renamed or
/// restarted; once the session is removed, every method answers [`NotFound`](wharf_model::Code::NotFound). The id can be
/// stored: after a restart of the program [`Engine::session`] finds the same session by it.
#[derive(Clone)]
pub struct SessionHandle {
    engine: Engine,
    id: SessionId,
}

/// Follows what is known of a session. A slow reader misses what was in between, and never the last.
pub struct SessionWatch(watch::Receiver<Arc<Session>>);

impl SessionWatch {
    /// What is known now.
    pub fn current(&self) -> Arc<Session> {
        Arc::clone(&self.0.borrow())
    }

    /// Waits until something of it changed; `None` once nothing can change any more.
    pub async fn changed(&mut self) -> Option<Arc<Session>> {
        self.0.changed().await.ok()?;
        Some(Arc::clone(&self.0.borrow_and_update()))
    }
}

impl Engine {
    /// The session of a name, an id, or the start of an id that only one session has.
    pub async fn session(&self, key: &str) -> Result<SessionHandle> {
        let id = self.handle(key).await?.id.clone();
        Ok(SessionHandle { engine: self.clone(), id })
    }
}

impl SessionHandle {
    /// Its id, which it has for good.
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    fn key(&self) -> &str {
        self.id.as_str()
    }

    /// What is known of it now.
    pub async fn snapshot(&self) -> Result<Arc<Session>> {
        self.engine.find(self.key()).await
    }

    /// Follows what is known of it.
    pub async fn watch(&self) -> Result<SessionWatch> {
        Ok(SessionWatch(self.engine.handle(self.key()).await?.watch()))
    }

    /// Waits for its end.
    pub async fn wait(&self) -> Result<ExitRecord> {
        self.engine.wait(self.key()).await
    }

    /// Waits for a state, a line on its screen or an event.
    pub async fn until(&self, until: Until, within: Option<Duration>) -> Result<Met> {
        self.engine.until(self.key(), until, within).await
    }

    /// Reads its output from an offset on; with `follow`, to its end.
    pub async fn output(&self, from: Offset, follow: bool) -> Result<Box<dyn Output>> {
        self.engine.output(self.key(), from, follow).await
    }

    /// Types bytes, and waits until they are in the terminal.
    pub async fn write(&self, bytes: &[u8], within: Duration) -> Result<()> {
        self.engine.write(self.key(), bytes, within).await
    }

    /// Presses keys by their names.
    pub async fn press(&self, keys: &[String]) -> Result<()> {
        self.engine.press(self.key(), keys).await
    }

    /// How much of what was typed is still on its way.
    pub async fn pending(&self) -> Result<Pending> {
        self.engine.pending(self.key()).await
    }

    /// Ends the input of a session with pipes.
    pub async fn close_input(&self) -> Result<()> {
        self.engine.close_input(self.key()).await
    }

    /// Gives its terminal another size.
    pub async fn resize(&self, size: Size) -> Result<()> {
        self.engine.resize(self.key(), size).await
    }

    /// Sends a message; the receipt says what became of it.
    pub async fn send(&self, text: impl Into<String>, manner: Manner) -> Result<Receipt> {
        self.engine.send(self.key(), text.into(), manner).await
    }

    /// Sends a message, and waits for the answer.
    pub async fn ask(&self, text: impl Into<String>, manner: Manner, within: Duration) -> Result<Reply> {
        self.engine.ask(self.key(), text.into(), manner, within).await
    }

    /// Has the agent try its last turn again.
    pub async fn retry(&self, how: Retry, within: Duration) -> Result<Receipt> {
        self.engine.retry(self.key(), how, within).await
    }

    /// The messages to it, the oldest first.
    pub async fn messages(&self) -> Result<Vec<Receipt>> {
        self.engine.messages(self.key()).await
    }

    /// What it asks, if it does.
    pub async fn question(&self) -> Result<Option<Question>> {
        self.engine.question(self.key()).await
    }

    /// Answers what it asks.
    pub async fn answer(&self, answer: Answer, within: Duration) -> Result<Answered> {
        self.engine.answer(self.key(), answer, within).await
    }

    /// Stops the turn of its agent.
    pub async fn interrupt(&self, within: Duration) -> Result<Interrupted> {
        self.engine.interrupt(self.key(), within).await
    }

    /// Its screen.
    pub async fn capture(&self, what: What, format: Format) -> Result<String> {
        self.engine.capture(self.key(), what, format).await
    }

    /// What changed on its screen since a cursor; all of it without one.
    pub async fn screen_since(&self, cursor: Option<&str>) -> Result<ScreenChanges> {
        self.engine.screen_since(self.key(), cursor).await
    }

    /// Why it is in its state.
    pub async fn explain(&self) -> Result<Explanation> {
        self.engine.explain(self.key()).await
    }

    /// Its events after a number, and those to come.
    pub async fn events(&self, after: u64) -> Result<EventStream> {
        self.engine.events(self.key(), after).await
    }

    /// What it uses.
    pub async fn stats(&self) -> Result<Stats> {
        self.engine.stats(self.key()).await
    }

    /// Where its ports are reached.
    pub async fn published(&self) -> Result<Vec<Published>> {
        self.engine.published(self.key()).await
    }

    /// Runs a further command in its place; its code.
    pub async fn exec(&self, request: ExecRequest) -> Result<i32> {
        self.engine.exec(self.key(), request).await
    }

    /// A file in its place; `None` where there is none.
    pub async fn file(&self, path: &Text, follow: bool) -> Result<Option<FileStat>> {
        self.engine.file(self.key(), path, follow).await
    }

    /// Copies files out of its place, as an archive.
    pub async fn copy_out(&self, path: &Text, follow: bool) -> Result<Box<dyn Archive>> {
        self.engine.copy_out(self.key(), path, follow).await
    }

    /// Copies an archive into a directory of its place.
    pub async fn copy_in(&self, dir: &Text, archive: Box<dyn Archive>) -> Result<()> {
        self.engine.copy_in(self.key(), dir, archive).await
    }

    /// Has it stand still.
    pub async fn pause(&self) -> Result<Arc<Session>> {
        self.engine.pause(self.key()).await
    }

    /// Has it go on.
    pub async fn unpause(&self) -> Result<Arc<Session>> {
        self.engine.unpause(self.key()).await
    }

    /// Sends a signal to its command, or to the whole tree.
    pub async fn signal(&self, signal: i32, tree: bool) -> Result<()> {
        self.engine.signal(self.key(), signal, tree).await
    }

    /// Asks it to end, and ends all of it after the grace. `by` stands in the exit record.
    pub async fn stop(&self, grace: Option<Duration>, by: &str) -> Result<ExitRecord> {
        self.engine.stop(self.key(), grace, by).await
    }

    /// Ends all of it at once. `by` stands in the exit record.
    pub async fn kill(&self, by: &str) -> Result<ExitRecord> {
        self.engine.kill(self.key(), by).await
    }

    /// Stops it where it runs, and starts it again as it was.
    pub async fn restart(&self, grace: Option<Duration>, by: &str) -> Result<Arc<Session>> {
        self.engine.restart(self.key(), grace, by).await
    }

    /// Gives it another name.
    pub async fn rename(&self, name: Name) -> Result<Arc<Session>> {
        self.engine.rename(self.key(), name).await
    }

    /// Removes it with all that is kept of it; with `force`, also while it runs.
    pub async fn remove(&self, force: bool) -> Result<()> {
        self.engine.remove(self.key(), force).await
    }
}

impl std::fmt::Debug for SessionHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionHandle").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Two handles are the same where they mean the same session of the same engine.
impl PartialEq for SessionHandle {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id && Arc::ptr_eq(&self.engine.shared, &other.engine.shared)
    }
}

impl Eq for SessionHandle {}
