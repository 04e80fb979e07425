//! The limits of one run, as a value. Infrastructure implements the mechanism that enforces them.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

/// Limits of a child process. Everything that is not listed is closed.
///
/// ```
/// use toolstead_domain::sandbox_policy::{NetworkPolicy, SandboxPolicy};
///
/// let mut policy = SandboxPolicy::sealed("/srv/job");
/// policy.limits.processes = 8;
/// assert_eq!(policy.network, NetworkPolicy::None);
/// assert_eq!(policy.write_roots, [std::path::PathBuf::from("/srv/job")]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxPolicy {
    /// Parts of the machine that are closed.
    pub confinement: Confinement,
    /// Key of a group of runs. Runs with the same key share one private network and one private `/tmp`, until the last
    /// of them ends or the key is released.
    pub session: Option<Arc<str>>,
    /// Existing paths below the roots that cannot be read: those that deny rules name.
    pub hidden: Vec<PathBuf>,
    /// Paths below the roots that cannot be changed, although their folder can.
    pub sealed: Vec<PathBuf>,
    /// Absolute paths of folders that may be read and written.
    pub write_roots: Vec<PathBuf>,
    /// Absolute paths of folders that may be read.
    pub read_roots: Vec<PathBuf>,
    /// Absolute path of a persistent private home; created if it does not exist. `None` for a home in memory, which is
    /// discarded with the run.
    pub lasting_home: Option<PathBuf>,
    /// Network access.
    pub network: NetworkPolicy,
    /// `true` if the program `tool` is on the `PATH` of the run, with a socket from it to the starter of the run. Only
    /// for confined runs in namespaces.
    pub offers_tools: bool,
    /// Complete environment of the child: constructed, never inherited.
    pub environment: BTreeMap<String, String>,
    /// Resource limits.
    pub limits: SandboxLimits,
}

/// Folders in which every system stores its programs, as a `PATH`.
pub const SYSTEM_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

impl SandboxPolicy {
    /// Returns limits that suit most third-party programs: the program reads the system, writes only below `root`
    /// (absolute, without links), and has no network. Its environment is the minimum that programs need to start;
    /// extend it, the roots and the limits as required.
    pub fn sealed(root: impl Into<PathBuf>) -> Self {
        let environment =
            [("PATH", SYSTEM_PATH), ("HOME", "/"), ("USER", "nobody"), ("LANG", "C.UTF-8"), ("TMPDIR", "/tmp")];
        let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self { write_roots: vec![root.into()], ..Self::closed(environment.into()) }
    }

    /// Returns limits that open only the programs and libraries of the system, with this environment and the default
    /// limits.
    pub fn closed(environment: BTreeMap<String, String>) -> Self {
        Self { confinement: Confinement::Sealed, network: NetworkPolicy::None, ..Self::open(environment) }
    }

    /// Returns the limits of a program that is not confined: everything is open, with this environment and the default
    /// limits.
    pub fn open(environment: BTreeMap<String, String>) -> Self {
        Self {
            confinement: Confinement::Open,
            session: None,
            hidden: Vec::new(),
            sealed: Vec::new(),
            write_roots: Vec::new(),
            read_roots: Vec::new(),
            lasting_home: None,
            network: NetworkPolicy::Host,
            offers_tools: false,
            environment,
            limits: SandboxLimits::default(),
        }
    }
}

/// Parts of the machine that are closed to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confinement {
    /// Everything that the policy does not list: for commands, document parsers, and MCP servers of the profile
    /// `strict`.
    Sealed,
    /// Everything that the policy does not list and an MCP server does not need, with the network of the policy: the
    /// profile `guarded`.
    Guarded,
    /// Only descriptors and the environment: the profile `open`.
    Open,
}

/// Network access of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NetworkPolicy {
    /// No network.
    None,
    /// Hosts that match one of these patterns, through the runtime.
    Hosts(Vec<String>),
    /// Network of the machine, for example for an MCP server that is configured to use it.
    Host,
}

/// Resource limits of a run (`[limits]` of the configuration).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxLimits {
    /// Timeout from the start of the program: the program is then killed with all processes it has started, even if its
    /// starter does not wait for it. `None` if the starter decides, for example for a server.
    pub timeout: Option<Duration>,
    /// Private writable memory of each process, in bytes. The limit of the whole process tree follows from it.
    pub memory_bytes: u64,
    /// Maximum number of processes in the tree.
    pub processes: u32,
    /// Maximum size of a file that the run may write, in bytes.
    pub file_bytes: u64,
}

impl Default for SandboxLimits {
    fn default() -> Self {
        Self { timeout: None, memory_bytes: 4 << 30, processes: 512, file_bytes: 1 << 30 }
    }
}
