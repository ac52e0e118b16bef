//! Fills the fuzz targets' corpora with what the real writers write, so that the fuzzer begins inside of the formats. Each
//! honest seed is read back first: one that its reader refuses would teach the fuzzer nothing.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use tar::{Builder, EntryType, Header};
use wharf_agents::Profiles;
use wharf_archive::{How, EntryNames, PackSource, pack, unpack};
use wharf_boundary::Dir;
use wharf_holder::frame::{self, Kind};
use wharf_holder::wire::{Hello, PendingInput, HolderStatus, StopRequest, ResourceUsage, sections, strings, variables};
use wharf_log::{Mark, Retention, Stream, Writer};
use wharf_model::{
    Code, Container, Environment, ExitRecord, Failure, Limits, Millis, Mounted, MountedBy, Offset, Pin,
    PinKind, Port, ProcessIdentity, Reason, Sandbox, Secret, SessionId, Size, Spec, Text, Ticket,
    Volume,
};

fn main() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let seeds: [(&str, fn() -> Vec<Vec<u8>>); 6] = [
        ("frames", frames),
        ("tickets", tickets),
        ("exits", exits),
        ("indexes", indexes),
        ("archives", archives),
        ("projects", projects),
    ];
    for (target, make) in seeds {
        let dir = corpus.join(target);
        fs::create_dir_all(&dir).expect("a directory");
        let all = make();
        for (number, seed) in all.iter().enumerate() {
            fs::write(dir.join(format!("seed-{number:03}")), seed).expect("a file");
        }
        println!("{target}: {} seeds, {} bytes", all.len(), all.iter().map(Vec::len).sum::<usize>());
    }
}

fn json(value: &impl serde::Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("it can be written")
}

/// What a holder and a client say, each frame by itself and all together; the first byte says where they are cut.
fn frames() -> Vec<Vec<u8>> {
    let status = HolderStatus { attached: 1, pid: 7, size: Size { cols: 80, rows: 24 }, ..HolderStatus::default() };
    let hello = Hello { role: "attach".into(), status: Some(status.clone()), ..Hello::default() };
    let stop = StopRequest { grace: Millis(10), reason: Reason::Stopped, by: "somebody".into() };
    let words = strings([&b"sh"[..], b"-c", b"true"]).expect("no zeros");
    let vars = variables(&[("A".into(), "b".into())]).expect("no zeros");
    let exec = sections(&[br#"{"dir":"/","tty":false}"#, &words, &vars]);
    let output = [&7_u64.to_le_bytes()[..], &[1], b"printed\r\n"].concat();
    let gap = [3_u64.to_le_bytes(), 9_u64.to_le_bytes()].concat();
    let said = [
        (Kind::Hello, json(&hello)),
        (Kind::Input, b"typed".to_vec()),
        (Kind::Stop, json(&stop)),
        (Kind::Read, 0_u64.to_le_bytes().to_vec()),
        (Kind::Exec, exec),
        (Kind::Daemon, sections(&[&vars])),
        (Kind::Welcome, json(&hello)),
        (Kind::Output, output),
        (Kind::Gap, gap),
        (Kind::News, json(&status)),
        (Kind::Ack, json(&PendingInput::default())),
        (Kind::Ack, json(&ResourceUsage::default())),
        (Kind::Error, json(&Failure::new(Code::Invalid, "no").hint("ask again"))),
        (Kind::Recall, Vec::new()),
        (Kind::Exit, json(&ExitRecord::default())),
    ];
    let frames: Vec<Vec<u8>> =
        said.iter().zip(0..).map(|((kind, payload), seq)| frame::encode(*kind, seq, payload)).collect();
    let mut seeds: Vec<Vec<u8>> = frames.iter().map(|frame| [&[5], &frame[..]].concat()).collect();
    // What a client is sent follows the first six, which it sends itself.
    for all in [frames.concat(), frames[6..].concat()] {
        seeds.push([&[40], &all[..]].concat());
        let mut decoder = frame::Decoder::default();
        decoder.push(&all);
        let mut count = 0;
        while decoder.next().expect("each is sound").is_some() {
            count += 1;
        }
        assert!(count == frames.len() || count == frames.len() - 6);
    }
    seeds
}

fn tickets() -> Vec<Vec<u8>> {
    let (id, name) = (SessionId::new(Millis(1), 1), "plain".parse().expect("a name"));
    let plain = Ticket::new(id, Millis(1), name, "local", "/state/sessions/x", "t", Spec::new(["sh"], "/"));
    let us = ProcessIdentity { pid: 7, start: 9, boot: "boot".into(), namespace: None };
    let mut held =
        Ticket { holder: Some(us.clone()), command: Some(us), started: Millis(2), ..plain.clone() };
    held.spec.env = Environment::exactly([("A".into(), "b".into()), (Text::from(&b"\xff"[..]), "c".into())]);
    held.spec.limits = Limits { memory: Some(1 << 30), ..Limits::default() };
    held.spec.labels = BTreeMap::from([("of".to_owned(), "me".to_owned())]);
    held.spec.ports = vec![Port { variable: "PORT".into(), number: 4_000 }];
    held.spec.run_timeout = Some(Millis(5));
    let mut contained = Ticket { private: Some("{\"id\":\"c\"}".into()), ..held.clone() };
    contained.spec.container = Some(Box::new(Container {
        image: "debian".into(),
        volumes: vec![Volume { source: "/src".into(), target: "/dst".into(), read_only: true }],
        secrets: vec![Secret { name: "key".into(), source: "/key".into() }],
        ..Container::default()
    }));
    contained.spec.pins = [PinKind::Mount, PinKind::Secret, PinKind::Worktree]
        .map(|kind| Pin {
            kind,
            given: "/src".into(),
            path: "/src".into(),
            device: 1,
            filesystem: 2,
            inode: 3,
            name: Some("key".into()),
            unused: Some("why".into()),
        })
        .to_vec();
    contained.spec.mounts = vec![Mounted {
        source: "/src".into(),
        target: "/dst".into(),
        read_only: true,
        by: MountedBy::User,
        what: "yours".into(),
    }];
    let mut boxed = plain.clone();
    boxed.spec.sandbox = Some(Box::new(Sandbox { read: vec!["/usr".into()], ..Sandbox::default() }));
    boxed.spec.enter = vec!["wharf-sandbox".into()];
    [plain, held, contained, boxed].iter().map(json).collect()
}

fn exits() -> Vec<Vec<u8>> {
    let code = ExitRecord { code: Some(1), started: Millis(1), ended: Millis(2), ..ExitRecord::default() };
    let signal = ExitRecord {
        signal: Some(9),
        oom: true,
        limit: Some("cpu".into()),
        by: Some("somebody".into()),
        reason: Reason::Killed,
        log_end: Offset(7),
        leftovers: 1,
        survivors: 1,
        unsure: false,
        ..ExitRecord::default()
    };
    [ExitRecord::default(), code, signal].iter().map(json).collect()
}

/// An index as the writer makes it, its length and the offset before it, and how many segments the target makes of it.
fn indexes() -> Vec<Vec<u8>> {
    let root = tempfile::tempdir().expect("a directory");
    let mut seeds = Vec::new();
    for marks in [1_u16, 9, 60] {
        let dir = root.path().join(marks.to_string());
        let mut writer = Writer::open(&dir, Retention::default()).expect("a log");
        for n in 0..marks {
            let mark = match n % 4 {
                0 => Mark::Resize(Size { cols: 80 + n, rows: 24 }),
                1 => Mark::Stream(Stream::Stderr),
                2 => Mark::Stream(Stream::Stdout),
                _ => Mark::Restart(u32::from(n)),
            };
            writer.mark(mark, u64::from(n) * 1_000).expect("it has room");
            writer.append(format!("line {n} ä\r\n").as_bytes()).expect("it has room");
            writer.tick(u64::from(n) * 1_000_000).expect("it has room");
        }
        let read = |end: &str| fs::read(dir.join(format!("{:020}.{end}", 0))).expect("a file");
        let (index, output) = (read("idx"), read("log"));
        assert!(index.len() > 24 && !output.is_empty());
        // With a header of the target's own, with this one, and in two segments: before, at and after the end.
        for (how, index) in
            [(0, &index[24..]), (1, &index[..]), (2, &index[24..]), (34, &index[24..]), (66, &index[24..])]
        {
            let [low, high] = (index.len() as u16).to_le_bytes();
            seeds.push([&[low, high, 0, how], index, &output].concat());
        }
    }
    seeds
}

/// A tree as we pack it, and archives that only others make. The first byte says what becomes of the names.
fn archives() -> Vec<Vec<u8>> {
    let root = tempfile::tempdir().expect("a directory");
    let tree = root.path().join("tree");
    fs::create_dir_all(tree.join("in/deep")).expect("a directory");
    fs::write(tree.join("file"), "seven b").expect("a file");
    fs::write(tree.join("in/empty"), "").expect("a file");
    fs::write(tree.join("in/deep").join("long".repeat(30)), "x").expect("a file");
    symlink("file", tree.join("link")).expect("a link");
    let mut seeds = Vec::new();
    for path in [&tree, &tree.join("file"), &tree.join("in")] {
        let mut bytes = Vec::new();
        let source = PackSource::open(path, false).expect("it is there");
        pack(&mut bytes, &source, OsStr::new("tree"), How::default(), |_| ()).expect("it can be packed");
        for (number, names) in
            [EntryNames::Kept, EntryNames::Become("name".into()), EntryNames::Inside].into_iter().enumerate()
        {
            // A file has nothing inside.
            if number == 2 && path.is_file() {
                continue;
            }
            let to = root.path().join(format!("to-{}", seeds.len()));
            fs::create_dir(&to).expect("a directory");
            unpack(&bytes[..], Dir::open(&to).expect("it is there"), &to, names, |_| ())
                .expect("it is sound");
            seeds.push([&[number as u8], &bytes[..]].concat());
        }
    }
    let entries: [(EntryType, &str, &str); 12] = [
        (EntryType::Regular, "a", ""),
        (EntryType::Link, "hard", "a"),
        (EntryType::Link, "hard", "../outside/file"),
        (EntryType::Symlink, "way", "../outside"),
        (EntryType::Symlink, "way", "/dev/shm"),
        (EntryType::Regular, "way/file", ""),
        (EntryType::Directory, "way", ""),
        (EntryType::Directory, "way/more", ""),
        (EntryType::Link, "way/hard", "way/file"),
        (EntryType::Regular, "../outside/file", ""),
        (EntryType::Fifo, "pipe", ""),
        (EntryType::Char, "device", ""),
    ];
    let archive = |entries: &[(EntryType, &str, &str)]| {
        let mut builder = Builder::new(vec![0]);
        for (kind, name, target) in entries {
            let mut header = Header::new_gnu();
            // Past the checks of the builder, which would not write what leads outside.
            header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
            header.as_mut_bytes()[157..157 + target.len()].copy_from_slice(target.as_bytes());
            header.set_entry_type(*kind);
            header.set_mode(0o755);
            let data: &[u8] = if *kind == EntryType::Regular { b"evil" } else { b"" };
            header.set_size(data.len() as u64);
            header.set_cksum();
            builder.append(&header, data).expect("memory");
        }
        builder.into_inner().expect("memory")
    };
    for at in 0..entries.len() {
        seeds.push(archive(&entries[at..=at]));
        for before in 0..at {
            seeds.push(archive(&[entries[before], entries[at]]));
        }
    }
    seeds.push(archive(&entries));
    let mut builder = Builder::new(vec![0]);
    builder.append_pax_extensions([("path", &b"by/pax"[..]), ("size", b"4")]).expect("memory");
    let mut header = Header::new_ustar();
    header.set_size(4);
    header.set_mode(0o600);
    builder.append_data(&mut header, "plain", &b"text"[..]).expect("memory");
    seeds.push(builder.into_inner().expect("memory"));
    seeds
}

/// Each section of each profile that comes with Wharf as a project's change, and what a project may say by itself.
fn projects() -> Vec<Vec<u8>> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../agents/profiles");
    let mut files: Vec<PathBuf> =
        fs::read_dir(dir).expect("they are there").map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    let mut seeds: Vec<Vec<u8>> = [
        "[agents.claude.keys]\npause = 500\n[agents.claude.queue]\nwhile_working = false\nhold_second = true\n",
        "[agents.claude.text]\nbang = \"refuse\"\nslash = \"refuse\"\n",
        "[agents.shell.rule.mine]\nin = \"screen\"\nmatch = \"really\"\nstate = \"asking\"\n",
        "[agents.mine]\nbase = \"claude\"\nprograms = [\"mine\"]\n[agents.mine.env]\nset = { A = \"b\" }\n",
        "[agents.generic.rule.evil]\nstate = \"idle\"\nin = \"screen\"\nmatch = '(x|.|\\w)*(x|.){0,60}z$'\n",
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec();
    for file in files {
        let name = file.file_stem().expect("a name").to_string_lossy().into_owned();
        let profile: toml::Table =
            toml::from_str(&fs::read_to_string(&file).expect("it is there")).expect("it is sound");
        for (section, value) in profile {
            let one = toml::Table::from_iter([(section, value)]);
            let agents = toml::Table::from_iter([(name.clone(), one.into())]);
            let text = toml::to_string(&toml::Table::from_iter([("agents".to_owned(), agents.into())]))
                .expect("it can be written");
            seeds.push(text.into_bytes());
        }
    }
    assert!(Profiles::built_in().iter().count() < seeds.len());
    seeds
}
