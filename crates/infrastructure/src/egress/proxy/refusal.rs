//! Reasons why a client was not connected, as shown to the client, the log and the caller of the command.

use crate::egress::{
    address::{self, NonPublicRange},
    connector::ConnectError,
    host::{Host, InvalidHost},
};
use toolstead_domain::{Suggestion, Verdict};

type HostAndPort = (Host, u16);

/// Reason why a client was not connected.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    #[error("{0}")]
    Request(&'static str),
    #[error(transparent)]
    Invalid(#[from] InvalidHost),
    #[error("{}:{} is not among the hosts that commands may reach", .0.0, .0.1)]
    NotListed(HostAndPort),
    #[error("commands may reach {}, but not its port {}", .0.0, .0.1)]
    Port(HostAndPort),
    #[error("the permission rules do not allow {}", .0.0)]
    Rule(HostAndPort, Verdict),
    #[error("no page of the browser requested {}:{}", .0.0, .0.1)]
    Unannounced(HostAndPort),
    #[error("{1}")]
    Connect(HostAndPort, ConnectError),
    #[error("the answer of {}:{} cannot be forwarded: {}", .target.0, .target.1, .reason)]
    Answer { target: HostAndPort, reason: String },
}

/// Class of a refusal, which decides the status code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RefusalClass {
    /// The request is invalid.
    Malformed,
    /// The target is not permitted.
    Forbidden,
    /// The target cannot be reached.
    Unreachable,
}

impl Refusal {
    pub(super) fn class(&self) -> RefusalClass {
        match self {
            Self::Request(_) => RefusalClass::Malformed,
            Self::Invalid(_)
            | Self::NotListed(_)
            | Self::Port(_)
            | Self::Rule(..)
            | Self::Unannounced(_)
            | Self::Connect(_, ConnectError::NotGlobal { .. }) => RefusalClass::Forbidden,
            Self::Connect(_, ConnectError::Resolve { .. } | ConnectError::Connect { .. }) | Self::Answer { .. } => {
                RefusalClass::Unreachable
            }
        }
    }

    /// Returns the range of a refused host that no list of hosts makes reachable; `None` for any other refusal.
    fn never_reached(&self) -> Option<NonPublicRange> {
        match self {
            Self::NotListed((host, _)) | Self::Port((host, _)) => not_public(host),
            _ => None,
        }
    }

    /// Returns the suggested change that would allow the target, for users. The refused program does not receive it.
    pub(super) fn suggestion(&self) -> Option<Suggestion> {
        Some(match self {
            _ if self.never_reached().is_some() => return None,
            Self::NotListed((host, 80 | 443)) => {
                Suggestion::ChangeSettings(format!("add `{host}` to `sandbox.network`"))
            }
            Self::NotListed((host, port)) | Self::Port((host, port)) => {
                Suggestion::ChangeSettings(format!("add `{host}:{port}` to `sandbox.network`"))
            }
            Self::Rule((Host::Name(name), _), Verdict::Ask) => {
                Suggestion::AllowRules(vec![format!("WebFetch(domain:{name})")])
            }
            Self::Rule((Host::Address(_), _), Verdict::Ask) => Suggestion::AllowRules(vec!["WebFetch".into()]),
            Self::Rule(..)
            | Self::Request(_)
            | Self::Invalid(_)
            | Self::Unannounced(_)
            | Self::Connect(..)
            | Self::Answer { .. } => {
                return None;
            }
        })
    }

    /// Returns the reason as one sentence without a full stop.
    pub(super) fn reason(&self) -> String {
        match (self.never_reached(), self) {
            (Some(range), _) => {
                format!(
                    "{self}; it is not a public host but {}, and commands may reach only public hosts",
                    range.as_str()
                )
            }
            (None, Self::NotListed(_) | Self::Port(_) | Self::Rule(..)) => {
                format!("{self}; ask your user whether to allow it")
            }
            (None, _) => self.to_string(),
        }
    }

    /// Returns the host and the reason for the caller of the command, if the proxy itself refused the connection.
    pub(super) fn report_entry(&self) -> Option<(String, String)> {
        let host = match self {
            Self::NotListed(target)
            | Self::Port(target)
            | Self::Rule(target, _)
            | Self::Unannounced(target)
            | Self::Connect(target, _) => format!("{}:{}", target.0, target.1),
            Self::Invalid(invalid) => invalid.shown(),
            Self::Request(_) | Self::Answer { .. } => return None,
        };
        (self.class() == RefusalClass::Forbidden).then(|| (host, self.reason()))
    }
}

/// Returns the range of an address that is not public, or of `localhost`: listing such a host does not permit it.
fn not_public(host: &Host) -> Option<NonPublicRange> {
    match host {
        Host::Address(address) => address::check_public(*address).err().map(|error| error.range),
        Host::Name(name) => {
            (&**name == "localhost" || name.ends_with(".localhost")).then_some(NonPublicRange::Loopback)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::egress::host::parse_authority;

    /// Checks the text that is added to the reason, and the suggestion.
    #[track_caller]
    fn check(target: &str, reason: &str, suggestion: Option<&str>) {
        for refusal in [Refusal::NotListed, Refusal::Port] {
            let refusal = refusal(parse_authority(target, None).unwrap());
            assert!(refusal.reason().contains(reason), "{}", refusal.reason());
            assert!(!refusal.reason().contains("sandbox.network"), "{}", refusal.reason());
            let change = suggestion.map(|change| Suggestion::ChangeSettings(change.into()));
            assert_eq!(refusal.suggestion(), change);
        }
    }

    #[test]
    fn settings_changes_are_suggested_only_for_hosts_that_settings_can_permit() {
        let ask = "ask your user whether to allow it";
        check("example.com:8443", ask, Some("add `example.com:8443` to `sandbox.network`"));
        check("93.184.215.14:22", ask, Some("add `93.184.215.14:22` to `sandbox.network`"));
        check("127.0.0.1:18999", "not a public host but this machine itself", None);
        check("localhost:443", "not a public host but this machine itself", None);
        check("x.localhost:80", "not a public host but this machine itself", None);
        check("10.1.2.3:80", "not a public host but part of a private network", None);
        check("[::ffff:192.168.0.1]:80", "not a public host but part of a private network", None);
        check("169.254.169.254:80", "not a public host but a link-local one", None);
    }
}
