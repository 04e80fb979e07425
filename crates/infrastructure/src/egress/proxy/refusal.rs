//! Why a client was not connected, as the client, the log and the caller of the command read it.

use crate::egress::{
    address::{self, Range},
    connector::ConnectError,
    host::{Host, InvalidHost},
};
use toolstead_domain::permission::decision::Verdict;

type Target = (Host, u16);

/// Why a client was not connected.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    #[error("{0}")]
    Request(&'static str),
    #[error(transparent)]
    Invalid(#[from] InvalidHost),
    #[error("{}:{} is not among the hosts that commands may reach", .0.0, .0.1)]
    NotListed(Target),
    #[error("commands may reach {}, but not its port {}", .0.0, .0.1)]
    Port(Target),
    #[error("the permission rules do not let {} be reached", .0.0)]
    Rule(Target, Verdict),
    #[error("no page of the browser requested {}:{}", .0.0, .0.1)]
    Unannounced(Target),
    #[error("{1}")]
    Connect(Target, ConnectError),
    #[error("{}:{} answers in a way that cannot be passed on: {}", .target.0, .target.1, .reason)]
    Answer { target: Target, reason: String },
}

/// How a client is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// What it sent makes no sense.
    Malformed,
    /// It may not.
    Forbidden,
    /// The other side is not there.
    Unreachable,
}

impl Refusal {
    pub(super) fn class(&self) -> Class {
        match self {
            Self::Request(_) => Class::Malformed,
            Self::Invalid(_)
            | Self::NotListed(_)
            | Self::Port(_)
            | Self::Rule(..)
            | Self::Unannounced(_)
            | Self::Connect(_, ConnectError::NotGlobal { .. }) => Class::Forbidden,
            Self::Connect(_, ConnectError::Resolve { .. } | ConnectError::Connect { .. }) | Self::Answer { .. } => {
                Class::Unreachable
            }
        }
    }

    /// What would allow it, or why nothing does.
    fn remedy(&self) -> Option<String> {
        if let Self::NotListed((host, _)) | Self::Port((host, _)) = self
            && let Some(range) = not_public(host)
        {
            return Some(format!("it is no public host but {}, and commands reach public hosts alone", range.as_str()));
        }
        Some(match self {
            Self::NotListed((host, 80 | 443)) => format!("add `{host}` to `sandbox.network` in the configuration"),
            Self::NotListed((host, port)) | Self::Port((host, port)) => {
                format!("add `{host}:{port}` to `sandbox.network` in the configuration")
            }
            Self::Rule(_, Verdict::Deny) => "a person may change the rules".into(),
            Self::Rule((Host::Name(name), _), _) => format!("the rule `WebFetch(domain:{name})` would allow it"),
            Self::Rule((Host::Address(_), _), _) => "the rule `WebFetch` would allow it".into(),
            Self::Request(_) | Self::Invalid(_) | Self::Unannounced(_) | Self::Connect(..) | Self::Answer { .. } => {
                return None;
            }
        })
    }

    /// One sentence with the reason and what would allow it, without a full stop.
    pub(super) fn reason(&self) -> String {
        match self.remedy() {
            Some(remedy) => format!("{self}; {remedy}"),
            None => self.to_string(),
        }
    }

    /// The host and the reason, for the caller of the command: where it was the proxy who said no.
    pub(super) fn told(&self) -> Option<(String, String)> {
        let host = match self {
            Self::NotListed(target)
            | Self::Port(target)
            | Self::Rule(target, _)
            | Self::Unannounced(target)
            | Self::Connect(target, _) => format!("{}:{}", target.0, target.1),
            Self::Invalid(invalid) => invalid.shown(),
            Self::Request(_) | Self::Answer { .. } => return None,
        };
        (self.class() == Class::Forbidden).then(|| (host, self.reason()))
    }
}

/// What the host is, where listing it would not help.
fn not_public(host: &Host) -> Option<Range> {
    match host {
        Host::Address(address) => address::judge(*address).err().map(|error| error.range),
        Host::Name(name) => (&**name == "localhost" || name.ends_with(".localhost")).then_some(Range::Loopback),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::egress::host::parse_authority;

    #[track_caller]
    fn check(target: &str, advised: &str) {
        let reason = |refusal: fn(Target) -> Refusal| refusal(parse_authority(target, None).unwrap()).reason();
        for reason in [reason(Refusal::NotListed), reason(Refusal::Port)] {
            assert!(reason.contains(advised), "{reason}");
            assert_eq!(reason.contains("add `"), advised.starts_with("add `"), "{reason}");
        }
    }

    #[test]
    fn a_host_is_only_advised_to_be_listed_where_that_helps() {
        check("example.com:8443", "add `example.com:8443` to `sandbox.network`");
        check("93.184.215.14:22", "add `93.184.215.14:22` to");
        check("127.0.0.1:18999", "no public host but this machine itself");
        check("localhost:443", "no public host but this machine itself");
        check("x.localhost:80", "no public host but this machine itself");
        check("10.1.2.3:80", "no public host but one of a private network");
        check("[::ffff:192.168.0.1]:80", "no public host but one of a private network");
        check("169.254.169.254:80", "no public host but one of the local link");
    }
}
