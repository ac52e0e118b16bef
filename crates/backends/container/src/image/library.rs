//! Lists the images of an engine, and removes those of ours that nobody needs any more.

use std::collections::HashMap;
use std::time::Duration;

use async_trait::async_trait;
use bollard::errors::Error;
use bollard::query_parameters::RemoveImageOptionsBuilder;
use wharf_backend::{Library, Publisher, Result};
use wharf_model::{Code, EngineVariables, Failure, ImageSummary, Millis, Published, Ticket};

use crate::containers::Containers;
use crate::engine::Engine;

/// How long an engine may take to list its images, or to remove one: disks have their say in that.
const IMAGE_TIMEOUT: Duration = Duration::from_secs(60);

impl Containers {
    async fn listed(&self, engine: &Engine) -> Result<Vec<ImageSummary>> {
        let owner = self.owner()?;
        let images = engine.images(IMAGE_TIMEOUT).await?;
        let mut needed: HashMap<String, u32> = HashMap::new();
        for image in engine.images_in_use().await? {
            *needed.entry(image).or_default() += 1;
        }
        let backend = self.options.flavour.name();
        let mut all: Vec<ImageSummary> = images
            .into_iter()
            .map(|image| ImageSummary {
                backend: backend.to_owned(),
                names: image.names(),
                size: u64::try_from(image.size).unwrap_or(0),
                created: Millis(u64::try_from(image.created).unwrap_or(0).saturating_mul(1000)),
                ours: owner.built(image.labels()),
                containers: needed.get(plain(&image.id)).copied().unwrap_or(0),
                id: image.id,
            })
            .collect();
        all.sort_by(|one, other| {
            (other.created, &one.names, &one.id).cmp(&(one.created, &other.names, &other.id))
        });
        Ok(all)
    }
}

#[async_trait]
impl Library for Containers {
    async fn images(&self, caller: Option<&EngineVariables>) -> Result<Vec<ImageSummary>> {
        let engine = self.engine_of(caller).await?;
        self.listed(&engine).await
    }

    async fn prune(
        &self,
        caller: Option<&EngineVariables>,
        all: bool,
        dry_run: bool,
    ) -> Result<Vec<ImageSummary>> {
        let engine = self.engine_of(caller).await?;
        let mut listed = self.listed(&engine).await?;
        listed.retain(|image| image.ours && image.containers == 0 && (all || image.names.is_empty()));
        if dry_run {
            return Ok(listed);
        }
        let mut removed = Vec::new();
        for image in listed {
            // One name after the other: by its id an image goes only once it has a single one.
            let by: Vec<&str> = if image.names.is_empty() {
                vec![&image.id]
            } else {
                image.names.iter().map(String::as_str).collect()
            };
            let mut gone = true;
            for name in by {
                match remove_with_retries(&engine, name).await {
                    Ok(()) => {}
                    // Needed since it was looked at, or already gone.
                    Err(failure) if matches!(failure.code, Code::Busy | Code::NotFound) => {
                        tracing::debug!(image = name, %failure, "an image is kept");
                        gone &= failure.code == Code::NotFound;
                    }
                    Err(failure) => return Err(failure),
                }
            }
            removed.extend(gone.then_some(image));
        }
        Ok(removed)
    }

    async fn remove(&self, caller: Option<&EngineVariables>, name: &str) -> Result<()> {
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"._-:/@".contains(&byte);
        if name.is_empty() || !name.bytes().all(legal) || name.contains("..") {
            return Err(Failure::new(Code::Invalid, format!("{name:?} is no image's name")));
        }
        let engine = self.engine_of(caller).await?;
        remove_with_retries(&engine, name).await
    }
}

/// Removes an image, unless a container needs it.
async fn remove_with_retries(engine: &Engine, name: &str) -> Result<()> {
    let options = RemoveImageOptionsBuilder::default().force(false).build();
    let asked =
        tokio::time::timeout(IMAGE_TIMEOUT, engine.docker.remove_image(name, Some(options), None)).await;
    let asked = asked.map_err(|_| {
        Failure::new(
            Code::Unreachable,
            format!("the engine did not remove the image {name} within {IMAGE_TIMEOUT:?}"),
        )
    })?;
    match asked {
        Ok(_) => Ok(()),
        Err(error @ Error::DockerResponseServerError { status_code: 409, .. }) => {
            let failure = engine.failure(&format!("to remove the image {name}"), &error);
            Err(Failure { code: Code::Busy, ..failure }.hint("a container or another image needs it"))
        }
        Err(Error::DockerResponseServerError { status_code: 404, .. }) => {
            Err(Failure::new(Code::NotFound, format!("there is no image {name:?} here"))
                .hint("`wharf image ls` lists them"))
        }
        Err(error) => Err(engine.failure(&format!("to remove the image {name}"), &error)),
    }
}

/// An image's id without the name of its hash, which not every list has.
fn plain(id: &str) -> &str {
    id.strip_prefix("sha256:").unwrap_or(id)
}

#[async_trait]
impl Publisher for Containers {
    async fn published(&self, ticket: &Ticket) -> Result<Vec<Published>> {
        let (_, found) = self.running(ticket).await?;
        // With the host's own network its ports are the host's.
        let host =
            ticket.spec.container.as_ref().and_then(|container| container.network.as_deref()) == Some("host");
        if host {
            let same = |port: &wharf_model::Port| Published {
                inside: port.number,
                protocol: "tcp".to_owned(),
                address: "127.0.0.1".to_owned(),
                port: port.number,
                variable: None,
            };
            return Ok(ticket.spec.ports.iter().map(same).collect());
        }
        Ok(found.published())
    }
}
