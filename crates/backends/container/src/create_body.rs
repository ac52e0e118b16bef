//! Describes a new container to the engine: as closed as possible, and open where the spec says so.

pub(crate) mod checked_paths;
pub(crate) mod engine_sockets;
pub(crate) mod mounts;
pub(crate) mod user_ids;
pub(crate) mod worktree;

use std::collections::HashMap;

use bollard::models::{
    ContainerCreateBody, DeviceMapping, HostConfig, HostConfigLogConfig, Mount, PortBinding, PortMap,
};
use wharf_model::{Code, Container, Failure, Limits, Port, Publish, Ticket};

use crate::create_body::mounts::{HOLDER, ROOM, utf8};

/// The limit of processes where the spec names none: no agent needs more, and a fork bomb stops there.
const DEFAULT_MAX_PROCESSES: i64 = 4096;

/// How many relays of ours run beside a holder on another host.
const RELAY_PROCESSES: i64 = 3;

/// All that determines a new container.
pub(crate) struct CreatePlan<'a> {
    pub(crate) ticket: &'a Ticket,
    pub(crate) container: &'a Container,
    /// The image by its id: its name may mean another one meanwhile.
    pub(crate) image: String,
    pub(crate) labels: HashMap<String, String>,
    pub(crate) mounts: Vec<Mount>,
    pub(crate) user: String,
    /// Whether another user than ours writes the session's files.
    pub(crate) other_user: bool,
    /// Whether the engine is on another host: then the holder waits to be called, instead of calling us.
    pub(crate) remote: bool,
    pub(crate) handshake_socket: &'a str,
}

impl CreatePlan<'_> {
    /// The request body that creates the container.
    pub(crate) fn create_body(self) -> Result<ContainerCreateBody, Failure> {
        let Self { ticket, container, image, labels, mounts, user, other_user, remote, handshake_socket } =
            self;
        let mut cmd =
            vec![if remote { "await" } else { "one" }.to_owned(), format!("{ROOM}/{handshake_socket}")];
        cmd.extend(other_user.then(|| "shared".to_owned()));
        let (exposed, bindings) = ports(container, &ticket.spec.ports);
        let limits = &ticket.spec.limits;
        let host = HostConfig {
            mounts: Some(mounts),
            tmpfs: Some(tmpfs(container)?),
            network_mode: container.network.clone(),
            port_bindings: Some(bindings),
            extra_hosts: container.host_gateway.then(|| vec!["host.docker.internal:host-gateway".to_owned()]),
            security_opt: Some(vec!["no-new-privileges".to_owned()]),
            cap_drop: Some(vec!["ALL".to_owned()]),
            cap_add: Some(capabilities(&container.cap_add)?),
            group_add: Some(container.group_add.clone()),
            devices: Some(
                container.devices.iter().map(|device| self::device(device)).collect::<Result<_, _>>()?,
            ),
            readonly_rootfs: Some(container.read_only),
            privileged: Some(false),
            // The holder reaps and forwards; another init before it would only hide it.
            init: Some(false),
            // The holder writes the log. What is left to say is said by its first frame.
            log_config: Some(HostConfigLogConfig { typ: Some("none".to_owned()), config: None }),
            ..limited(limits, if remote { 1 + RELAY_PROCESSES } else { 1 })
        };
        Ok(ContainerCreateBody {
            image: Some(image),
            hostname: Some(ticket.id.as_str().to_owned()),
            user: Some(user),
            entrypoint: Some(vec![HOLDER.to_owned()]),
            cmd: Some(cmd),
            // The command is told its own directory; the holder has none.
            working_dir: Some("/".to_owned()),
            labels: Some(labels),
            exposed_ports: Some(exposed),
            // What the holder itself takes to be polite, and to write its record. Podman gives no time to one that names none.
            stop_signal: Some("SIGTERM".to_owned()),
            stop_timeout: Some(10),
            host_config: Some(host),
            ..ContainerCreateBody::default()
        })
    }
}

fn limited(limits: &Limits, ours: i64) -> HostConfig {
    let memory = limits.memory.map(|bytes| bytes as i64);
    HostConfig {
        memory,
        // The limit includes swap.
        memory_swap: memory,
        nano_cpus: limits.cpus.map(|cpus| (cpus * 1e9) as i64),
        // The command's limit excludes the holder and the relays.
        pids_limit: Some(limits.pids.map_or(DEFAULT_MAX_PROCESSES, |pids| pids as i64 + ours)),
        ..HostConfig::default()
    }
}

/// The published ports: those of the spec, and those reserved for the session, which have the same number on both
/// sides.
fn ports(container: &Container, reserved: &[Port]) -> (Vec<String>, PortMap) {
    let (mut exposed, mut bindings) = (Vec::new(), PortMap::new());
    // Without a network of its own there is nothing to publish.
    if container.network.as_deref().is_some_and(|network| matches!(network, "none" | "host")) {
        return (exposed, bindings);
    }
    let same = |port: &Port| Publish { address: None, host: port.number, container: port.number, udp: false };
    for port in container.publish.iter().cloned().chain(reserved.iter().map(same)) {
        let key = format!("{}/{}", port.container, if port.udp { "udp" } else { "tcp" });
        let binding = PortBinding {
            host_ip: Some(port.address.clone().unwrap_or_else(|| "127.0.0.1".to_owned())),
            host_port: Some(if port.host == 0 { String::new() } else { port.host.to_string() }),
        };
        bindings.entry(key.clone()).or_default().get_or_insert_default().push(binding);
        exposed.push(key);
    }
    (exposed, bindings)
}

fn tmpfs(container: &Container) -> Result<HashMap<String, String>, Failure> {
    let mut all = HashMap::new();
    for entry in &container.tmpfs {
        let text = utf8(entry.as_path())?;
        let (path, options) = text.split_once(':').unwrap_or((text.as_str(), "mode=1777"));
        if !path.starts_with('/') {
            return Err(Failure::new(Code::Invalid, format!("{path:?} is not an absolute path")));
        }
        all.insert(path.to_owned(), options.to_owned());
    }
    Ok(all)
}

fn capabilities(names: &[String]) -> Result<Vec<String>, Failure> {
    let plain =
        |name: &&String| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    match names.iter().find(|name| !plain(name)) {
        Some(odd) => Err(Failure::new(Code::Invalid, format!("{odd:?} is not a capability"))),
        None => Ok(names.to_vec()),
    }
}

fn device(text: &str) -> Result<DeviceMapping, Failure> {
    let mut parts = text.split(':');
    let host = parts.next().filter(|path| path.starts_with('/'));
    let Some(host) = host else {
        return Err(Failure::new(Code::Invalid, format!("{text:?} is not a device"))
            .hint("a device is HOST[:CONTAINER[:rwm]]"));
    };
    Ok(DeviceMapping {
        path_on_host: Some(host.to_owned()),
        path_in_container: Some(parts.next().unwrap_or(host).to_owned()),
        cgroup_permissions: Some(parts.next().unwrap_or("rwm").to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_on_the_loopback_and_reserved_ones_have_one_number() {
        let named = |host, container| Publish { address: None, host, container, udp: false };
        let container = Container { publish: vec![named(0, 80), named(8080, 80)], ..Container::of("a") };
        let reserved = [Port { variable: "PORT".to_owned(), number: 4321 }];
        let (mut exposed, bindings) = ports(&container, &reserved);
        exposed.dedup();
        assert_eq!(exposed, ["80/tcp", "4321/tcp"]);
        let of = |key: &str| bindings[key].clone().unwrap_or_default();
        let numbers = |key: &str| of(key).into_iter().filter_map(|port| port.host_port).collect::<Vec<_>>();
        assert_eq!(
            (numbers("80/tcp"), numbers("4321/tcp")),
            (vec![String::new(), "8080".into()], vec!["4321".into()])
        );
        assert!(of("80/tcp").iter().all(|port| port.host_ip.as_deref() == Some("127.0.0.1")));
        let closed = Container { network: Some("none".to_owned()), ..container };
        assert!(ports(&closed, &reserved).1.is_empty());
    }

    #[test]
    fn what_is_no_device_or_capability_is_refused() {
        let mapping = device("/dev/kvm:/dev/x:r").unwrap();
        assert_eq!(mapping.path_in_container.as_deref(), Some("/dev/x"));
        assert_eq!(device("/dev/kvm").unwrap().cgroup_permissions.as_deref(), Some("rwm"));
        assert_eq!(device("kvm").unwrap_err().code, Code::Invalid);
        assert!(capabilities(&["NET_ADMIN".to_owned()]).is_ok());
        assert_eq!(capabilities(&["ALL,X".to_owned()]).unwrap_err().code, Code::Invalid);
    }
}
