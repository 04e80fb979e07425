//! Hosts in URLs, in requests to a proxy and in lists. They are parsed once, and the parsed values are compared.

use std::{fmt, net::IpAddr, sync::Arc};
use toolstead_domain::permission::host_pattern::host_matches;

/// Maximum length of a name, in bytes (RFC 1035).
const MAX_NAME: usize = 253;
/// Maximum length of a label of a name, in bytes.
const MAX_LABEL: usize = 63;
/// Ports of a pattern without a port.
const WEB_PORTS: [u16; 2] = [80, 443];

/// A host: a name in lower case, in ASCII after IDNA, or an address.
///
/// Displayed as in a URL: IPv6 addresses are in brackets.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Host {
    /// A name that is not an address in any notation.
    Name(Arc<str>),
    /// An IP address.
    Address(IpAddr),
}

impl Host {
    /// Parses a host as in a URL: a name, four decimal numbers, or IPv6 in brackets.
    ///
    /// # Errors
    /// [`InvalidHost`] for everything else: user-info and other delimiters, control bytes, zones, a trailing
    /// dot, and every other notation of an IPv4 address (decimal, octal, hexadecimal, short, in other digits).
    pub fn parse(text: &str) -> Result<Self, InvalidHost> {
        let wrong = |reason| InvalidHost { host: text.into(), reason };
        if text.is_empty() {
            return Err(wrong(InvalidHostReason::Empty));
        }
        // A name in another script is limited to this length as well.
        if text.len() > 4 * MAX_NAME {
            return Err(wrong(InvalidHostReason::Length));
        }
        if let Some(address) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            let address = address.parse().map_err(|_| wrong(InvalidHostReason::Ipv6))?;
            return Ok(Self::Address(IpAddr::V6(address)));
        }
        // The next step would decode `%` without checking the rest of the text before.
        let is_foreign = |c: char| c.is_control() || c.is_whitespace() || "%@/\\?#:[]<>^|\"`{}".contains(c);
        if text.contains(is_foreign) {
            return Err(wrong(InvalidHostReason::Characters));
        }
        if text.ends_with('.') {
            return Err(wrong(InvalidHostReason::Dot));
        }
        match url::Host::parse(text) {
            Ok(url::Host::Ipv4(address)) if address.to_string() == text => Ok(Self::Address(address.into())),
            Ok(url::Host::Ipv4(address)) => Err(wrong(InvalidHostReason::Notation(address))),
            Ok(url::Host::Ipv6(address)) => Ok(Self::Address(address.into())),
            Ok(url::Host::Domain(name)) if is_name(&name) => Ok(Self::Name(name.into())),
            Ok(url::Host::Domain(name)) if name.len() > MAX_NAME => Err(wrong(InvalidHostReason::Length)),
            Ok(url::Host::Domain(_)) | Err(_) => Err(wrong(InvalidHostReason::Name)),
        }
    }
}

impl Host {
    /// Returns `true` if the host is `localhost` or a loopback address, so that it is this machine without any lookup.
    pub fn is_this_machine(&self) -> bool {
        match self {
            Self::Name(name) => &**name == "localhost",
            Self::Address(address) => address.to_canonical().is_loopback(),
        }
    }
}

/// Returns `true` if a text has at most 253 bytes and consists of labels of 1 to 63 lower-case letters, digits, `-` and
/// `_`, none of which begins or ends with `-`.
fn is_name(text: &str) -> bool {
    let is_label = |label: &str| {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
        (1..=MAX_LABEL).contains(&label.len())
            && label.chars().all(fits)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.len() <= MAX_NAME && text.split('.').all(is_label)
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => address.fmt(f),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

impl From<IpAddr> for Host {
    fn from(address: IpAddr) -> Self {
        Self::Address(address)
    }
}

/// Parses `host:port`. `default` is the port if there is none.
///
/// # Errors
/// [`InvalidHost`], also for an invalid port.
pub fn parse_authority(text: &str, default: Option<u16>) -> Result<(Host, u16), InvalidHost> {
    let wrong = || InvalidHost { host: text.into(), reason: InvalidHostReason::Port };
    let (host, port) = match text.rsplit_once(':') {
        // A colon within brackets is part of the address.
        Some((host, port)) if !port.contains(']') => {
            let is_number = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
            (host, Some(port).filter(|_| is_number).and_then(|port| port.parse().ok()).ok_or_else(wrong)?)
        }
        _ => (text, default.ok_or_else(wrong)?),
    };
    if port == 0 { Err(wrong()) } else { Ok((Host::parse(host)?, port)) }
}

/// Error for a text that is not a valid host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not a valid host: {reason}", shown(.host))]
pub struct InvalidHost {
    host: Box<str>,
    reason: InvalidHostReason,
}

impl InvalidHost {
    /// Returns the invalid text, escaped and truncated for display.
    pub fn shown(&self) -> String {
        shown(&self.host)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum InvalidHostReason {
    #[error("it is empty")]
    Empty,
    #[error("it is too long")]
    Length,
    #[error("it contains characters that are invalid in a host name")]
    Characters,
    #[error("remove the dot at its end")]
    Dot,
    #[error("brackets must contain an IPv6 address without a zone")]
    Ipv6,
    #[error("an IPv4 address is four decimal numbers; did you mean {0}?")]
    Notation(std::net::Ipv4Addr),
    #[error("a name has letters, digits, `-` and `_` in parts of 1 to 63 between dots, and does not end in a number")]
    Name,
    #[error("write `host:port` with a port from 1 to 65535")]
    Port,
}

/// Escapes control characters of an untrusted text and truncates it.
fn shown(text: &str) -> String {
    const LONGEST: usize = 80;
    let cut = text.chars().take(LONGEST).flat_map(char::escape_debug).collect::<String>();
    if text.chars().nth(LONGEST).is_some() { cut + "…" } else { cut }
}

/// A list of patterns of hosts with their ports. An empty list matches no host.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HostPatterns(Vec<HostPattern>);

/// Result of looking up a host and port in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostMatchResult {
    /// The list contains the host and the port.
    Yes,
    /// The list contains the host, but only with other ports.
    OtherPort,
    /// The list does not contain the host.
    No,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct HostPattern {
    names: Names,
    /// Port. `None` stands for [`WEB_PORTS`].
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Names {
    One(Host),
    /// A pattern with `*`, which never matches an address.
    Many(Box<str>),
    /// All hosts.
    All,
}

impl HostPatterns {
    /// Parses patterns. Each is `host`, `*.host` (every name below, without the host itself) or a name with `*` within
    /// one label, with `:port` unless it is for ports 80 and 443.
    ///
    /// # Errors
    /// [`InvalidHostPattern`] for the first pattern that would never match.
    pub fn parse<S: AsRef<str>>(patterns: impl IntoIterator<Item = S>) -> Result<Self, InvalidHostPattern> {
        patterns.into_iter().map(|text| HostPattern::parse(text.as_ref())).collect::<Result<_, _>>().map(Self)
    }

    /// Returns a list with every host and port, for callers that check hosts in another way.
    pub fn all() -> Self {
        Self(vec![HostPattern { names: Names::All, port: None }])
    }

    /// Looks up this host with this port.
    pub fn match_host(&self, host: &Host, port: u16) -> HostMatchResult {
        let mut listed = HostMatchResult::No;
        for pattern in self.0.iter().filter(|pattern| pattern.names.fit(host)) {
            match pattern.port {
                None if pattern.names == Names::All => return HostMatchResult::Yes,
                Some(own) if own == port => return HostMatchResult::Yes,
                None if WEB_PORTS.contains(&port) => return HostMatchResult::Yes,
                _ => listed = HostMatchResult::OtherPort,
            }
        }
        listed
    }
}

impl HostPattern {
    fn parse(text: &str) -> Result<Self, InvalidHostPattern> {
        let text = text.trim();
        let wrong = |reason: String| InvalidHostPattern { pattern: text.into(), reason };
        if text.contains("//") {
            return Err(wrong("write only the host, without `https://` and path".into()));
        }
        let has_port = text.rsplit_once(':').is_some_and(|(_, port)| !port.contains(']'));
        if !text.contains('*') {
            let (host, port) =
                parse_authority(text, Some(WEB_PORTS[0])).map_err(|error| wrong(error.reason.to_string()))?;
            return Ok(Self { names: Names::One(host), port: has_port.then_some(port) });
        }
        // A star represents a part of a label, so replacing it must give a valid name.
        let (name, port) = parse_authority(&text.replace('*', "x"), Some(WEB_PORTS[0]))
            .map_err(|_| wrong("a pattern is a name in ASCII in which `*` stands for parts of a label".into()))?;
        if !matches!(name, Host::Name(_)) || !text.is_ascii() {
            return Err(wrong("`*` is allowed only in names in ASCII (`xn--…`)".into()));
        }
        let pattern = text.rsplit_once(':').map_or(text, |(name, _)| name).to_ascii_lowercase();
        if !pattern.contains('.') {
            return Err(wrong("`*` must be below a domain: `*.example.com` is every name below example.com".into()));
        }
        if let Ok(Host::Address(_)) | Err(InvalidHost { reason: InvalidHostReason::Notation(_), .. }) =
            Host::parse(&pattern.replace('*', "1"))
        {
            return Err(wrong("`*` is allowed only in names: list each address".into()));
        }
        Ok(Self { names: Names::Many(pattern.into()), port: has_port.then_some(port) })
    }
}

impl Names {
    fn fit(&self, host: &Host) -> bool {
        match (self, host) {
            (Self::All, _) => true,
            (Self::One(one), host) => one == host,
            (Self::Many(pattern), Host::Name(name)) => host_matches(pattern, name),
            (Self::Many(_), Host::Address(_)) => false,
        }
    }
}

/// Error for a pattern that matches no host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not a valid host pattern: {reason}", shown(.pattern))]
pub struct InvalidHostPattern {
    pattern: String,
    reason: String,
}

#[cfg(test)]
mod tests;
