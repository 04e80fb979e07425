//! The tiers of confinement.

use std::fmt;

/// Accesses that tier 2 leaves open, and those that it closes unnecessarily because it cannot be more precise.
const OPEN_IN_TIER_2: &str = "programs can change modes, dates and attributes of this user's files anywhere, see that \
                              files outside exist, with their sizes and dates, see the processes of the machine in \
                              /proc, and fill the disk; they have no network and no sockets, no /tmp and no /dev/shm \
                              (`TMPDIR` is a folder of their own), cannot create, move or remove entries directly in \
                              a root, only in its folders, and cannot change `.git` and settings of agents; programs \
                              that need a network, and roots in which rules protect paths, are rejected";

/// Degree to which runs can be confined on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SandboxTier {
    /// All layers, except those in the notes, which other layers make up for.
    First {
        /// Missing layers, one line each.
        notes: Vec<String>,
    },
    /// Only Landlock and the system call filter, which this launcher accepts.
    Second {
        /// Reason why it is not tier 1.
        missing: String,
    },
    /// A required layer is missing. No confined program is started.
    Third {
        /// Missing requirement.
        missing: String,
        /// Suggestion for the user.
        remedy: String,
    },
}

impl fmt::Display for SandboxTier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::First { notes } if notes.is_empty() => f.write_str("tier 1: every layer holds"),
            Self::First { notes } => write!(f, "tier 1, with {}", notes.join("; ")),
            Self::Second { missing } => {
                write!(f, "tier 2, confined by Landlock without namespaces, because {missing}: {OPEN_IN_TIER_2}")
            }
            Self::Third { missing, remedy } => write!(f, "tier 3, nothing is run confined: {missing}; {remedy}"),
        }
    }
}
