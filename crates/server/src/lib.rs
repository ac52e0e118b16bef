//! The daemon: the engine behind HTTP/1.1 and JSON on a Unix socket.
//!
//! - [`run`] is `wharf daemon run`, [`run_with`] the same with other backends; [`Daemon`] is the same for a program that has a runtime of its own.
//! - [`EventsSocket`] serves `WHARF_EVENTS` alone, for a program that embeds the engine without the daemon.
//! - A request passes the gate (same user, host, no origin), then a route. Routes are the only way to the engine.
//! - Places beside this host, and environments, are features, each on unless told otherwise: `docker` (Docker and Podman), `remote-engines`
//!   (those of other hosts), `tmux`, `nix`, `sandbox`. One that was left out answers *unsupported*: this build has none.
//! - Changes are carried out to their end though the asker hangs up; waits end with the daemon.
//!
//! | route | does |
//! |---|---|
//! | `GET /v1/daemon`, `POST /v1/daemon/stop` | the daemon itself |
//! | `GET /v1/sessions?group=&label=K=V&name=&all=&brief=`, `POST /v1/sessions` | list, start |
//! | `GET /v1/sessions/{key}` | one session |
//! | `POST /v1/{stop,kill,signal,restart,remove}` | one operation on many sessions |
//! | `POST /v1/sessions/{key}/{write,close-input,resize,rename,env,pipe}` | input and changes; `write?within_ms=` |
//! | `GET /v1/sessions/{key}/{env,stats,wait,log}` | `wait?timeout_ms=`, `log?from=&follow=` |
//! | `POST /v1/sessions/{key}/{messages,ask}`, `GET …/messages` | `messages?wait=&timeout_ms=`: a message and its receipt |
//! | `POST /v1/sessions/{key}/retry?wait=&timeout_ms=` | an agent whose last turn failed goes on; the receipt of the message |
//! | `GET /v1/messages/{id}?wait=&timeout_ms=`, `POST /v1/messages/{id}/cancel` | what becomes of it |
//! | `POST /v1/sessions/{key}/{interrupt,escape,keys,approve,deny}`, `GET …/question` | an agent's turn and its questions |
//! | `GET /v1/sessions/{key}/screen?what=&lines=&format=`, `…/screen/changes?since=&wait_ms=`, `…/repaint` | what stands on the screen |
//! | `GET /v1/sessions/{key}/{explain,until,events}` | `until?until=&timeout_ms=`, `events?after=&follow=` (lines, or SSE) |
//! | `GET /v1/agents`, `POST /v1/agents/{name}/hooks`, `POST /v1/hook` | agents, and what they tell |
//! | `GET /v1/backends`, `POST /v1/gc`, `GET /v1/doctor` | the instance |
//! | `POST /v1/environments/prepare` | makes a spec's dev shell ready; one step a line |
//!
//! A `{key}` is a name or an id; of a name in a group it is `GROUP%2FNAME`.
//!
//! `GET …/log` answers with raw bytes, contiguous from the offset that was asked for. Where bytes are gone the
//! answer ends with the trailer `wharf-gap: FROM-TO` (ask again from `TO`), and after a failure with
//! `wharf-problem`, as JSON. A client that does not send `TE: trailers` sees the answer break off instead, so
//! that nothing is ever skipped silently.

mod app;
mod backends;
mod credentials;
mod daemon;
mod events_socket;
mod gate;
mod input;
#[cfg(any(test, not(all(feature = "tmux", feature = "docker", feature = "nix", feature = "sandbox"))))]
mod left_out;
mod linux;
mod list;
mod listener;
mod notify;
mod own_log;
mod ready;
mod refusal;
mod rights;
mod room;
mod route_rights;
mod routes;
mod serve;
mod settings;
mod sidecar;
mod stream;
mod work;

pub use daemon::{Daemon, Process, Stopper, run, run_with};
pub use events_socket::EventsSocket;
