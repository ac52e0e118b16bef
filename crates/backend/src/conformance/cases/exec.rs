//! Further commands in a session's place and tree.

use std::io::{PipeReader, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use wharf_model::{Code, Text};

use crate::ExecRequest;
use crate::conformance::running::absent;
use crate::conformance::{LONG, Place, Running, SOON, carrying, none_carry, until, within};

struct Ends {
    input: std::io::PipeWriter,
    output: PipeReader,
    errors: PipeReader,
}

/// Its output, error, input, directory, variables and code are its own.
pub async fn a_command_runs_beside(place: Arc<Place>) {
    let session = place.sleeper().await;
    let argv = place.shell("echo \"$MORE\"; echo err >&2; cat; exit 9").argv;
    let (request, mut ends) = request(&place, &session, argv);
    if !place.can().exec {
        return absent("a further command", session.connection.exec(request).await);
    }
    ends.input.write_all(b"typed").expect("a pipe takes a little");
    let Ends { input, output, errors } = ends;
    drop(input);
    let code = within(LONG, "a further command", session.connection.exec(request)).await;
    assert_eq!(code.expect("it runs"), 9);
    assert_eq!(all(output).await, "more\ntyped");
    assert_eq!(all(errors).await, "err\n");
    assert!(session.connection.status().borrow().exit.is_none(), "the session goes on");
    assert_eq!(session.stop(Duration::ZERO).await.log_end.0, 0, "its output is not the session's");
}

/// A signal is told as a shell would tell it, and what cannot run is refused.
pub async fn codes_are_those_of_a_shell(place: Arc<Place>) {
    let session = place.sleeper().await;
    let (killed, _ends) = request(&place, &session, place.shell("kill -9 $$; sleep 60").argv);
    if !place.can().exec {
        return absent("a further command", session.connection.exec(killed).await);
    }
    let code = within(LONG, "a further command", session.connection.exec(killed)).await;
    assert_eq!(code.expect("it runs"), 137);
    let (missing, _ends) = request(&place, &session, vec![place.tools().missing.clone()]);
    let refused = within(LONG, "a refusal", session.connection.exec(missing)).await;
    assert_eq!(refused.expect_err("it is missing").code, Code::CommandNotFound);
}

/// It ends with the session.
pub async fn it_ends_with_the_session(place: Arc<Place>) {
    let session = place.sleeper().await;
    let (mut request, ends) =
        request(&place, &session, place.shell("echo up; trap '' TERM HUP; sleep 600; sleep 600").argv);
    if !place.can().exec {
        return absent("a further command", session.connection.exec(request).await);
    }
    let mark = format!("{}-exec", session.token);
    request.env.push(("MARK".into(), mark.as_str().into()));
    let connection = Arc::clone(&session.connection);
    let running = tokio::spawn(async move { connection.exec(request).await });
    if place.tools().host {
        until("the further command runs", async || !carrying(&mark).is_empty()).await;
    } else {
        let mut up = [0; 3];
        let mut output = ends.output;
        let read = tokio::task::spawn_blocking(move || output.read_exact(&mut up));
        within(LONG, "its output", read).await.expect("no panic").expect("it prints");
    }
    session.stop(Duration::from_millis(100)).await;
    within(SOON, "the further command", running).await.expect("no panic").ok();
    if place.tools().host {
        none_carry(&mark);
    }
}

/// A session that is over is no place.
pub async fn not_after_the_end(place: Arc<Place>) {
    let session = place.sleeper().await;
    let Some(argv) = place.tools().exit(0) else { return place.need(false, "a shell") };
    let (request, _ends) = request(&place, &session, argv);
    if !place.can().exec {
        return absent("a further command", session.connection.exec(request).await);
    }
    session.stop(Duration::ZERO).await;
    let refused = within(LONG, "a refusal", session.connection.exec(request)).await;
    assert_eq!(refused.expect_err("it has ended").code, Code::Ended);
}

fn request(place: &Place, session: &Running, argv: Vec<Text>) -> (ExecRequest, Ends) {
    let (stdin, input) = std::io::pipe().expect("a pipe");
    let (output, stdout) = std::io::pipe().expect("a pipe");
    let (errors, stderr) = std::io::pipe().expect("a pipe");
    let mut env = place.launch(argv.clone()).env;
    env.retain(|(name, _)| name.as_bytes() != b"WHARF_TOKEN");
    env.push(("WHARF_TOKEN".into(), session.token.as_str().into()));
    env.push(("MORE".into(), "more".into()));
    let request = ExecRequest {
        argv,
        env,
        dir: session.ticket.spec.dir.clone(),
        stdio: [stdin.into(), stdout.into(), stderr.into()],
        tty: false,
    };
    (request, Ends { input, output, errors })
}

async fn all(mut reader: PipeReader) -> String {
    let read = tokio::task::spawn_blocking(move || {
        let mut text = String::new();
        reader.read_to_string(&mut text).map(|_| text)
    });
    within(LONG, "the end of its output", read).await.expect("no panic").expect("it can be read")
}
