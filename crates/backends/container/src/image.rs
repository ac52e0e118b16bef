//! Provides the image of a container: finds it, fetches or builds it, or refuses.

pub(crate) mod context;
mod ignored;
pub(crate) mod images;
mod layers;
pub(crate) mod library;

use std::collections::HashMap;
use std::pin::Pin;
use std::time::Duration;

use bollard::errors::Error;
use bollard::models::ImageInspect;
use bollard::query_parameters::{BuildImageOptionsBuilder, CreateImageOptionsBuilder};
use futures_util::{Stream, StreamExt};
use tokio::time::Instant;
use wharf_backend::{Beside, Progress};
use wharf_model::{Code, Container, Failure, Pull, Text};

use crate::engine::Engine;
use crate::engine::allowance::Allowance;
use crate::image::context::Context;
use crate::image::layers::Layers;

/// What a pull or a build may cost.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    /// How long it may be silent.
    silence: Duration,
    /// How long it may take.
    time: Duration,
    /// How much the engine may say of it, in bytes.
    len: u64,
}

/// So much of one step is shown or kept, in bytes.
const MAX_SHOWN_LEN: usize = 4 << 10;

/// How long a pull or a build may take: a large image over a slow line, a build that compiles for hours.
const MAX_TIME: Duration = Duration::from_secs(6 * 3600);
/// How much of it is listened to: every line of such a build.
const MAX_TOLD_LEN: u64 = 256 << 20;
/// What a pull may cost. An engine that stores a large layer says nothing meanwhile.
const PULL_BOUNDS: Bounds =
    Bounds { silence: Duration::from_secs(10 * 60), time: MAX_TIME, len: MAX_TOLD_LEN };
/// What a build may cost. A step may print nothing for as long as it takes.
const BUILD_BOUNDS: Bounds = Bounds { silence: MAX_TIME, time: MAX_TIME, len: MAX_TOLD_LEN };

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

/// Sees to it that the image is there. Looks at the directory that it is built from beside the daemon's thread.
pub(crate) async fn ensure(
    engine: &Engine,
    container: &Container,
    labels: &HashMap<String, String>,
    progress: &Progress,
    looks: &Beside,
) -> Result<Image, Failure> {
    if let Some(path) = &container.build {
        let dir = path.as_path().to_owned();
        let context = looks.look(&dir.display().to_string(), move || Context::of(&dir)).await??;
        let tag = if container.image.is_empty() { tag(path) } else { container.image.clone() };
        build(engine, &context, &tag, container.platform.as_deref(), labels, progress, BUILD_BOUNDS).await?;
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
            pull(engine, name, container.platform.as_deref(), progress, PULL_BOUNDS).await?;
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
    bounds: Bounds,
) -> Result<(), Failure> {
    let options = BuildImageOptionsBuilder::default().dockerfile(&context.file).t(tag).rm(true).forcerm(true);
    // By these it is known as ours when nobody needs it any more.
    let options = options.labels(labels).platform(platform.unwrap_or_default()).build();
    let (docker, allowance) = engine.stream_of(bounds.len, bounds.silence)?;
    let body = bollard::body_try_stream(context.stream());
    let mut steps = Steps::of(docker.build_image(options, None, Some(body)), allowance, bounds);
    let mut last = String::new();
    let failed = |why: &str, last: &str| {
        let failure = Failure::new(Code::Invalid, format!("the build of {tag} failed: {}", shown(why)));
        if last.is_empty() { failure } else { failure.hint(format!("it said last: {last}")) }
    };
    loop {
        match steps.next("build", tag).await? {
            None => return Ok(()),
            Some(Ok(step)) => {
                if let Some(error) = step.error_detail {
                    return Err(failed(&error.message.unwrap_or_default(), &last));
                }
                let text = step.stream.unwrap_or_default();
                let text = shown(&text);
                if !text.is_empty() {
                    told.tell(text);
                    text.clone_into(&mut last);
                }
            }
            Some(Err(error)) => return Err(failed(&engine.failure("the build", &error).message, &last)),
        }
    }
}

async fn pull(
    engine: &Engine,
    name: &str,
    platform: Option<&str>,
    told: &Progress,
    bounds: Bounds,
) -> Result<(), Failure> {
    // Without a tag an engine would fetch all of them.
    let named = name.rsplit('/').next().unwrap_or(name).contains([':', '@']);
    let full = if named { name.to_owned() } else { format!("{name}:latest") };
    let options =
        CreateImageOptionsBuilder::default().from_image(&full).platform(platform.unwrap_or_default());
    let options = options.build();
    let (docker, allowance) = engine.stream_of(bounds.len, bounds.silence)?;
    let mut steps = Steps::of(docker.create_image(Some(options), None, None), allowance, bounds);
    let mut layers = Layers::default();
    loop {
        match steps.next("pull", name).await? {
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

/// What an engine tells of a pull or a build, within bounds.
struct Steps<S> {
    stream: Pin<Box<S>>,
    allowance: Allowance,
    bounds: Bounds,
    until: Instant,
}

impl<S: Stream<Item = Result<T, Error>>, T> Steps<S> {
    fn of(stream: S, allowance: Allowance, bounds: Bounds) -> Self {
        Self { stream: Box::pin(stream), allowance, bounds, until: Instant::now() + bounds.time }
    }

    /// The next step; none once all is done.
    async fn next(&mut self, what: &str, name: &str) -> Result<Option<Result<T, Error>>, Failure> {
        let quiet = Instant::now() + self.bounds.silence;
        let next = tokio::time::timeout_at(quiet.min(self.until), self.stream.next()).await;
        self.allowance.renew();
        if self.allowance.is_used_up() {
            let message = format!("the engine says more than {} KiB of the {what}", self.bounds.len >> 10);
            return Err(Failure::new(Code::Unavailable, format!("{message} of {name:?}")));
        }
        next.map_err(|_| {
            let why = if quiet < self.until {
                format!("was silent for {} s", self.bounds.silence.as_secs())
            } else {
                format!("took more than {} s", self.bounds.time.as_secs())
            };
            Failure::new(Code::Timeout, format!("the {what} of {name:?} {why}"))
        })
    }
}

/// So much of what an engine says as is shown or kept.
fn shown(text: &str) -> &str {
    let text = text.trim();
    let end = (0..=text.len().min(MAX_SHOWN_LEN)).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or_default()]
}

/// Why an image cannot be fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PullFault {
    /// It is not made for the platform that is asked for.
    NoPlatform,
    /// Anything else.
    Other,
}

impl PullFault {
    /// By the words of either engine, which have no code for it.
    fn of(why: &str) -> Self {
        let words =
            ["no matching manifest", "no image found in manifest list", "no image found in image index"];
        if words.iter().any(|words| why.contains(words)) { Self::NoPlatform } else { Self::Other }
    }
}

async fn refused(engine: &Engine, name: &str, platform: Option<&str>, why: &str) -> Failure {
    let failure = Failure::new(Code::Unavailable, format!("cannot fetch the image {name:?}: {}", shown(why)));
    if PullFault::of(why) == PullFault::Other {
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
/// could not run the holder.
pub(crate) fn may_be_foreign(failure: &Failure) -> bool {
    failure.code == Code::NotExecutable
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
    use crate::engine::fake::{Answer, FakeEngine};

    /// What a pull comes to of which an engine tells so, within bounds that a test has the time for.
    async fn pulled(notes: fn() -> Answer, bounds: Bounds) -> Failure {
        let dir = tempfile::tempdir().unwrap();
        let served = FakeEngine::serve(dir.path(), move |path| {
            if path.contains("/images/create") { notes() } else { Answer::Usual }
        });
        let engine = served.reach().await.unwrap();
        let (told, long) = (Progress::default(), Duration::from_secs(30));
        let pull = pull(&engine, "any", None, &told, bounds);
        tokio::time::timeout(long, pull).await.expect("it never ends").unwrap_err()
    }

    #[tokio::test]
    async fn a_pull_that_tells_of_new_layers_without_end_is_given_up() {
        let notes = || {
            Answer::Endless(|number| {
                let progress =
                    r#""progressDetail":{"current":9223372036854775807,"total":9223372036854775807}"#;
                format!("{{\"id\":\"{number}\",{progress}}}\r\n")
            })
        };
        let failure = pulled(notes, Bounds { len: 1 << 20, ..PULL_BOUNDS }).await;
        assert!(failure.message.contains("says more than 1024 KiB of the pull"), "{failure}");
        let failure = pulled(notes, Bounds { time: Duration::from_millis(300), ..PULL_BOUNDS }).await;
        assert_eq!(failure.code, Code::Timeout, "{failure}");
    }

    #[tokio::test]
    async fn a_pull_that_falls_silent_is_given_up() {
        let notes = || Answer::Stalls("{\"id\":\"a\"}\r\n".to_owned());
        let failure = pulled(notes, Bounds { silence: Duration::from_millis(300), ..PULL_BOUNDS }).await;
        assert_eq!(failure.code, Code::Timeout, "{failure}");
        assert!(failure.message.contains("was silent"), "{failure}");
    }

    #[tokio::test]
    async fn what_an_engine_says_of_a_failed_pull_is_cut() {
        let notes =
            || Answer::Whole(200, format!(r#"{{"errorDetail":{{"message":"{}"}}}}"#, "x".repeat(99_999)));
        let failure = pulled(notes, PULL_BOUNDS).await;
        assert!(failure.message.len() < 2 * MAX_SHOWN_LEN, "{}", failure.message.len());
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
        assert!(!said(Code::Internal, "exec /run/wharf/holder: exec format error"), "words say nothing here");
    }

    #[test]
    fn an_image_without_a_name_is_called_by_where_it_comes_from() {
        assert_eq!(tag(&"/a".into()), tag(&"/a".into()));
        assert_ne!(tag(&"/a".into()), tag(&"/b".into()));
    }
}
