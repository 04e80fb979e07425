//! What stands beside Toolstead on the way of a proxied call: a relay that only copies bytes, which nobody can beat by
//! much, and `mcp-proxy` (`cargo install mcp-proxy --version 0.6.0 --locked`), the fastest gateway known to us, where it is
//! on the `PATH`.

use crate::{
    Outcome,
    echo::announce,
    load::{Connection, Target, header},
    rows::Reference,
};
use std::{
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
};

/// Copies the bytes of every connection to this address and back.
pub(crate) async fn relay(upstream: &str) -> Outcome<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    announce(&listener)?;
    loop {
        let (mut client, _) = listener.accept().await?;
        let mut server = TcpStream::connect(upstream).await?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        tokio::spawn(async move { copy_bidirectional(&mut client, &mut server).await });
    }
}

/// A running `mcp-proxy` with one upstream, `up`.
pub(crate) struct Peer {
    pub(crate) child: Child,
    pub(crate) target: Target,
    _folder: tempfile::TempDir,
}

impl Peer {
    /// Starts it, as it comes, with its log off; `None` where the program is not installed.
    pub(crate) async fn start(backend: &str) -> Outcome<Option<Self>> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("proxy.toml");
        // It takes no port of the system's choice, so one that was free a moment ago has to do.
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let listen = format!("[proxy.listen]\nhost = \"127.0.0.1\"\nport = {port}");
        let text =
            format!("[proxy]\nname = \"peer\"\nseparator = \"/\"\n{listen}\n[[backends]]\nname = \"up\"\n{backend}\n");
        std::fs::write(&file, text)?;
        let mut command = Command::new("mcp-proxy");
        command.arg("--config").arg(&file).env("RUST_LOG", "error").stdout(Stdio::null()).stderr(Stdio::null());
        let child = match command.spawn() {
            Ok(child) => child,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let headers = "mcp-protocol-version: 2025-11-25\r\n".to_owned();
        let target = Target { address: format!("127.0.0.1:{port}"), path: "/".into(), headers, meta: "".into() };
        let mut peer = Self { child, target, _folder: folder };
        peer.open_session().await?;
        Ok(Some(peer))
    }

    async fn open_session(&mut self) -> Outcome<()> {
        let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;
        let deadline = Instant::now() + Duration::from_secs(20);
        let mut is_open = false;
        while Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(20)).await;
            let Ok(mut connection) = Connection::open(&self.target).await else { continue };
            if !is_open {
                let Ok(answer) = connection.exchange(&self.target.request(initialize)).await else { continue };
                let Some(session) = header(&answer.head, "mcp-session-id") else { continue };
                self.target.headers += &format!("mcp-session-id: {session}\r\n");
                is_open = true;
                let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
                connection.exchange(&self.target.request(initialized)).await?;
            }
            let call = self.target.request(&self.target.call(7, "up/echo", "hello"));
            if String::from_utf8_lossy(&connection.exchange(&call).await?.body).contains("Echo: hello") {
                return Ok(());
            }
        }
        Err("mcp-proxy does not offer the tool of its upstream".into())
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It holds nothing that a kill could hurt.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The relay in front of a reference.
pub(crate) fn relay_to(reference: &Reference) -> Outcome<Reference> {
    let mut relay = Reference::http(&format!("relay:{}", reference.target.address))?;
    relay.target = Target { address: relay.target.address.clone(), ..reference.target.clone() };
    Ok(relay)
}
