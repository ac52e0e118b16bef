//! Reserves TCP ports for sessions, so that no two live sessions have the same.

use std::collections::HashMap;
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use wharf_model::{Code, Failure, Port, SessionId};

use crate::Result;

/// How often an automatic port is looked for before that is given up.
const MAX_PORT_TRIES: usize = 64;

/// Which ports are reserved for which session: no two live sessions have the same.
#[derive(Default)]
pub(crate) struct Ports {
    table: Mutex<HashMap<u16, SessionId>>,
}

impl Ports {
    fn lock(&self) -> MutexGuard<'_, HashMap<u16, SessionId>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves every port of a session and fills in the automatic ones. All or none.
    pub(crate) fn reserve(&self, id: &SessionId, ports: &mut [Port]) -> Result<()> {
        let done = ports.iter_mut().try_for_each(|port| {
            if port.number == 0 {
                port.number = self.automatic(id)?;
                return Ok(());
            }
            self.fixed(id, port.number)
        });
        if done.is_err() {
            self.free(id);
        }
        done
    }

    /// Notes the ports of a session that was found again.
    pub(crate) fn hold(&self, id: &SessionId, ports: &[Port]) {
        let mut table = self.lock();
        for port in ports.iter().filter(|port| port.number != 0) {
            table.entry(port.number).or_insert_with(|| id.clone());
        }
    }

    /// Frees a session's ports.
    pub(crate) fn free(&self, id: &SessionId) {
        self.lock().retain(|_, of| of != id);
    }

    fn fixed(&self, id: &SessionId, number: u16) -> Result<()> {
        if let Some(owner) = self.lock().get(&number) {
            if owner == id {
                return Ok(());
            }
            return Err(Failure::new(
                Code::Exhausted,
                format!("port {number} is reserved for session {owner}"),
            )
            .hint("`-p auto` takes a free one"));
        }
        if !can_bind(number) {
            return Err(Failure::new(Code::Exhausted, format!("port {number} is in use"))
                .hint("`-p auto` takes a free one"));
        }
        self.lock().insert(number, id.clone());
        Ok(())
    }

    fn automatic(&self, id: &SessionId) -> Result<u16> {
        for _ in 0..MAX_PORT_TRIES {
            let number =
                lingering().map_err(|error| Failure::system("cannot reserve a port on 127.0.0.1", &error))?;
            let mut table = self.lock();
            if let std::collections::hash_map::Entry::Vacant(free) = table.entry(number) {
                free.insert(id.clone());
                return Ok(number);
            }
        }
        Err(Failure::new(Code::Exhausted, "no free port was found on 127.0.0.1"))
    }
}

/// Whether a server could listen there now.
pub(crate) fn can_bind(number: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, number)).is_ok()
}

/// A port in the state TIME_WAIT: the kernel hands it to nobody who does not ask for it by number, and a server
/// that sets SO_REUSEADDR, as they all do, can listen on it.
fn lingering() -> std::io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address: SocketAddr = listener.local_addr()?;
    let mut client = TcpStream::connect_timeout(&address, Duration::from_secs(1))?;
    client.set_read_timeout(Some(Duration::from_secs(1)))?;
    let (server, _) = listener.accept()?;
    // The side that closes first is the one that waits, so it must be the one with the port.
    drop(server);
    let _ = client.read(&mut [0])?;
    Ok(address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u64) -> SessionId {
        SessionId::new(wharf_model::Millis(1), number)
    }

    fn port(number: u16) -> Port {
        Port { variable: "PORT".to_owned(), number }
    }

    #[test]
    fn automatic_ports_differ_and_can_be_listened_on() {
        let ports = Ports::default();
        let mut seen = std::collections::HashSet::new();
        for session in 0..50 {
            let mut wanted = [port(0), port(0)];
            ports.reserve(&id(session), &mut wanted).unwrap();
            assert!(seen.insert(wanted[0].number) && seen.insert(wanted[1].number), "a port was given twice");
            assert!(can_bind(wanted[0].number));
        }
    }

    #[test]
    fn a_reserved_port_is_refused_and_nothing_of_the_request_stays() {
        let ports = Ports::default();
        let mut first = [port(0)];
        ports.reserve(&id(1), &mut first).unwrap();
        let mut second = [port(0), port(first[0].number)];
        assert_eq!(ports.reserve(&id(2), &mut second).unwrap_err().code, Code::Exhausted);
        assert_eq!(ports.lock().len(), 1);
        ports.free(&id(1));
        ports.reserve(&id(2), &mut [port(first[0].number)]).unwrap();
    }

    #[test]
    fn a_port_in_use_is_refused() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let number = listener.local_addr().unwrap().port();
        assert_eq!(Ports::default().reserve(&id(1), &mut [port(number)]).unwrap_err().code, Code::Exhausted);
    }
}
