//! Lists, prunes and removes the images of every container engine that answers.

use std::sync::Arc;

use wharf_backend::{Backend, Library};
use wharf_model::{Code, EngineVariables, Failure, ImageSummary};

use crate::Result;
use crate::instance::engine::Engine;

/// The images of engines. Of several engines, those that answer are asked. Of each backend it is the engine that the caller
/// means by its variables, or else the instance's own.
impl Engine {
    /// All images of one backend, or of all that have some.
    pub async fn images(
        &self,
        backend: Option<&str>,
        caller: Option<&EngineVariables>,
    ) -> Result<Vec<ImageSummary>> {
        let mut all = Vec::new();
        let mut failed = None;
        let mut answered = false;
        for library in self.libraries(backend)? {
            match library.images(caller).await {
                Ok(images) => {
                    answered = true;
                    all.extend(images);
                }
                Err(failure) => failed = failed.or(Some(failure)),
            }
        }
        settle(all, answered, failed)
    }

    /// Removes images that this install built and no container needs: those whose name a newer one has taken, or all.
    pub async fn prune_images(
        &self,
        backend: Option<&str>,
        caller: Option<&EngineVariables>,
        all: bool,
        dry_run: bool,
    ) -> Result<Vec<ImageSummary>> {
        let mut removed = Vec::new();
        let mut failed = None;
        let mut answered = false;
        for library in self.libraries(backend)? {
            match library.prune(caller, all, dry_run).await {
                Ok(images) => {
                    answered = true;
                    removed.extend(images);
                }
                Err(failure) => failed = failed.or(Some(failure)),
            }
        }
        settle(removed, answered, failed)
    }

    /// Removes an image by name or id, from the first engine that has it.
    pub async fn remove_image(
        &self,
        backend: Option<&str>,
        caller: Option<&EngineVariables>,
        name: &str,
    ) -> Result<()> {
        let mut failed = None;
        for library in self.libraries(backend)? {
            match library.remove(caller, name).await {
                Ok(()) => return Ok(()),
                // One that does not answer says nothing of the image; one that refuses does.
                Err(failure) if matches!(failure.code, Code::NotFound | Code::Unavailable) => {
                    failed = match failed {
                        Some(known @ Failure { code: Code::NotFound, .. }) => Some(known),
                        _ => Some(failure),
                    };
                }
                Err(failure) => return Err(failure),
            }
        }
        Err(failed.unwrap_or_else(|| Failure::new(Code::NotFound, format!("there is no image {name:?}"))))
    }

    fn libraries(&self, backend: Option<&str>) -> Result<Vec<&dyn Library>> {
        let none = |name: &str| Failure::unsupported("images", name);
        if let Some(name) = backend {
            let library = self.shared.backend(name)?.library();
            return Ok(vec![library.ok_or_else(|| none(&format!("the {name} backend")))?]);
        }
        let all = self.shared.backends.iter();
        let libraries: Vec<&dyn Library> =
            all.filter_map(|backend: &Arc<dyn Backend>| backend.library()).collect();
        if libraries.is_empty() { Err(none("this instance")) } else { Ok(libraries) }
    }
}

/// What was found; a failure only where nobody answered.
fn settle(found: Vec<ImageSummary>, answered: bool, failed: Option<Failure>) -> Result<Vec<ImageSummary>> {
    match failed {
        Some(failure) if !answered => Err(failure),
        _ => Ok(found),
    }
}
