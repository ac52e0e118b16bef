//! The image of a container: there, fetched, or refused.

pub(crate) mod context;
pub(crate) mod images;
pub(crate) mod library;

use std::collections::HashMap;
use std::time::Duration;

use bollard::models::ImageInspect;
use bollard::query_parameters::{BuildImageOptionsBuilder, CreateImageOptionsBuilder};
use futures_util::StreamExt;
use wharf_backend::Progress;
use wharf_model::{Code, Container, Failure, Pull, Text};

use crate::engine::Engine;
use crate::image::context::Context;

/// How long a pull or a build may be silent.
const SILENCE: Duration = Duration::from_secs(60);

/// What an image says of the commands that run in it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Image {
    /// What the engine calls it.
    pub(crate) id: String,
    /// Its variables.
    pub(crate) env: Vec<(Text, Text)>,
    /// Its directory.
    pub(crate) dir: Text,
}

/// Sees to it that the image is there.
pub(crate) async fn ensure(
    engine: &Engine,
    container: &Container,
    labels: &HashMap<String, String>,
    progress: &Progress,
) -> Result<Image, Failure> {
    if let Some(path) = &container.build {
        let context = Context::of(path.as_path())?;
        let tag = if container.image.is_empty() { tag(path) } else { container.image.clone() };
        build(engine, &context, &tag, labels, progress).await?;
        return engine.image(&tag).await?.map(read).ok_or_else(|| missing(&tag));
    }
    let name = container.image.as_str();
    if name.is_empty() {
        return Err(Failure::new(Code::Invalid, "no image is named").hint("name one with --image"));
    }
    let there = match container.pull {
        Pull::Always => None,
        Pull::Missing | Pull::Never => engine.image(name).await?,
    };
    let image = match there {
        Some(image) => image,
        None if container.pull == Pull::Never => {
            return Err(missing(name).hint("let it be fetched with --pull missing"));
        }
        None => {
            pull(engine, name, progress).await?;
            engine.image(name).await?.ok_or_else(|| missing(name))?
        }
    };
    Ok(read(image))
}

fn missing(name: &str) -> Failure {
    Failure::new(Code::NotFound, format!("there is no image {name:?} here"))
}

/// What an image is called that was given no name: by where it was built from, so that the next one replaces it.
fn tag(path: &Text) -> String {
    let hash = path.as_bytes().iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("localhost/wharf-build-{hash:016x}:latest")
}

/// Builds an image. What it printed last is told where it fails.
async fn build(
    engine: &Engine,
    context: &Context,
    tag: &str,
    labels: &HashMap<String, String>,
    told: &Progress,
) -> Result<(), Failure> {
    let options = BuildImageOptionsBuilder::default().dockerfile(&context.file).t(tag).rm(true).forcerm(true);
    // By these it is known as ours when nobody needs it any more.
    let options = options.labels(labels).build();
    let mut progress =
        Box::pin(engine.docker.build_image(options, None, Some(bollard::body_try_stream(context.stream()))));
    let mut last = String::new();
    let failed = |why: &str, last: &str| {
        let message = format!("the build of {tag} failed: {}", why.trim());
        let failure = Failure::new(Code::Invalid, message);
        if last.trim().is_empty() { failure } else { failure.hint(format!("it said last: {}", last.trim())) }
    };
    loop {
        let next = tokio::time::timeout(SILENCE, progress.next()).await;
        match next.map_err(|_| silent("build", tag))? {
            None => return Ok(()),
            Some(Ok(step)) => {
                if let Some(error) = step.error_detail {
                    return Err(failed(&error.message.unwrap_or_default(), &last));
                }
                if let Some(text) = step.stream.filter(|text| !text.trim().is_empty()) {
                    told.tell(text.trim());
                    last = text;
                }
            }
            Some(Err(error)) => return Err(failed(&engine.failure("the build", &error).message, &last)),
        }
    }
}

async fn pull(engine: &Engine, name: &str, told: &Progress) -> Result<(), Failure> {
    // Without a tag an engine would fetch all of them.
    let named = name.rsplit('/').next().unwrap_or(name).contains([':', '@']);
    let full = if named { name.to_owned() } else { format!("{name}:latest") };
    let options = CreateImageOptionsBuilder::default().from_image(&full).build();
    let mut progress = Box::pin(engine.docker.create_image(Some(options), None, None));
    let mut layers = Layers::default();
    loop {
        let next = tokio::time::timeout(SILENCE, progress.next()).await;
        match next.map_err(|_| silent("pull", name))? {
            None => return Ok(()),
            // A pull that fails has begun well: its error is in the stream.
            Some(Ok(step)) => {
                if let Some(error) = step.error_detail {
                    return Err(refused(name, &error.message.unwrap_or_default()));
                }
                let detail = step.progress_detail.unwrap_or_default();
                if let Some(percent) = layers.note(step.id.unwrap_or_default(), detail.current, detail.total)
                {
                    told.tell(format!("fetching {name}: {percent} %"));
                }
            }
            Some(Err(error)) => return Err(refused(name, &engine.failure("the pull", &error).message)),
        }
    }
}

/// How far the parts of an image are.
#[derive(Debug, Default)]
struct Layers {
    parts: HashMap<String, (u64, u64)>,
    told: u64,
}

impl Layers {
    /// Notes how far one part is. Says how much of all is there, each time that it is five in a hundred more.
    fn note(&mut self, part: String, current: Option<i64>, total: Option<i64>) -> Option<u64> {
        let (current, total) = (current? as u64, total.filter(|total| *total > 0)? as u64);
        self.parts.insert(part, (current.min(total), total));
        let (have, all) = self.parts.values().fold((0, 0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
        let percent = have * 100 / all.max(1);
        // Parts are heard of one by one, so it can go back; that is not told.
        (percent >= self.told + 5 || (percent == 100 && self.told < 100)).then(|| {
            self.told = percent;
            percent
        })
    }
}

fn silent(what: &str, name: &str) -> Failure {
    Failure::new(Code::Timeout, format!("the {what} of {name:?} was silent for {} s", SILENCE.as_secs()))
}

fn refused(name: &str, why: &str) -> Failure {
    Failure::new(Code::Unavailable, format!("cannot fetch the image {name:?}: {}", why.trim()))
        .hint("is its name right, and can the engine reach its registry?")
}

fn read(image: ImageInspect) -> Image {
    let config = image.config.unwrap_or_default();
    let variables = config.env.unwrap_or_default();
    let env = variables.iter().filter_map(|variable| variable.split_once('='));
    let dir = config.working_dir.filter(|dir| !dir.is_empty()).unwrap_or_else(|| "/".to_owned());
    let id = image.id.unwrap_or_default();
    Image { id, env: env.map(|(name, value)| (name.into(), value.into())).collect(), dir: dir.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_told_in_steps_and_only_forwards() {
        let mut layers = Layers::default();
        let mut note = |part: &str, current, total| layers.note(part.to_owned(), Some(current), Some(total));
        assert_eq!(note("a", 1, 100), None);
        assert_eq!(note("a", 50, 100), Some(50));
        assert_eq!(note("b", 0, 100), None);
        assert_eq!(note("a", 100, 100), None);
        assert_eq!(note("b", 60, 100), Some(80));
        assert_eq!(note("b", 100, 100), Some(100));
        assert_eq!(note("b", 100, 100), None);
        assert_eq!(layers.note("c".to_owned(), None, Some(5)), None);
        assert_eq!(layers.note("c".to_owned(), Some(1), Some(0)), None);
    }

    #[test]
    fn an_image_without_a_name_is_called_by_where_it_comes_from() {
        assert_eq!(tag(&"/a".into()), tag(&"/a".into()));
        assert_ne!(tag(&"/a".into()), tag(&"/b".into()));
    }
}
