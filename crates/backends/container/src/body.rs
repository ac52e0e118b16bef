//! What a container is made of: closed as far as it goes, and opened where the spec says so.

use std::collections::HashMap;

use bollard::models::{
    ContainerCreateBody, DeviceMapping, HostConfig, HostConfigLogConfig, Mount, PortBinding, PortMap,
};
use wharf_model::{Code, Container, Failure, Limits, Ticket};

use crate::mounts::{HOLDER, ROOM, utf8};

/// How many processes a container may have that names no number: no agent needs more, and a fork bomb stops there.
const PIDS: i64 = 4096;

/// What the container of a session is made of.
pub(crate) struct Plan<'a> {
    pub(crate) ticket: &'a Ticket,
    pub(crate) container: &'a Container,
    pub(crate) labels: HashMap<String, String>,
    pub(crate) mounts: Vec<Mount>,
    pub(crate) user: String,
    /// Whether another user than ours writes the session's files.
    pub(crate) shared: bool,
    pub(crate) birth: &'a str,
}

impl Plan<'_> {
    /// The engine's words for it.
    pub(crate) fn body(self) -> Result<ContainerCreateBody, Failure> {
        let Self { ticket, container, labels, mounts, user, shared, birth } = self;
        let mut cmd = vec!["one".to_owned(), format!("{ROOM}/{birth}")];
        cmd.extend(shared.then(|| "shared".to_owned()));
        let (exposed, bindings) = ports(container);
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
            ..limited(limits)
        };
        Ok(ContainerCreateBody {
            image: Some(container.image.clone()),
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

fn limited(limits: &Limits) -> HostConfig {
    let memory = limits.memory.map(|bytes| bytes as i64);
    HostConfig {
        memory,
        // No more with swap than without.
        memory_swap: memory,
        nano_cpus: limits.cpus.map(|cpus| (cpus * 1e9) as i64),
        // The holder counts too, and is not the command's.
        pids_limit: Some(limits.pids.map_or(PIDS, |pids| pids as i64 + 1)),
        ..HostConfig::default()
    }
}

fn ports(container: &Container) -> (Vec<String>, PortMap) {
    let (mut exposed, mut bindings) = (Vec::new(), PortMap::new());
    for port in &container.publish {
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
