//! `wharf port`: shows where a session's ports are reached from this host.

use wharf_model::{Code, Failure, Published};

use crate::dispatch::Serve;
use crate::trouble::Done;
use crate::{call, output};

/// Arguments of `port`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session, by name or id
    name: String,
    /// Only where this port is: its number inside, with /udp where it is one of those, or the variable of a reserved one
    #[arg(value_name = "PORT[/udp]")]
    port: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args, _: Serve) -> Done {
    let mut ports = call::again(async |client| client.ports(&args.name).await)?;
    if let Some(wanted) = &args.port {
        ports.retain(|port| is(port, wanted));
        if ports.is_empty() {
            let message = format!("port {wanted} of session {} is reached from nowhere", args.name);
            return Err(Failure::new(Code::NotFound, message)
                .hint(format!("`wharf port {}` lists those that are", args.name))
                .into());
        }
    }
    if args.json {
        output::json(&ports)?;
        return Ok(0);
    }
    if ports.is_empty() {
        output::note(format!("no port of {} is published or reserved", args.name));
    }
    let lines = ports.iter().map(|port| match &args.port {
        Some(_) => format!("{}\n", address(port)),
        None => line(port),
    });
    output::text(&lines.collect::<String>())?;
    Ok(0)
}

fn is(port: &Published, wanted: &str) -> bool {
    let (number, protocol) = wanted.split_once('/').unwrap_or((wanted, "tcp"));
    port.variable.as_deref() == Some(wanted)
        || (number.parse() == Ok(port.inside) && port.protocol.eq_ignore_ascii_case(protocol))
}

fn line(port: &Published) -> String {
    let variable = port.variable.as_ref().map(|name| format!(" as {name}")).unwrap_or_default();
    format!("{}/{} -> {}{variable}\n", port.inside, port.protocol, address(port))
}

fn address(port: &Published) -> String {
    let (address, number) = (&port.address, port.port);
    if address.contains(':') { format!("[{address}]:{number}") } else { format!("{address}:{number}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_found_by_number_protocol_or_variable() {
        let port = |inside, protocol: &str, address: &str, variable: Option<&str>| Published {
            inside,
            protocol: protocol.to_owned(),
            address: address.to_owned(),
            port: 4000,
            variable: variable.map(str::to_owned),
        };
        let web = port(80, "tcp", "127.0.0.1", None);
        assert!(is(&web, "80") && is(&web, "80/tcp") && is(&web, "80/TCP"));
        assert!(!is(&web, "80/udp") && !is(&web, "8") && !is(&web, "x"));
        assert_eq!(line(&web), "80/tcp -> 127.0.0.1:4000\n");
        let own = port(4000, "tcp", "::1", Some("PORT"));
        assert!(is(&own, "PORT") && is(&own, "4000"));
        assert_eq!(line(&own), "4000/tcp -> [::1]:4000 as PORT\n");
    }
}
