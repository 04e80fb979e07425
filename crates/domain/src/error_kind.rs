//! Kinds of errors, as one closed list. The kind is the contract; numbers are views of it.

use std::fmt;

macro_rules! error_kinds {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// Kind of a failure (`data.kind` on the wire, `error_kind` in the audit log).
        ///
        /// ```
        /// use toolstead_domain::error_kind::ErrorKind;
        ///
        /// assert_eq!(ErrorKind::from_name("timeout"), Some(ErrorKind::Timeout));
        /// assert_eq!(ErrorKind::PermissionDenied.exit_code(), 3);
        /// assert!(ErrorKind::RateLimited.is_retryable());
        /// ```
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum ErrorKind { $($(#[$doc])* $variant,)* }

        impl ErrorKind {
            /// All kinds, in the order of declaration.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Returns the name of the kind in lower snake case. It is stable and part of the contract.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

error_kinds! {
    /// No tool, server, record or file has that name.
    NotFound = "not_found",
    /// The tool exists and is disabled.
    Disabled = "disabled",
    /// The tool is unavailable: a key, a program or its server is missing.
    Unavailable = "unavailable",
    /// The arguments violate the schema of the tool.
    InvalidInput = "invalid_input",
    /// A rule, a default or an approver refused the call.
    PermissionDenied = "permission_denied",
    /// The approver did not answer in time.
    ApprovalTimeout = "approval_timeout",
    /// The call exceeded its deadline.
    Timeout = "timeout",
    /// The caller cancelled the call, or the runtime is shutting down.
    Cancelled = "cancelled",
    /// The tool ran and failed in its own way.
    ExecutionFailed = "execution_failed",
    /// The operating system refused a read, a write or a process.
    Io = "io",
    /// The file changed since it was read.
    StaleFile = "stale_file",
    /// The file must be read before it is changed.
    NotRead = "not_read",
    /// The text to replace occurs several times.
    AmbiguousMatch = "ambiguous_match",
    /// The text to replace does not occur.
    NoMatch = "no_match",
    /// A size, count or depth is over its limit.
    TooLarge = "too_large",
    /// The kind of file or content cannot be handled.
    UnsupportedType = "unsupported_type",
    /// A rate limit of Toolstead or of a remote service was reached.
    RateLimited = "rate_limited",
    /// A remote service requires a sign-in.
    AuthRequired = "auth_required",
    /// A remote service answered with an HTTP error.
    UpstreamHttp = "upstream_http",
    /// An MCP server or remote service violated its protocol or ended.
    UpstreamProtocol = "upstream_protocol",
    /// A budget of calls, tokens or time is exhausted.
    BudgetExhausted = "budget_exhausted",
    /// The session is not initialized yet, or is closing.
    SessionNotReady = "session_not_ready",
    /// A second `initialize` on one session.
    AlreadyInitialized = "already_initialized",
    /// The protocol version is not supported.
    UnsupportedVersion = "unsupported_version",
    /// The call needs a capability that the client did not declare; the data of the failure name it.
    MissingCapability = "missing_capability",
    /// An internal error of Toolstead.
    Internal = "internal",
}

impl ErrorKind {
    /// Returns the exit code for this failure, of the command line and of the program `tool` in a run.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::InvalidInput => 2,
            Self::PermissionDenied | Self::ApprovalTimeout => 3,
            Self::NotFound | Self::Disabled | Self::Unavailable => 4,
            Self::Timeout | Self::Cancelled => 5,
            Self::BudgetExhausted => 6,
            Self::Internal => 70,
            Self::ExecutionFailed
            | Self::Io
            | Self::StaleFile
            | Self::NotRead
            | Self::AmbiguousMatch
            | Self::NoMatch
            | Self::TooLarge
            | Self::UnsupportedType
            | Self::RateLimited
            | Self::AuthRequired
            | Self::UpstreamHttp
            | Self::UpstreamProtocol
            | Self::SessionNotReady
            | Self::AlreadyInitialized
            | Self::UnsupportedVersion
            | Self::MissingCapability => 1,
        }
    }

    /// Returns `true` if the same call may succeed when it is repeated.
    pub fn is_retryable(self) -> bool {
        matches!(
            self,
            Self::Timeout | Self::RateLimited | Self::UpstreamHttp | Self::UpstreamProtocol | Self::ApprovalTimeout
        )
    }

    /// Returns the JSON-RPC code of this kind, which Toolstead's MCP server uses for protocol errors.
    ///
    /// Unknown, disabled and unavailable tools are -32602, as MCP 2025-11-25 (server/tools, "Error Handling") requires;
    /// `data.kind` distinguishes them.
    pub fn json_rpc_code(self) -> i64 {
        match self {
            Self::NotFound | Self::Disabled | Self::Unavailable | Self::InvalidInput => -32602,
            Self::MissingCapability => -32021,
            Self::UnsupportedVersion => -32022,
            Self::SessionNotReady | Self::AlreadyInitialized => -32600,
            _ => -32603,
        }
    }

    /// Returns the kind with this name; `None` for a name that this version does not define.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.as_str() == name)
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_kind_is_parsed_from_its_own_name() {
        for kind in ErrorKind::ALL {
            assert_eq!(ErrorKind::from_name(kind.as_str()), Some(*kind));
        }
        assert_eq!(ErrorKind::from_name("nonsense"), None);
    }

    #[test]
    fn error_kinds_map_to_json_rpc_error_codes() {
        for (kind, code) in [
            (ErrorKind::NotFound, -32602),
            (ErrorKind::Disabled, -32602),
            (ErrorKind::ExecutionFailed, -32603),
            (ErrorKind::Timeout, -32603),
            (ErrorKind::Internal, -32603),
        ] {
            assert_eq!(kind.json_rpc_code(), code, "{kind}");
        }
    }
}
