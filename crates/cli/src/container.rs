//! The arguments that describe a container, for the verbs that start a session.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use wharf_model::{
    Change, Container, EngineVariables, Environment, EnvironmentBase, Failure, Publish, Pull, Text, Volume,
};

use crate::trouble::invalid;

/// The container to run in.
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Containers", group = clap::ArgGroup::new("container").args(["image", "build"]).multiple(true))]
pub(crate) struct ContainerArgs {
    /// Run in a container of this image; the first engine that answers is used unless -b names one
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,
    /// Build the image from a directory with a Dockerfile, or from that Dockerfile; --image names what comes of it
    #[arg(long, value_name = "PATH")]
    build: Option<PathBuf>,
    /// When the image is fetched: always, missing, never
    #[arg(long, value_name = "WHEN", default_value = "missing", value_parser = pull)]
    pull: Pull,
    /// The platform that the image is for, such as linux/arm64; the engine's own when absent
    #[arg(long, value_name = "OS/ARCH", requires = "container")]
    platform: Option<String>,
    /// A program to put before the command, in place of what the image runs
    #[arg(long, value_name = "PROGRAM", requires = "container")]
    entrypoint: Option<OsString>,
    /// A directory or file that the container sees: PATH for the same path, PATH:INSIDE, with :ro to look only; or
    /// VOLUME:INSIDE; may be repeated. On this host PATH or PATH:PATH is what it is
    #[arg(short = 'v', long = "volume", value_name = "PATH[:INSIDE][:ro]")]
    volumes: Vec<OsString>,
    /// A directory in memory; may be repeated
    #[arg(long, value_name = "PATH", requires = "container")]
    tmpfs: Vec<OsString>,
    /// A port of the container that is reached from here: [[ADDRESS:]PORT:]INSIDE[/udp]; may be repeated. On this host
    /// PORT:PORT is what it is
    #[arg(long, value_name = "PORT", value_parser = publish)]
    publish: Vec<Publish>,
    /// The network by the engine's name for it; none for none at all
    #[arg(long, value_name = "NETWORK", requires = "container")]
    network: Option<String>,
    /// Let it reach this host as host.docker.internal
    #[arg(long, requires = "container")]
    host_gateway: bool,
    /// Who it runs as, in place of you: UID[:GID], or a name of the image
    #[arg(long, value_name = "USER", requires = "container")]
    user: Option<String>,
    /// A further group; may be repeated
    #[arg(long, value_name = "GROUP", requires = "container")]
    group_add: Vec<String>,
    /// The image's own files cannot be changed
    #[arg(long, requires = "container")]
    read_only: bool,
    /// A capability to give; it has none; may be repeated
    #[arg(long, value_name = "CAPABILITY", requires = "container")]
    cap_add: Vec<String>,
    /// A capability to take away; it has none anyway
    #[arg(long, value_name = "CAPABILITY", requires = "container")]
    cap_drop: Vec<String>,
    /// A device of this host: PATH[:INSIDE[:rwm]]; may be repeated
    #[arg(long = "device", value_name = "DEVICE", requires = "container")]
    devices: Vec<String>,
    /// Use a running container of the same make where a session started one with --reuse; it goes with the last of them
    #[arg(long, requires = "container")]
    reuse: bool,
    /// Keep the container after its end: `restart` goes on in it, `rm` removes it
    #[arg(long, requires = "container", conflicts_with = "reuse")]
    keep: bool,
}

impl ContainerArgs {
    /// What was asked to be mapped to itself where there is no container, in words. Anything else cannot be had there.
    pub(crate) fn unmapped(&self, here: &Path) -> Result<Vec<String>, Failure> {
        if self.image.is_some() || self.build.is_some() {
            return Ok(Vec::new());
        }
        let mut words = Vec::new();
        for text in &self.volumes {
            let volume = volume(text, here)?;
            if volume.read_only || volume.source != volume.target {
                let what = if volume.read_only { "a read-only path" } else { "a path under another name" };
                return Err(Failure::unsupported(format!("-v {}: {what}", text.display()), "this host")
                    .hint("-v PATH is what it is here; --image runs it in a container, --sandbox keeps it from files"));
            }
            if !volume.source.as_path().exists() {
                return Err(invalid(format!(
                    "there is no {}, so nothing is there to see",
                    volume.source.lossy()
                )));
            }
            words.push(format!("-v {}", volume.source.lossy()));
        }
        for port in &self.publish {
            if port.address.is_some() || port.host != port.container {
                let asked = format!("--publish {}: a port under another number or address", port.container);
                return Err(Failure::unsupported(asked, "this host")
                    .hint("--publish PORT:PORT is what it is here; --image runs it in a container"));
            }
            let protocol = if port.udp { "/udp" } else { "" };
            words.push(format!("--publish {0}:{0}{protocol}", port.host));
        }
        Ok(words)
    }

    /// The container, where one was asked for. `here` is the directory of the caller, `chosen` whether -w named another.
    pub(crate) fn container(self, here: &Path, chosen: bool) -> Result<Option<Box<Container>>, Failure> {
        if self.image.is_none() && self.build.is_none() {
            return Ok(None);
        }
        let image = self.image.unwrap_or_default();
        let volumes: Vec<Volume> =
            self.volumes.iter().map(|text| volume(text, here)).collect::<Result<_, _>>()?;
        // Where the caller stands is there in the container too, or the image says where to stand.
        let seen = volumes
            .iter()
            .any(|volume| volume.source == volume.target && here.starts_with(volume.target.as_path()));
        Ok(Some(Box::new(Container {
            image,
            pull: self.pull,
            build: self.build.map(|path| plain(&here.join(path)).into()),
            platform: self.platform,
            entrypoint: self.entrypoint.map(Text::from),
            image_command: false,
            image_variables: true,
            image_dir: !chosen && !seen,
            volumes,
            tmpfs: self.tmpfs.into_iter().map(Text::from).collect(),
            secrets: Vec::new(),
            publish: self.publish,
            network: self.network,
            host_gateway: self.host_gateway,
            user: self.user,
            group_add: self.group_add,
            read_only: self.read_only,
            cap_add: self.cap_add,
            cap_drop: self.cap_drop,
            devices: self.devices,
            reuse: self.reuse,
            keep: self.keep,
            engine: Some(engine_meant()),
        })))
    }
}

/// What says which engine is meant here, and what its own client would hand on to a container.
fn engine_meant() -> EngineVariables {
    EngineVariables::of(&here(), |name| std::env::var_os(name))
}

/// What says which engine is meant here, for a question to it.
pub(crate) fn engine_asked() -> EngineVariables {
    EngineVariables::places(&here(), |name| std::env::var_os(name))
}

fn here() -> PathBuf {
    std::env::current_dir().unwrap_or_else(|_| "/".into())
}

/// The variables of a command in a container: what was named. Those of the caller are about another place.
pub(crate) fn environment(given: Environment, tty: bool) -> Environment {
    let mut changes = Vec::new();
    if tty {
        let term = std::env::var_os("TERM").filter(|term| !term.is_empty() && term != "dumb");
        let term = term.map_or_else(|| Text::from("xterm-256color"), Text::from);
        changes.push(Change::Set("TERM".into(), term));
    }
    changes.extend(given.changes);
    Environment { base: EnvironmentBase::Empty, caller: Vec::new(), changes }
}

fn pull(text: &str) -> Result<Pull, String> {
    match text {
        "always" => Ok(Pull::Always),
        "missing" => Ok(Pull::Missing),
        "never" => Ok(Pull::Never),
        _ => Err(format!("{text:?} is none of always, missing, never")),
    }
}

/// Reads `PATH`, `PATH:INSIDE`, `NAME:INSIDE`, each with `:ro` or `:rw`.
fn volume(text: &OsString, here: &Path) -> Result<Volume, Failure> {
    let bytes = text.as_encoded_bytes();
    let (rest, read_only) = match bytes.strip_suffix(b":ro") {
        Some(rest) => (rest, true),
        None => (bytes.strip_suffix(b":rw").unwrap_or(bytes), false),
    };
    let mut parts = rest.splitn(2, |byte| *byte == b':');
    let source = Text::from(parts.next().unwrap_or_default());
    let inside = parts.next().map(Text::from);
    if source.is_empty() || inside.as_ref().is_some_and(Text::is_empty) {
        return Err(invalid(format!("{} is no volume", text.display())).hint("write -v PATH[:INSIDE][:ro]"));
    }
    let named =
        inside.is_some() && !source.as_bytes().contains(&b'/') && !source.as_bytes().starts_with(b".");
    let source = if named { source } else { plain(&here.join(source.as_path())).into() };
    Ok(Volume { target: inside.unwrap_or_else(|| source.clone()), source, read_only })
}

/// The path without `.` and with `..` taken back, so that it is the same on both sides.
pub(crate) fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::CurDir => {}
            std::path::Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    plain
}

/// Reads `INSIDE`, `PORT:INSIDE`, `ADDRESS:PORT:INSIDE`, each with `/tcp` or `/udp`; `auto` is any free port.
fn publish(text: &str) -> Result<Publish, String> {
    let (rest, udp) = match text.strip_suffix("/udp") {
        Some(rest) => (rest, true),
        None => (text.strip_suffix("/tcp").unwrap_or(text), false),
    };
    let port = |text: &str| text.parse::<u16>().ok().filter(|port| *port > 0);
    let wrong = || format!("{text:?} is no port: write [[ADDRESS:]PORT:]INSIDE[/udp]");
    let (before, inside) =
        rest.rsplit_once(':').map_or((None, rest), |(before, inside)| (Some(before), inside));
    let container = port(inside).ok_or_else(wrong)?;
    let (address, host) = match before.map(|before| before.rsplit_once(':').unwrap_or(("", before))) {
        None | Some(("", "auto" | "")) => (None, 0),
        Some((address, host)) => {
            let host = if host == "auto" || host.is_empty() { 0 } else { port(host).ok_or_else(wrong)? };
            let address = address.trim_start_matches('[').trim_end_matches(']');
            ((!address.is_empty()).then(|| address.to_owned()), host)
        }
    };
    Ok(Publish { address, host, container, udp })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (String, String, bool) {
        let volume = volume(&text.into(), Path::new("/work/tree")).unwrap();
        (volume.source.lossy().into_owned(), volume.target.lossy().into_owned(), volume.read_only)
    }

    fn expect(source: &str, target: &str, read_only: bool) -> (String, String, bool) {
        (source.to_owned(), target.to_owned(), read_only)
    }

    #[test]
    fn volumes_are_read() {
        assert_eq!(read("."), expect("/work/tree", "/work/tree", false));
        assert_eq!(read("../other:ro"), expect("/work/other", "/work/other", true));
        assert_eq!(read("/a:/b"), expect("/a", "/b", false));
        assert_eq!(read("./src:/b:ro"), expect("/work/tree/src", "/b", true));
        assert_eq!(read("cache:/c:rw"), expect("cache", "/c", false));
        for bad in ["", ":/x", "/x:", ":ro"] {
            assert!(volume(&bad.into(), Path::new("/")).is_err(), "{bad:?} was taken");
        }
    }

    #[test]
    fn published_ports_are_read() {
        let port = |address: Option<&str>, host, container, udp| {
            Ok(Publish { address: address.map(str::to_owned), host, container, udp })
        };
        assert_eq!(publish("80"), port(None, 0, 80, false));
        assert_eq!(publish("auto:80"), port(None, 0, 80, false));
        assert_eq!(publish("8080:80/tcp"), port(None, 8080, 80, false));
        assert_eq!(publish("0.0.0.0:53:53/udp"), port(Some("0.0.0.0"), 53, 53, true));
        assert_eq!(publish("[::1]:8080:80"), port(Some("::1"), 8080, 80, false));
        for bad in ["", "0", "x", "80:", "70000", "x:80", "1:2:x"] {
            assert!(publish(bad).is_err(), "{bad:?} was taken");
        }
    }

    #[test]
    fn on_this_host_only_what_is_the_same_on_both_sides_can_be_had() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().to_str().unwrap();
        let of = |volumes: &[&str], ports: &[&str]| {
            let args = ContainerArgs {
                volumes: volumes.iter().map(OsString::from).collect(),
                publish: ports.iter().map(|port| publish(port).unwrap()).collect(),
                ..ContainerArgs::default()
            };
            args.unmapped(dir.path()).map_err(|failure| {
                assert!(failure.hint.is_some() || failure.code == wharf_model::Code::Invalid);
                failure.code
            })
        };
        let same = format!("{path}:{path}");
        assert_eq!(of(&[path], &["80:80"]).unwrap(), [format!("-v {path}"), "--publish 80:80".to_owned()]);
        assert_eq!(of(&[&same, "."], &["53:53/udp"]).unwrap().len(), 3);
        let refused = Err(wharf_model::Code::Unsupported);
        assert_eq!(of(&[&format!("{path}:/x")], &[]), refused);
        assert_eq!(of(&[&format!("{path}:ro")], &[]), refused);
        assert_eq!(of(&["cache:/c"], &[]), refused);
        for port in ["80", "8080:80", "127.0.0.1:80:80", "auto:80"] {
            assert_eq!(of(&[], &[port]), refused, "{port}");
        }
        assert_eq!(of(&[&format!("{path}/none")], &[]), Err(wharf_model::Code::Invalid));
    }

    #[test]
    fn the_directory_is_the_callers_where_the_container_sees_it() {
        let args = |volumes: &[&str]| ContainerArgs {
            image: Some("alpine".to_owned()),
            volumes: volumes.iter().map(OsString::from).collect(),
            ..ContainerArgs::default()
        };
        let here = Path::new("/work/tree/deep");
        let image_dir = |volumes: &[&str], chosen| {
            args(volumes).container(here, chosen).unwrap().is_some_and(|container| container.image_dir)
        };
        assert!(image_dir(&[], false));
        assert!(!image_dir(&["/work/tree"], false));
        assert!(image_dir(&["/work/tree:/src"], false));
        assert!(!image_dir(&[], true));
    }
}
