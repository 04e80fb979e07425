//! The hosts that pages of a browser requested, as the browser reports them over its own connection.
//!
//! A browser also opens connections of its own, to services of its vendor or to hosts that it expects a page to
//! request. They look like those of pages, except that no page requested their host.

use crate::egress::host::Host;
use std::{
    collections::{HashSet, VecDeque},
    time::Duration,
};
use tokio::{sync::watch, time::timeout};
use url::Url;

/// Maximum number of hosts with their ports. The oldest are removed first: each request announces its host again.
const MAX_HOSTS: usize = 4_096;
/// Maximum time that a connection waits until its host is announced, because connection and announcement arrive on
/// different connections.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// Hosts and ports that pages of one browser requested.
#[derive(Debug, Default)]
pub struct PageRequestHosts(watch::Sender<PageRequestTargets>);

#[derive(Debug, Default)]
struct PageRequestTargets {
    known: HashSet<(Host, u16)>,
    oldest_first: VecDeque<(Host, u16)>,
}

impl PageRequestHosts {
    /// Adds the host and port of a URL. Ignores URLs that need no connection, and invalid ones.
    pub fn announce(&self, address: &str) {
        let needs_connection = ["http:", "https:", "ws:", "wss:"].iter().any(|scheme| address.starts_with(scheme));
        let Some(target) = needs_connection.then(|| target_of(address)).flatten() else { return };
        self.0.send_if_modified(|hosts| {
            let is_new = hosts.known.insert(target.clone());
            if is_new {
                hosts.oldest_first.push_back(target);
                if hosts.oldest_first.len() > MAX_HOSTS
                    && let Some(oldest) = hosts.oldest_first.pop_front()
                {
                    hosts.known.remove(&oldest);
                }
            }
            is_new
        });
    }

    /// Returns `true` once this host and port are announced, `false` if they are not within a second.
    pub(super) async fn includes(&self, host: &Host, port: u16) -> bool {
        let target = (host.clone(), port);
        let mut hosts = self.0.subscribe();
        let announced = hosts.wait_for(|hosts| hosts.known.contains(&target));
        matches!(timeout(MAX_WAIT, announced).await, Ok(Ok(_)))
    }
}

fn target_of(address: &str) -> Option<(Host, u16)> {
    let url = Url::parse(address).ok()?;
    Some((Host::parse(url.host_str()?).ok()?, url.port_or_known_default()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::egress::host::parse_authority;

    async fn is_announced(announced: &PageRequestHosts, target: &str) -> bool {
        let (host, port) = parse_authority(target, None).unwrap();
        announced.includes(&host, port).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_page_request_url_announces_only_its_own_host_and_port() {
        for (address, target, expected) in [
            ("http://Shop.example/a", "shop.example:80", true),
            ("https://shop.example/a", "shop.example:443", true),
            ("https://shop.example/a", "shop.example:80", false),
            ("https://shop.example/a", "www.shop.example:443", false),
            ("ws://shop.example:81/", "shop.example:81", true),
            ("wss://shop.example/", "shop.example:443", true),
            ("https://bücher.example/", "xn--bcher-kva.example:443", true),
            ("http://0x7f.1/", "127.0.0.1:80", true),
            ("http://[::1]:8080/", "[::1]:8080", true),
            ("https://user:word@shop.example/", "shop.example:443", true),
            ("blob:https://shop.example/1", "shop.example:443", false),
            ("data:text/html,https://shop.example/", "shop.example:443", false),
            ("ftp://shop.example/", "shop.example:21", false),
            ("https://", "shop.example:443", false),
        ] {
            let announced = PageRequestHosts::default();
            announced.announce(address);
            assert_eq!(is_announced(&announced, target).await, expected, "{address} {target}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_waits_a_second_for_its_announcement() {
        let announced = PageRequestHosts::default();
        let announcing = async {
            tokio::time::sleep(Duration::from_millis(900)).await;
            announced.announce("http://in-time.example/");
            tokio::time::sleep(Duration::from_millis(200)).await;
            announced.announce("http://late.example/");
        };
        let (in_time, late, ()) = tokio::join!(
            is_announced(&announced, "in-time.example:80"),
            is_announced(&announced, "late.example:80"),
            announcing
        );
        assert_eq!((in_time, late), (true, false));
    }

    #[tokio::test(start_paused = true)]
    async fn announced_hosts_are_limited_and_the_oldest_are_dropped() {
        let announced = PageRequestHosts::default();
        for number in 0..MAX_HOSTS + 10 {
            announced.announce(&format!("http://host{number}.example/"));
        }
        let counts = |hosts: &PageRequestTargets| (hosts.known.len(), hosts.oldest_first.len());
        assert_eq!(counts(&announced.0.borrow()), (MAX_HOSTS, MAX_HOSTS));
        assert!(!is_announced(&announced, "host9.example:80").await);
        assert!(is_announced(&announced, "host10.example:80").await);
    }
}
