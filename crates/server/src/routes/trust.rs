//! Which projects' files the user trusts. None of it is for sessions: what they could accept, they could write.

use std::path::PathBuf;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use wharf_agents::{ProjectFile, RefusedProject, Trust};
use wharf_api::{TrustAccept, TrustLook, TrustRevoke};
use wharf_model::{Code, Failure, Home, Millis, ProjectView, TrustedFile};

use crate::app::App;
use crate::input;
use crate::refusal::Answer;

pub(super) async fn list(State(app): State<Arc<App>>) -> Answer<Json<Vec<TrustedFile>>> {
    Ok(Json(Trust::read(app.home.state())?.files().cloned().collect()))
}

/// Shows a file.
pub(super) async fn look(
    State(app): State<Arc<App>>,
    input::Json(request, ..): input::Json<TrustLook>,
) -> Answer<Json<ProjectView>> {
    in_background(app, move |home| {
        let file = found(&request)?;
        let trust = Trust::read(home.state())?;
        Ok(ProjectView {
            trusted: trust.accepts(&file),
            before: trust.text(&file.path).map(str::to_owned),
            file: file.path.into(),
            sha256: file.sha256,
            text: file.text,
        })
    })
    .await
}

pub(super) async fn accept(
    State(app): State<Arc<App>>,
    input::Json(request, ..): input::Json<TrustAccept>,
) -> Answer<Json<TrustedFile>> {
    in_background(app, move |home| {
        let file = ProjectFile::named(request.file.as_path()).map_err(|refused| failure(&refused))?;
        if file.sha256 != request.sha256 {
            let shown = file.path.display();
            return Err(Failure::new(Code::Invalid, format!("{shown} has changed since it was shown"))
                .hint("look at it again: `wharf trust`"));
        }
        let mut trust = Trust::read(home.state())?;
        trust.accept(&file, now());
        trust.write(home.state())?;
        trust.files().last().cloned().ok_or_else(|| Failure::new(Code::Internal, "nothing was accepted"))
    })
    .await
}

pub(super) async fn revoke(
    State(app): State<Arc<App>>,
    input::Json(request, ..): input::Json<TrustRevoke>,
) -> Answer<Json<()>> {
    in_background(app, move |home| {
        let mut trust = Trust::read(home.state())?;
        if !trust.revoke(request.file.as_path()) {
            let message = format!("{} is not trusted", request.file.lossy());
            return Err(Failure::new(Code::NotFound, message).hint("`wharf trust ls` lists what is"));
        }
        trust.write(home.state())
    })
    .await
}

fn found(request: &TrustLook) -> Result<ProjectFile, Failure> {
    let path = request.path.as_path();
    if !request.search {
        return ProjectFile::named(path).map_err(|refused| failure(&refused));
    }
    let home = std::env::var_os("HOME").map(PathBuf::from);
    match ProjectFile::find(path, home.as_deref()) {
        Some(found) => found.map_err(|refused| failure(&refused)),
        None => {
            Err(Failure::new(Code::NotFound, format!("sessions in {} have no wharf.toml", path.display()))
                .hint("it stands in that directory, or above it up to the repository's root or your home"))
        }
    }
}

fn failure(refused: &RefusedProject) -> Failure {
    Failure::new(Code::Invalid, format!("{} cannot be trusted: {}", refused.path.display(), refused.why))
}

fn now() -> Millis {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Millis(since.as_millis() as u64)
}

/// Touches files away from the daemon's own thread.
async fn in_background<T: Send + 'static>(
    app: Arc<App>,
    work: impl FnOnce(&Home) -> Result<T, Failure> + Send + 'static,
) -> Answer<Json<T>> {
    let (home, engine) = (app.home.clone(), app.engine.clone());
    let work = async move { Ok(engine.look_beside("the project's file", move || work(&home)).await??) };
    app.work.carry_out(work).await.map(Json)
}
