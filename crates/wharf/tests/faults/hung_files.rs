//! Files that never answer, and what is no file in the place of the configuration: they cost whoever asks for them, and nobody
//! else.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wharf_backend::conformance::left_out;

use crate::ground::Ground;
use crate::support::{kill, lives, until};
use crate::tmpfs;

/// A file system whose server answers the first greeting and nothing else. It is gone once this is dropped.
struct Hung(File);

impl Hung {
    fn mount(at: &Path) -> Self {
        let mut device = OpenOptions::new().read(true).write(true).open("/dev/fuse").expect("/dev/fuse");
        let options = format!("fd={},rootmode=40000,user_id=0,group_id=0", device.as_raw_fd());
        let (at, options) = (CString::new(at.as_os_str().as_bytes()), CString::new(options));
        let (at, options) = (at.expect("no NUL"), options.expect("no NUL"));
        // SAFETY: strings that live across the call.
        #[expect(unsafe_code, reason = "the library has no word for this call without a feature")]
        let mounted = unsafe {
            libc::mount(c"hung".as_ptr(), at.as_ptr(), c"fuse".as_ptr(), 0, options.as_ptr().cast())
        };
        assert_eq!(mounted, 0, "{}", std::io::Error::last_os_error());
        let mut greeting = vec![0; 1 << 16];
        let count = device.read(&mut greeting).expect("the kernel greets");
        assert!(count > 16, "a greeting has a number");
        // The head (length, no error, the greeting's number), then version 7.22 and no wishes.
        let mut answer = 40_u32.to_ne_bytes().to_vec();
        answer.extend(0_i32.to_ne_bytes());
        answer.extend(&greeting[8..16]);
        for number in [7_u32, 22, 0, 0, 0, 4096] {
            answer.extend(number.to_ne_bytes());
        }
        device.write_all(&answer).expect("the kernel hears");
        Self(device)
    }

    /// Whether somebody waits for an answer.
    fn is_asked(&self) -> bool {
        let mut fds = [PollFd::new(&self.0, PollFlags::IN)];
        poll(&mut fds, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }

    /// Says, while somebody looks, that this is a directory and that nothing is in it; the kernel keeps that.
    fn be_looked_at(&mut self, look: impl FnOnce() + Send + 'static) {
        let looking = std::thread::spawn(look);
        while !looking.is_finished() {
            if self.is_asked() {
                self.answer(|question| match question {
                    GETATTR => (0, [&HOUR.to_ne_bytes()[..], &[0; 8], &a_directory()].concat()),
                    // No file has the number 0: the name is kept as one that is not there.
                    LOOKUP => (0, [&[0; 16][..], &HOUR.to_ne_bytes(), &[0; 104]].concat()),
                    _ => (-libc::ENOSYS, Vec::new()),
                });
            }
        }
        looking.join().expect("it looked");
    }

    /// Says to all who wait that there is no such question, which lets them in.
    fn let_in(&mut self) {
        while self.is_asked() {
            self.answer(|_| (-libc::ENOSYS, Vec::new()));
        }
    }

    /// Answers one question, known by its number: an error, or what was asked for.
    fn answer(&mut self, with: impl FnOnce(u32) -> (i32, Vec<u8>)) {
        let mut question = vec![0; 1 << 16];
        let count = self.0.read(&mut question).expect("a question");
        assert!(count > 16, "a question has a number");
        let (error, body) = with(u32::from_ne_bytes(question[4..8].try_into().expect("four bytes")));
        let mut answer = (16 + body.len() as u32).to_ne_bytes().to_vec();
        answer.extend(error.to_ne_bytes());
        answer.extend(&question[8..16]);
        answer.extend(body);
        // Whoever was killed meanwhile needs no answer.
        let _ = self.0.write_all(&answer);
    }
}

/// The kernel's questions, by its numbers for them.
const LOOKUP: u32 = 1;
const GETATTR: u32 = 3;
/// How long the kernel keeps an answer, in seconds.
const HOUR: u64 = 3600;

/// What the kernel is told of a directory: its number, then sizes and times, then the mode.
fn a_directory() -> [u8; 88] {
    let mut attributes = [0; 88];
    attributes[0] = 1;
    attributes[60..64].copy_from_slice(&(libc::S_IFDIR | 0o755).to_ne_bytes());
    attributes
}

#[test]
fn a_project_whose_files_never_answer_costs_its_caller_alone() {
    beside_hung_files("a_project_whose_files_never_answer_costs_its_caller_alone", |ground, hung, at| {
        costs_its_caller_alone(ground, hung, &["-w", at]);
        let daemon = ground.locked_by().expect("a daemon");
        ground.ok(&["daemon", "stop"]);
        assert!(until(|| ground.locked_by() != Some(daemon)), "the daemon waits on");
    });
}

#[test]
fn a_path_for_a_sandbox_that_never_answers_costs_its_caller_alone() {
    beside_hung_files(
        "a_path_for_a_sandbox_that_never_answers_costs_its_caller_alone",
        |ground, hung, at| {
            costs_its_caller_alone(ground, hung, &["--sandbox", "--sandbox-write", &format!("{at}/below")]);
        },
    );
}

/// Runs a test beside a live session and files that never answer, which are mounted in a namespace of the test's own.
fn beside_hung_files(test: &str, work: impl FnOnce(&Ground, &Hung, &str)) {
    if File::open("/dev/fuse").is_err() {
        left_out("there is no /dev/fuse for us");
    }
    tmpfs::in_a_namespace(&format!("hung_files::{test}"), || {
        let ground = Ground::new();
        ground.start("live", &[], &["cat"]);
        let at = ground.home().join("hung");
        fs::create_dir(&at).expect("the home is ours");
        let hung = Hung::mount(&at);
        work(&ground, &hung, at.to_str().expect("UTF-8"));
    });
}

/// Starts a session that has to look at the hung files. Meanwhile everybody else is answered, and then it is told.
fn costs_its_caller_alone(ground: &Ground, hung: &Hung, options: &[&str]) {
    let args: Vec<&str> =
        ["run", "-d", "--name", "stuck"].iter().chain(options).chain(&["--", "true"]).copied().collect();
    let mut asker = ask(ground, &args);
    assert!(until(|| hung.is_asked()), "nobody looks at the files");
    assert!(ground.ok(&["ls"]).contains("live"));
    ground.ok(&["write", "live", "hello\r"]);
    ground.start("other", &[], &["cat"]);
    let ended = until(|| asker.try_wait().is_ok_and(|ended| ended.is_some()));
    assert!(ended, "the asker waits on");
    let mut said = String::new();
    asker.stderr.take().expect("a pipe").read_to_string(&mut said).expect("it is over");
    assert!(said.contains("could not be looked at within"), "{said}");
}

#[test]
fn a_command_whose_holder_is_killed_at_the_gate_never_runs() {
    in_a_hung_directory("a_command_whose_holder_is_killed_at_the_gate_never_runs", |ground, hung, ran| {
        let (holder, child) = (ground.holder("one"), command(ground));
        kill(holder);
        assert!(until(|| !lives(holder)), "the holder lives on");
        // It was told that it may run before its holder died, and hears of it now.
        hung.let_in();
        assert!(until(|| !lives(child)), "the child waits on");
        assert_eq!(fs::read_to_string(ran).expect("it ran once"), "ran\n");
    });
}

#[test]
fn a_start_in_a_directory_that_hangs_goes_with_its_asker() {
    in_a_hung_directory("a_start_in_a_directory_that_hangs_goes_with_its_asker", |ground, hung, ran| {
        let (holder, child) = (ground.holder("one"), command(ground));
        ground.kill_daemon();
        assert!(until(|| !lives(holder) && !lives(child)), "a start that nobody waits for goes on");
        hung.let_in();
        assert_eq!(fs::read_to_string(ran).expect("it ran once"), "ran\n");
    });
}

/// Starts a session again whose directory hangs by now: its holder has written the ticket, and the command waits for the directory.
fn in_a_hung_directory(test: &str, work: impl FnOnce(&Ground, &mut Hung, &Path)) {
    if File::open("/dev/fuse").is_err() {
        left_out("there is no /dev/fuse for us");
    }
    tmpfs::in_a_namespace(&format!("hung_files::{test}"), || {
        let ground = Ground::new();
        let (at, ran) = (ground.home().join("hung"), ground.home().join("ran"));
        fs::create_dir(&at).expect("the home is ours");
        // Without a terminal: the end of one would end the command too.
        let script = format!("echo ran >> {}; exec sleep 1000", ran.display());
        ground.start("one", &["--no-tty", "-w", at.to_str().expect("UTF-8")], &["sh", "-c", &script]);
        assert!(until(|| ran.exists()), "it never ran");
        let mut hung = Hung::mount(&at);
        // What the daemon looks at before a start is known by then, so that it is the command's child that waits.
        hung.be_looked_at(move || {
            for path in [at.clone(), at.join("wharf.toml"), at.join(".git")] {
                let _ = fs::metadata(path);
            }
        });
        let mut asker = ask(&ground, &["restart", "one"]);
        assert!(until(|| hung.is_asked() && ground.ticket("one")["run"] == 2), "{}", ground.ticket("one"));
        work(&ground, &mut hung, &ran);
        assert!(until(|| asker.try_wait().is_ok_and(|ended| ended.is_some())), "the asker waits on");
    });
}

/// The pid of the command in the ticket of the session.
fn command(ground: &Ground) -> i32 {
    ground.ticket("one")["command"]["pid"].as_i64().expect("a command") as i32
}

#[test]
fn what_stands_in_the_place_of_the_configuration_is_not_waited_for() {
    for way in ["a pipe", "a link to a pipe", "a directory", "a device", "too much"] {
        let ground = Ground::new();
        ground.start("live", &[], &["cat"]);
        let config = ground.home().join(".config/wharf");
        fs::create_dir_all(config.join("profiles")).expect("the home is ours");
        let pipe = |at: &Path| rustix::fs::mkfifoat(rustix::fs::CWD, at, rustix::fs::Mode::RWXU).unwrap();
        for file in [config.join("config.toml"), config.join("profiles/own.toml")] {
            match way {
                "a pipe" => pipe(&file),
                "a link to a pipe" => {
                    pipe(&file.with_extension("pipe"));
                    symlink(file.with_extension("pipe"), &file).unwrap();
                }
                "a directory" => fs::create_dir(&file).unwrap(),
                "a device" => symlink("/dev/zero", &file).unwrap(),
                _ => File::create(&file).unwrap().set_len(6 << 30).unwrap(),
            }
        }
        let mut asker = ask(&ground, &["run", "-d", "--name", "other", "--", "cat"]);
        assert!(until(|| asker.try_wait().is_ok_and(|ended| ended.is_some())), "{way}: the program waits on");
        let mut said = String::new();
        asker.stderr.take().expect("a pipe").read_to_string(&mut said).expect("it is over");
        assert!(said.contains("config.toml"), "{way}: {said}");
        // Its end makes the daemon look for who is to be notified.
        ground.ok(&["kill", "live"]);
        assert!(ground.ok(&["show", "live"]).contains("live"), "{way}");
        fs::remove_dir_all(config).expect("the home is ours");
    }
}

fn ask(ground: &Ground, args: &[&str]) -> Child {
    let mut command = ground.command(args);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().expect("wharf runs")
}
