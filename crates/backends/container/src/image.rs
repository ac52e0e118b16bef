//! The image of a container: there, fetched, or refused.

use std::time::Duration;

use bollard::models::ImageInspect;
use bollard::query_parameters::CreateImageOptionsBuilder;
use futures_util::StreamExt;
use wharf_model::{Code, Container, Failure, Pull, Text};

use crate::engine::Engine;

/// How long a pull may be silent.
const SILENCE: Duration = Duration::from_secs(60);

/// What an image says of the commands that run in it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Image {
    /// Its variables.
    pub(crate) env: Vec<(Text, Text)>,
    /// Its directory.
    pub(crate) dir: Text,
}

/// Sees to it that the image is there.
pub(crate) async fn ensure(engine: &Engine, container: &Container) -> Result<Image, Failure> {
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
            pull(engine, name).await?;
            engine.image(name).await?.ok_or_else(|| missing(name))?
        }
    };
    Ok(read(image))
}

fn missing(name: &str) -> Failure {
    Failure::new(Code::NotFound, format!("there is no image {name:?} here"))
}

async fn pull(engine: &Engine, name: &str) -> Result<(), Failure> {
    // Without a tag an engine would fetch all of them.
    let named = name.rsplit('/').next().unwrap_or(name).contains([':', '@']);
    let full = if named { name.to_owned() } else { format!("{name}:latest") };
    let options = CreateImageOptionsBuilder::default().from_image(&full).build();
    let mut progress = Box::pin(engine.docker.create_image(Some(options), None, None));
    loop {
        let next = tokio::time::timeout(SILENCE, progress.next()).await;
        match next.map_err(|_| silent(name))? {
            None => return Ok(()),
            // A pull that fails has begun well: its error is in the stream.
            Some(Ok(step)) => {
                if let Some(error) = step.error_detail {
                    return Err(refused(name, &error.message.unwrap_or_default()));
                }
            }
            Some(Err(error)) => return Err(refused(name, &engine.failure("the pull", &error).message)),
        }
    }
}

fn silent(name: &str) -> Failure {
    Failure::new(Code::Timeout, format!("the pull of {name:?} was silent for {} s", SILENCE.as_secs()))
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
    Image { env: env.map(|(name, value)| (name.into(), value.into())).collect(), dir: dir.into() }
}
