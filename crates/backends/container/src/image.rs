//! Provides the image of a container: finds it, fetches or builds it, or refuses.

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
const SILENCE_TIMEOUT: Duration = Duration::from_secs(60);

/// What an image says of the commands that run in it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Image {
    /// What the engine calls it.
    pub(crate) id: String,
    /// Its variables.
    pub(crate) env: Vec<(Text, Text)>,
    /// Its directory.
    pub(crate) dir: Text,
    /// Its own command: its entry point, and then what that is given.
    pub(crate) command: Vec<Text>,
    /// What it is made for, such as `linux/amd64`; empty where it does not say.
    pub(crate) platform: String,
    /// Where it wants volumes, which the engine makes by itself.
    pub(crate) volumes: Vec<String>,
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
        build(engine, &context, &tag, container.platform.as_deref(), labels, progress).await?;
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
    // One for another platform is not the one that is meant, though it has the name.
    let other = there.as_ref().map(platform_of).filter(|have| !suits(have, container.platform.as_deref()));
    let there = there.filter(|_| other.is_none());
    let image = match there {
        Some(image) => image,
        None if container.pull == Pull::Never => {
            let hint = "let it be fetched with --pull missing";
            return Err(match (other, &container.platform) {
                (Some(have), Some(wanted)) => {
                    let message = format!("the image {name:?} here is for {have}, and not for {wanted}");
                    Failure::new(Code::NotFound, message)
                }
                _ => missing(name),
            }
            .hint(hint));
        }
        None => {
            pull(engine, name, container.platform.as_deref(), progress).await?;
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
    platform: Option<&str>,
    labels: &HashMap<String, String>,
    told: &Progress,
) -> Result<(), Failure> {
    let options = BuildImageOptionsBuilder::default().dockerfile(&context.file).t(tag).rm(true).forcerm(true);
    // By these it is known as ours when nobody needs it any more.
    let options = options.labels(labels).platform(platform.unwrap_or_default()).build();
    let (docker, allowance) = engine.stream()?;
    let mut progress =
        Box::pin(docker.build_image(options, None, Some(bollard::body_try_stream(context.stream()))));
    let mut last = String::new();
    let failed = |why: &str, last: &str| {
        let message = format!("the build of {tag} failed: {}", why.trim());
        let failure = Failure::new(Code::Invalid, message);
        if last.trim().is_empty() { failure } else { failure.hint(format!("it said last: {}", last.trim())) }
    };
    loop {
        let next = tokio::time::timeout(SILENCE_TIMEOUT, progress.next()).await;
        allowance.renew();
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

async fn pull(engine: &Engine, name: &str, platform: Option<&str>, told: &Progress) -> Result<(), Failure> {
    // Without a tag an engine would fetch all of them.
    let named = name.rsplit('/').next().unwrap_or(name).contains([':', '@']);
    let full = if named { name.to_owned() } else { format!("{name}:latest") };
    let options =
        CreateImageOptionsBuilder::default().from_image(&full).platform(platform.unwrap_or_default());
    let options = options.build();
    let (docker, allowance) = engine.stream()?;
    let mut progress = Box::pin(docker.create_image(Some(options), None, None));
    let mut layers = Layers::default();
    loop {
        let next = tokio::time::timeout(SILENCE_TIMEOUT, progress.next()).await;
        allowance.renew();
        match next.map_err(|_| silent("pull", name))? {
            None => return Ok(()),
            // A pull that fails has begun well: its error is in the stream.
            Some(Ok(step)) => {
                if let Some(error) = step.error_detail {
                    return Err(refused(engine, name, platform, &error.message.unwrap_or_default()).await);
                }
                let detail = step.progress_detail.unwrap_or_default();
                if let Some(percent) = layers.note(step.id.unwrap_or_default(), detail.current, detail.total)
                {
                    told.tell(format!("fetching {name}: {percent} %"));
                }
            }
            Some(Err(error)) => {
                let why = engine.failure("the pull", &error).message;
                return Err(refused(engine, name, platform, &why).await);
            }
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
    Failure::new(
        Code::Timeout,
        format!("the {what} of {name:?} was silent for {} s", SILENCE_TIMEOUT.as_secs()),
    )
}

/// What engines say of an image that is not made for the platform that is asked for. They have no code for it.
const NO_PLATFORM: &[&str] =
    &["no matching manifest", "no image found in manifest list", "no image found in image index"];

async fn refused(engine: &Engine, name: &str, platform: Option<&str>, why: &str) -> Failure {
    let failure = Failure::new(Code::Unavailable, format!("cannot fetch the image {name:?}: {}", why.trim()));
    if !NO_PLATFORM.iter().any(|words| why.contains(words)) {
        return failure.hint("is its name right, and can the engine reach its registry?");
    }
    let wanted = match platform {
        Some(platform) => platform.to_owned(),
        None => engine.platform().await.unwrap_or_else(|_| "the engine's platform".to_owned()),
    };
    failure.hint(format!("the image is not made for {wanted}: --platform names one that it is made for"))
}

/// What an image is made for.
fn platform_of(image: &ImageInspect) -> String {
    let parts = [&image.os, &image.architecture, &image.variant];
    let parts = parts.into_iter().flatten().filter(|part| !part.is_empty());
    parts.map(String::as_str).collect::<Vec<_>>().join("/")
}

/// Whether what an image is made for is what was asked for. A variant counts where both name one.
fn suits(have: &str, wanted: Option<&str>) -> bool {
    let Some(wanted) = wanted else { return true };
    let parts = |text: &str| {
        let lower = text.to_lowercase();
        let mut parts: Vec<&str> = lower.split('/').collect();
        if parts.len() == 1 && parts[0] != "linux" {
            parts.insert(0, "linux");
        }
        parts.iter().map(|part| architecture(part).to_owned()).collect::<Vec<_>>()
    };
    parts(have).iter().zip(&parts(wanted)).all(|(have, wanted)| have == wanted)
}

/// The one name of an architecture that has several.
pub(crate) fn architecture(name: &str) -> &str {
    match name {
        "x86_64" | "x86-64" => "amd64",
        "aarch64" => "arm64",
        "i386" | "i486" | "i586" | "i686" => "386",
        "armhf" | "armv7l" => "arm",
        other => other,
    }
}

/// Whether a start may have failed because a program is one of another architecture: it could not be run, or the engine
/// could not run the holder, for which it has no code.
pub(crate) fn may_be_foreign(failure: &Failure) -> bool {
    failure.code == Code::NotExecutable || failure.message.to_lowercase().contains("exec format error")
}

/// What is of another architecture than an engine, so far as is known, and what to do about it.
pub(crate) fn foreign(image: &str, engine: &str) -> Option<String> {
    let of = |platform: &str| platform.split('/').nth(1).map(|name| architecture(name).to_owned());
    let (own, engine_has) = (architecture(std::env::consts::ARCH), of(engine)?);
    if engine_has != own {
        return Some(format!("the engine runs {engine}, and the holder that is brought there is for {own}"));
    }
    of(image).filter(|has| *has != engine_has)?;
    Some(format!(
        "the image is for {image} and the engine runs {engine}: --platform {engine} asks for that one"
    ))
}

/// An image by its id, as it is: the one that a container was made of.
pub(crate) async fn known(engine: &Engine, id: &str) -> Result<Option<Image>, Failure> {
    Ok(engine.image(id).await?.map(read))
}

fn read(image: ImageInspect) -> Image {
    let platform = platform_of(&image);
    let config = image.config.unwrap_or_default();
    let variables = config.env.unwrap_or_default();
    let env = variables.iter().filter_map(|variable| variable.split_once('='));
    let dir = config.working_dir.filter(|dir| !dir.is_empty()).unwrap_or_else(|| "/".to_owned());
    let id = image.id.unwrap_or_default();
    let mut volumes = config.volumes.unwrap_or_default().into_iter().collect::<Vec<_>>();
    volumes.sort();
    let env = env.map(|(name, value)| (name.into(), value.into())).collect();
    let words = config.entrypoint.into_iter().chain(config.cmd).flatten();
    let command = words.map(Text::from).collect();
    Image { id, env, dir: dir.into(), command, platform, volumes }
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
    fn platforms_are_compared_by_their_one_name() {
        for (have, wanted) in [
            ("linux/amd64", "linux/amd64"),
            ("linux/amd64", "x86_64"),
            ("linux/arm64/v8", "linux/arm64"),
            ("linux/arm64", "linux/aarch64/v8"),
            ("linux/amd64", "linux"),
        ] {
            assert!(suits(have, Some(wanted)), "{have} {wanted}");
        }
        for (have, wanted) in [
            ("linux/amd64", "linux/arm64"),
            ("linux/arm/v6", "linux/arm/v7"),
            ("linux/amd64", "windows/amd64"),
        ] {
            assert!(!suits(have, Some(wanted)), "{have} {wanted}");
        }
        assert!(suits("anything", None));
    }

    #[test]
    fn what_cannot_run_for_its_architecture_is_said_so() {
        let own = format!("linux/{}", architecture(std::env::consts::ARCH));
        let other = if own == "linux/s390x" { "linux/amd64" } else { "linux/s390x" };
        let hint = foreign(other, &own).unwrap();
        assert!(hint.contains(other) && hint.contains(&format!("--platform {own}")), "{hint}");
        assert!(foreign(&own, other).is_some_and(|hint| hint.contains("the holder")));
        assert_eq!((foreign(&own, &own), foreign("", &own), foreign(other, "")), (None, None, None));
        let said = |code, words: &str| may_be_foreign(&Failure::new(code, words));
        assert!(said(Code::NotExecutable, "cannot run") && !said(Code::NotFound, "there is no command"));
        assert!(said(Code::Internal, "exec /run/wharf/holder: exec format error"));
    }

    #[test]
    fn an_image_without_a_name_is_called_by_where_it_comes_from() {
        assert_eq!(tag(&"/a".into()), tag(&"/a".into()));
        assert_ne!(tag(&"/a".into()), tag(&"/b".into()));
    }
}
