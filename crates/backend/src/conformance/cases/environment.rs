//! The command gets exactly its variables, arguments and directory: no shell is between.

use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::Arc;

use wharf_model::Text;

use crate::conformance::Place;

const ODD: &[&[u8]] = &[
    b"",
    b" ",
    b"plain",
    b"two\nlines\n",
    b"'single' \"double\" `back` \\slash",
    b"$(touch never) ${HOME} $PATH `id`",
    b"#(id) %s %n !! ~ * ? [a] {a,b}",
    b"a=b=c",
    b"-rf",
    b";&|<>",
    b"\xff\xfe not utf-8 \x80",
    b"\x1b[31m\x07\x01\t\x7f",
    "größe 🚢".as_bytes(),
];

/// Exactly these variables, byte for byte, in any order, and no others.
pub async fn variables_are_exact(place: Arc<Place>) {
    place.need(place.tools().proc, "/proc");
    // The shell's own block of variables, as the kernel gave it: what the shell makes of it does not show.
    let mut launch = place.raw("cat /proc/$$/environ");
    for (i, odd) in ODD.iter().enumerate() {
        launch.env.push((format!("ODD_{i}").into(), (*odd).into()));
    }
    launch.env.push((Text::from(&b"N\xc4ME"[..]), "odd name".into()));
    launch.env.push(("LONG".into(), "x".repeat(100_000).into()));
    launch.env.push(("LD_BIND_NOW".into(), "".into()));
    let mut asked: Vec<Vec<u8>> =
        launch.env.iter().map(|(name, value)| [name.as_bytes(), b"=", value.as_bytes()].concat()).collect();
    let session = place.start(launch).await;
    assert_eq!(session.ended().await.code, Some(0));
    let output = session.rest(0).await;
    let output = output.strip_suffix(b"\0").expect("a NUL after the last");
    let added = |pair: &[u8]| {
        let name = pair.split(|byte| *byte == b'=').next().unwrap_or_default();
        place.tools().adds.iter().any(|added| added.as_bytes() == name)
    };
    let pairs = output.split(|byte| *byte == 0).filter(|pair| !added(pair));
    let mut got: Vec<Vec<u8>> = pairs.map(<[u8]>::to_vec).collect();
    asked.sort();
    got.sort();
    assert_eq!(readable(&got), readable(&asked));
}

/// Exactly these arguments, byte for byte.
pub async fn arguments_are_exact(place: Arc<Place>) {
    let mut args: Vec<Text> = ODD.iter().map(|odd| Text::from(*odd)).collect();
    args.push("x".repeat(100_000).into());
    args.push(Text::default());
    let mut launch = place.raw("printf '%s\\0' \"$#\" \"$@\"");
    launch.argv.extend(args.iter().cloned());
    let session = place.start(launch).await;
    assert_eq!(session.ended().await.code, Some(0));
    let mut asked = vec![args.len().to_string().into_bytes()];
    asked.extend(args.iter().map(|arg| arg.as_bytes().to_vec()));
    let output = session.rest(0).await;
    let output = output.strip_suffix(b"\0").expect("a NUL after the last");
    let got: Vec<Vec<u8>> = output.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect();
    assert_eq!(readable(&got), readable(&asked));
    assert!(!place.dir().join("never").exists(), "something was run that was only an argument");
}

/// The directory, whatever its name.
pub async fn directories_are_exact(place: Arc<Place>) {
    place.need_host();
    let names: [&[u8]; 6] =
        [b"with spaces", b"two\nlines", b"$(id)", b"-rf", b"quote'\"", b"not utf-8 \xff\xfe"];
    let root = place.dir().canonicalize().expect("the root is there");
    for name in names {
        let dir = root.join(OsStr::from_bytes(name));
        std::fs::create_dir(&dir).expect("a directory can be made");
        assert_eq!(pwd(&place, dir.as_path().into()).await, dir.into_os_string().into_vec());
    }
    let link = root.join("a link");
    std::os::unix::fs::symlink("with spaces", &link).expect("a link can be made");
    assert_eq!(pwd(&place, link.into()).await, root.join("with spaces").into_os_string().into_vec());
}

/// A terminal session controls its terminal; a pipe session has none.
pub async fn the_terminal_is_the_commands_own(place: Arc<Place>) {
    let script = "if (echo through > /dev/tty) 2>/dev/null; then echo one; else echo none; fi; \
        for n in 0 1 2; do test -t $n && echo $n; done; exit 0";
    let session = place.start(place.shell(script)).await;
    assert_eq!(session.ended().await.code, Some(0));
    let expected = if place.tty() { "through\none\n0\n1\n2\n" } else { "none\n" };
    assert_eq!(session.lines().await, expected);
}

async fn pwd(place: &Place, dir: Text) -> Vec<u8> {
    let mut launch = place.raw("pwd -P; printf .");
    launch.spec.dir = dir;
    let session = place.start(launch).await;
    assert_eq!(session.ended().await.code, Some(0));
    let mut output = session.rest(0).await;
    assert!(output.ends_with(b"\n."), "{}", output.escape_ascii());
    output.truncate(output.len() - 2);
    output
}

fn readable(all: &[Vec<u8>]) -> Vec<String> {
    all.iter().map(|bytes| bytes.escape_ascii().to_string()).collect()
}
