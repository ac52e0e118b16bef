//! What cannot be kept is refused before anything runs.

use wharf_backend::Environment;
use wharf_model::{Capabilities, Code, Network};
use wharf_sandbox::{Guarded, SandboxEnvironment};

use crate::support::Ground;

#[tokio::test]
async fn what_cannot_be_is_refused() {
    let mut ground = Ground::new();
    assert_eq!(ground.apply(&["no-such-command"]).await.unwrap_err().code, Code::CommandNotFound);
    ground.sandbox.read = vec!["/no/such/path".into()];
    let failure = ground.apply(&["true"]).await.unwrap_err();
    assert_eq!(failure.code, Code::Invalid);
    assert!(failure.message.contains("/no/such/path"), "{}", failure.message);
    ground.sandbox.read = vec!["relative".into()];
    assert_eq!(ground.apply(&["true"]).await.unwrap_err().code, Code::Invalid);
    ground.sandbox.read.clear();

    let environment = ground.environment();
    let place = Capabilities { isolation: true, ..Capabilities::default() };
    let failure = environment.apply(ground.launch(&["true"]), &place).await.unwrap_err();
    assert_eq!(failure.code, Code::Unsupported);

    let broken = SandboxEnvironment::new("/bin/false".into(), Guarded::default());
    let failure = broken.apply(ground.launch(&["true"]), &Capabilities::default()).await.unwrap_err();
    assert_eq!(failure.code, Code::Unsupported, "a step that fails is no sandbox");
}

#[tokio::test]
async fn what_is_in_force_is_said() {
    let mut ground = Ground::new();
    ground.sandbox.network = Network::Loopback;
    ground.sandbox.write = vec![ground.path("outside").into()];
    let launch = ground.apply(&["true"]).await.unwrap();
    let said = launch.spec.in_force.join("\n");
    for word in ["inside", "outside", "loopback", "no Unix sockets"] {
        assert!(said.contains(word), "{said}");
    }
    let probe = ground.environment().probe().await;
    assert!(probe.available, "{probe:?}");
}
