//! The calls that are counted, and the upstream servers that answer some of them.

use crate::{Outcome, echo};
use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
};

/// Argument that starts this program as an upstream server of the transport that follows.
pub(crate) const SERVE: &str = "--serve";

/// A call to count, and the numbers of calls after which it is counted.
#[derive(Debug)]
pub(crate) struct Subject {
    pub(crate) name: &'static str,
    pub(crate) tool: &'static str,
    pub(crate) arguments: &'static str,
    /// Transport of the upstream server `up`, if the call needs one.
    pub(crate) upstream: Option<&'static str>,
    pub(crate) few: u32,
    pub(crate) many: u32,
}

const MESSAGE: &str = r#"{"message":"hello"}"#;

pub(crate) const SUBJECTS: [Subject; 4] = [
    Subject { name: "echo", tool: "echo", arguments: MESSAGE, upstream: None, few: 500, many: 2500 },
    Subject::proxied("proxied over HTTP", "http"),
    Subject::proxied("proxied over stdio", "stdio"),
    Subject { name: "bash", tool: "bash", arguments: r#"{"command":"true"}"#, upstream: None, few: 20, many: 70 },
];

impl Subject {
    /// A call of an upstream tool without annotations, which is recorded before it starts and after it ends.
    const fn proxied(name: &'static str, transport: &'static str) -> Self {
        Self { name, tool: "mcp__up__echo", arguments: MESSAGE, upstream: Some(transport), few: 500, many: 2500 }
    }
}

/// An upstream server, and the configuration that connects to it.
#[derive(Debug, Default)]
pub(crate) struct Upstream {
    /// The process of an HTTP server. A stdio server is started by the server under test.
    process: Option<Child>,
    pub(crate) config: String,
}

impl Upstream {
    /// Starts what the subject needs.
    pub(crate) fn start(subject: &Subject) -> Outcome<Self> {
        let Some(transport) = subject.upstream else { return Ok(Self::default()) };
        let program = std::env::current_exe()?;
        let mut upstream = Self::default();
        let address = if transport == "http" {
            let mut process = Command::new(program).args([SERVE, "http"]).stdout(Stdio::piped()).spawn()?;
            let output = process.stdout.take().ok_or("no stdout")?;
            upstream.process = Some(process);
            let mut port = String::new();
            BufReader::new(output).read_line(&mut port)?;
            format!("url = \"http://127.0.0.1:{}/mcp\"", port.trim())
        } else {
            format!("command = {program:?}\nargs = [\"{SERVE}\", \"stdio\"]\nprofile = \"open\"")
        };
        upstream.config = format!(
            "[mcp_servers.up]\n{address}\nallow_tools = [\"*\"]\nprotocol = \"2025-11-25\"\nidle_seconds = 0\n"
        );
        Ok(upstream)
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            // The process holds nothing that a kill could damage, and may have ended.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// Serves as the upstream of this transport.
pub(crate) fn serve_upstream(transport: &str) -> Outcome<()> {
    match transport {
        "http" => tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(echo::echo_http(false)),
        "stdio" => echo::echo_stdio(1, false),
        other => Err(format!("`{other}` is not a transport").into()),
    }
}
