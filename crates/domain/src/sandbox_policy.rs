//! The bounds of one run, as a value. The mechanism that enforces them stands in infrastructure.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

/// The bounds of a child process. Everything that is not named is closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxPolicy {
    /// The part of the machine that is closed.
    pub confinement: Confinement,
    /// Runs that bear the same key share one private network and one private `/tmp`, for as long as one of them lives
    /// or the key is released.
    pub session: Option<Arc<str>>,
    /// Paths beneath the folders below that are there and cannot be read: what deny rules name.
    pub hidden: Vec<PathBuf>,
    /// Paths beneath them that cannot be changed, though their folder may be.
    pub sealed: Vec<PathBuf>,
    /// Folders that may be read and written, absolute.
    pub write_roots: Vec<PathBuf>,
    /// Folders that may be read, absolute.
    pub read_roots: Vec<PathBuf>,
    /// The folder of the private home where that lasts, absolute; made where it is missing. `None`: a home in memory, which
    /// goes with the run.
    pub lasting_home: Option<PathBuf>,
    /// The network.
    pub network: NetworkPolicy,
    /// Tells whether the program `tool` stands on the `PATH` of the run, and a socket that leads from it to whoever
    /// started the run: for confined runs in namespaces alone.
    pub offers_tools: bool,
    /// The whole environment of the child: built, never inherited.
    pub environment: BTreeMap<String, String>,
    /// The bounds.
    pub limits: SandboxLimits,
}

/// The folders in which every system keeps its programs, as a `PATH`.
pub const SYSTEM_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

impl SandboxPolicy {
    /// The bounds that suit most programs of others: it reads the system, writes below `root` (absolute, without
    /// links) alone, and reaches no network. Its environment is the least that programs start with; add to it, to the
    /// roots and to the limits what this one needs.
    pub fn sealed(root: impl Into<PathBuf>) -> Self {
        let environment =
            [("PATH", SYSTEM_PATH), ("HOME", "/"), ("USER", "nobody"), ("LANG", "C.UTF-8"), ("TMPDIR", "/tmp")];
        let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self { write_roots: vec![root.into()], ..Self::closed(environment.into()) }
    }

    /// Bounds that open nothing but the system's own programs and libraries, with this environment and the usual limits.
    pub fn closed(environment: BTreeMap<String, String>) -> Self {
        Self { confinement: Confinement::Sealed, network: NetworkPolicy::None, ..Self::open(environment) }
    }

    /// The bounds of a program that is not confined: everything is open, with this environment and the usual limits.
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

/// The part of the machine that is closed to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confinement {
    /// Everything that the policy does not name: commands, readers of documents, MCP servers of the profile `strict`.
    Sealed,
    /// The same with the network that the policy says, and with what an MCP server needs to live: the profile
    /// `guarded`.
    Guarded,
    /// Nothing but descriptors and the environment: the profile `open`.
    Open,
}

/// Which hosts a run may reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NetworkPolicy {
    /// None at all.
    None,
    /// The hosts that match one of these patterns, through the runtime.
    Hosts(Vec<String>),
    /// The machine's own network, as for an MCP server that was configured to have it.
    Host,
}

/// The bounds of a run (`[limits]` of the configuration).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxLimits {
    /// Wall-clock time from the beginning of the program: when it is over, the program is killed with all that it has
    /// started, whether or not somebody waits for it. `None`: as long as whoever started it wants, as for a server.
    pub timeout: Option<Duration>,
    /// Private writable memory of each process, in bytes. What the whole tree may have follows from it.
    pub memory_bytes: u64,
    /// Processes of the tree.
    pub processes: u32,
    /// Size of the largest file that it may write, in bytes.
    pub file_bytes: u64,
}

impl Default for SandboxLimits {
    fn default() -> Self {
        Self { timeout: None, memory_bytes: 4 << 30, processes: 512, file_bytes: 1 << 30 }
    }
}
