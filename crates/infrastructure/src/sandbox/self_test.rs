//! Whether the confinement holds on this machine: tried, not read off a version.
//!
//! One confined run of this program tries to reach canaries that stand outside. What it reaches is open.

use crate::sandbox::{
    child_environment,
    kernel::{self, Features},
    launcher::{Exit, Input, LaunchError, LaunchSpec, Launcher},
    preparing::OWN_PROGRAM,
};
use std::{
    env, fmt, fs, io,
    net::{TcpListener, TcpStream, UdpSocket},
    os::{
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixListener, UnixStream},
    },
    path::{Path, PathBuf},
    process,
    time::Duration,
};
use tokio::{io::AsyncReadExt, time::timeout};
use toolstead_domain::sandbox_policy::{Confinement, NetworkPolicy, SandboxLimits, SandboxPolicy};
use uuid::Uuid;

/// The variable that makes this program try: its value is the folder of the canaries.
const MARKER: &str = "TOOLSTEAD_SANDBOX_SELF_TEST";
const TCP_PORT: &str = "TOOLSTEAD_SANDBOX_SELF_TEST_TCP";
const UDP_PORT: &str = "TOOLSTEAD_SANDBOX_SELF_TEST_UDP";
/// The last word of a run that tried everything.
const DONE: &str = "tried";
const TIME_TO_TRY: Duration = Duration::from_secs(10);

/// How well runs can be confined here (`sandbox.md` 4.3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tier {
    /// All layers, or all but those that the notes name and that others stand in for.
    First {
        /// One line each.
        notes: Vec<String>,
    },
    /// Something that cannot be done without is missing. No confined program is started.
    Third {
        /// What.
        missing: String,
        /// What helps.
        remedy: String,
    },
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::First { notes } if notes.is_empty() => f.write_str("tier 1: every layer holds"),
            Self::First { notes } => write!(f, "tier 1, with {}", notes.join("; ")),
            Self::Third { missing, remedy } => write!(f, "tier 3, nothing is run confined: {missing}; {remedy}"),
        }
    }
}

/// Tries the confinement.
pub async fn tier(launcher: &Launcher) -> Tier {
    let features = kernel::features();
    match tried(launcher).await {
        Ok(open) if open.is_empty() => {
            let landlock = "no Landlock: the mounts alone keep files closed".to_owned();
            Tier::First { notes: features.landlock_abi.is_none().then_some(landlock).into_iter().collect() }
        }
        Ok(open) => Tier::Third {
            missing: format!("a confined run reached {}", open.join(", ")),
            remedy: remedy(features).into(),
        },
        Err(reason) => Tier::Third { missing: reason, remedy: remedy(features).into() },
    }
}

fn remedy(features: Features) -> &'static str {
    if features.user_namespaces {
        "run Toolstead as an ordinary user on Linux 5.12 or later, outside of a container that forbids namespaces"
    } else {
        "allow user namespaces: `sysctl user.max_user_namespaces=15000`, and on Ubuntu \
         `sysctl kernel.apparmor_restrict_unprivileged_userns=0` or an AppArmor profile for Toolstead"
    }
}

/// What a confined run reached of what it must not.
async fn tried(launcher: &Launcher) -> Result<Vec<String>, String> {
    let canaries = Canaries::place().map_err(|error| format!("the canaries cannot be placed: {error}"))?;
    let mut environment = child_environment::base(|_| None);
    let port = |address: io::Result<std::net::SocketAddr>| address.map(|one| one.port().to_string());
    for (name, value) in [
        (MARKER, canaries.folder.to_str().map(str::to_owned).ok_or_else(|| "the folder has no plain name".to_owned())?),
        (TCP_PORT, port(canaries.tcp.local_addr()).map_err(|error| error.to_string())?),
        (UDP_PORT, port(canaries.udp.local_addr()).map_err(|error| error.to_string())?),
    ] {
        environment.insert(name.into(), value);
    }
    let spec = LaunchSpec {
        program: OWN_PROGRAM.into(),
        args: Vec::new(),
        working_dir: "/".into(),
        input: Input::Nothing,
        policy: SandboxPolicy {
            confinement: Confinement::Sealed,
            session: None,
            hidden: Vec::new(),
            sealed: Vec::new(),
            write_roots: Vec::new(),
            read_roots: Vec::new(),
            network: NetworkPolicy::None,
            environment,
            limits: SandboxLimits::default(),
        },
    };
    let mut child = launcher.launch(spec).await.map_err(|error| match error {
        LaunchError::Confine(step) => step,
        error => error.to_string(),
    })?;
    let mut said = String::new();
    let reading = async {
        if let Some(stdout) = &mut child.stdout {
            let _ = stdout.take(64 << 10).read_to_string(&mut said).await;
        }
        child.exited().await
    };
    let exit = timeout(TIME_TO_TRY, reading).await.map_err(|_| "a confined run does not end".to_owned())?;
    let mut open: Vec<String> = said.lines().map(str::to_owned).collect();
    if exit != Exit::Code(0) || open.pop().as_deref() != Some(DONE) {
        return Err(format!("a confined run does not work: {exit}"));
    }
    Ok(open)
}

/// What stands outside of a run; gone with the value.
struct Canaries {
    folder: PathBuf,
    tcp: TcpListener,
    udp: UdpSocket,
    _by_path: UnixListener,
    _abstract: UnixListener,
}

impl Canaries {
    fn place() -> io::Result<Self> {
        let folder = env::temp_dir().join(format!("toolstead-{}", Uuid::new_v4()));
        fs::create_dir(&folder)?;
        let placed = || {
            fs::write(folder.join("file"), "canary")?;
            let by_path = UnixListener::bind(folder.join("socket"))?;
            Ok(Self {
                tcp: TcpListener::bind("127.0.0.1:0")?,
                udp: UdpSocket::bind("127.0.0.1:0")?,
                _by_path: by_path,
                _abstract: UnixListener::bind_addr(&abstract_name(&folder)?)?,
                folder: folder.clone(),
            })
        };
        placed().inspect_err(|_: &io::Error| drop(fs::remove_dir_all(&folder)))
    }
}

impl Drop for Canaries {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn abstract_name(folder: &Path) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(folder.as_os_str().as_encoded_bytes())
}

/// Tries and ends the process, if this process was started to try.
pub(super) fn enter() {
    let Some(folder) = env::var_os(MARKER).map(PathBuf::from) else { return };
    let port = |name| env::var(name).ok().and_then(|port| port.parse::<u16>().ok()).unwrap_or(0);
    let (tcp, udp) = (("127.0.0.1", port(TCP_PORT)), ("127.0.0.1", port(UDP_PORT)));
    let tries: [(&str, &dyn Fn() -> io::Result<()>); 7] = [
        ("a file outside", &|| fs::read(folder.join("file")).map(drop)),
        ("a folder outside, to write there", &|| fs::write(folder.join("hole"), "")),
        ("the host by TCP", &|| TcpStream::connect(tcp).map(drop)),
        ("the host by UDP", &|| {
            let socket = UdpSocket::bind("127.0.0.1:0")?;
            socket.connect(udp)?;
            socket.send(b"x")?;
            // A refusal comes back for a port that nobody listens on.
            socket.set_read_timeout(Some(Duration::from_millis(20)))?;
            match socket.recv(&mut [0]) {
                Err(error) if error.kind() != io::ErrorKind::ConnectionRefused => Ok(()),
                other => other.map(drop),
            }
        }),
        ("a socket outside by its path", &|| UnixStream::connect(folder.join("socket")).map(drop)),
        ("an abstract socket outside", &|| UnixStream::connect_addr(&abstract_name(&folder)?).map(drop)),
        ("a namespace of its own", &|| {
            // SAFETY: the call touches no memory; this process has one thread.
            if unsafe { libc::unshare(libc::CLONE_NEWUSER) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
        }),
    ];
    let mut said = String::new();
    for (what, attempt) in tries {
        if attempt().is_ok() {
            said.push_str(what);
            said.push('\n');
        }
    }
    said.push_str(DONE);
    let written = rustix::io::write(rustix::stdio::stdout(), said.as_bytes()).is_ok();
    process::exit(i32::from(!written));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_confinement_holds_where_the_tests_run() {
        let launcher = Launcher::start().unwrap();
        assert_eq!(tier(&launcher).await, Tier::First { notes: Vec::new() });
    }
}
