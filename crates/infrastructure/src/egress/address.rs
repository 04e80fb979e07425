//! Classification of IP addresses: on the public internet, or not.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Checks that an address is on the public internet.
///
/// An IPv4 address in an IPv6 form (mapped, compatible, NAT64) is checked as an IPv4 address.
///
/// # Errors
/// [`NotGlobal`] with the range that contains the address.
pub fn check_public(address: IpAddr) -> Result<(), NotGlobal> {
    let range = match address {
        IpAddr::V4(v4) => range_of_v4(v4),
        IpAddr::V6(v6) => match embedded(v6) {
            Some(v4) => range_of_v4(v4),
            None => range_of_v6(v6),
        },
    };
    range.map_or(Ok(()), |range| Err(NotGlobal { address, range }))
}

/// Error for an address that is not on the public internet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{address} is not a public address but {}", .range.as_str())]
pub struct NotGlobal {
    /// Address that was checked.
    pub address: IpAddr,
    /// Range that contains the address.
    pub range: NonPublicRange,
}

/// Range of an address that is not public.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NonPublicRange {
    /// Addresses of this machine.
    Loopback,
    /// A private network: RFC 1918, shared (RFC 6598), unique local (RFC 4193).
    Private,
    /// Link-local addresses, where cloud machines find their metadata and credentials.
    LinkLocal,
    /// Addresses with metadata and credentials outside of the link-local range, in private networks or on the public
    /// internet.
    Metadata,
    /// Addresses without a host to connect to: unspecified, multicast, broadcast, reserved, documentation, benchmarks,
    /// and all IPv6 addresses that are neither global unicast nor a form of IPv4.
    Special,
}

impl NonPublicRange {
    /// Returns a description that follows "is" or "but".
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Loopback => "this machine itself",
            Self::Private => "part of a private network",
            Self::LinkLocal => "a link-local one",
            Self::Metadata => "a cloud metadata address",
            Self::Special => "a reserved one",
        }
    }

    /// Returns `true` if the configuration may permit the range for a host that it names.
    pub fn can_be_opened(self) -> bool {
        matches!(self, Self::Loopback | Self::Private)
    }
}

/// IPv4 networks that are not public, each with its prefix length. The first match counts.
const V4: &[(Ipv4Addr, u32, NonPublicRange)] = &[
    (Ipv4Addr::new(0, 0, 0, 0), 8, NonPublicRange::Special),
    (Ipv4Addr::new(10, 0, 0, 0), 8, NonPublicRange::Private),
    // Alibaba Cloud.
    (Ipv4Addr::new(100, 100, 100, 200), 32, NonPublicRange::Metadata),
    (Ipv4Addr::new(100, 64, 0, 0), 10, NonPublicRange::Private),
    (Ipv4Addr::new(127, 0, 0, 0), 8, NonPublicRange::Loopback),
    // Azure.
    (Ipv4Addr::new(168, 63, 129, 16), 32, NonPublicRange::Metadata),
    (Ipv4Addr::new(169, 254, 0, 0), 16, NonPublicRange::LinkLocal),
    (Ipv4Addr::new(172, 16, 0, 0), 12, NonPublicRange::Private),
    (Ipv4Addr::new(192, 0, 0, 0), 24, NonPublicRange::Special),
    (Ipv4Addr::new(192, 0, 2, 0), 24, NonPublicRange::Special),
    (Ipv4Addr::new(192, 168, 0, 0), 16, NonPublicRange::Private),
    (Ipv4Addr::new(198, 18, 0, 0), 15, NonPublicRange::Special),
    (Ipv4Addr::new(198, 51, 100, 0), 24, NonPublicRange::Special),
    (Ipv4Addr::new(203, 0, 113, 0), 24, NonPublicRange::Special),
    (Ipv4Addr::new(224, 0, 0, 0), 3, NonPublicRange::Special),
];

/// IPv6 networks, each with its prefix length and range; `None` is public. The first match counts. An address without a
/// match is not global, because only 2000::/3 is.
const V6: &[(Ipv6Addr, u32, Option<NonPublicRange>)] = &[
    (Ipv6Addr::LOCALHOST, 128, Some(NonPublicRange::Loopback)),
    // Amazon and Google.
    (Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254), 128, Some(NonPublicRange::Metadata)),
    (Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254), 128, Some(NonPublicRange::Metadata)),
    (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7, Some(NonPublicRange::Private)),
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10, Some(NonPublicRange::LinkLocal)),
    // Teredo, documentation, 6to4, documentation.
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 32, Some(NonPublicRange::Special)),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32, Some(NonPublicRange::Special)),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16, Some(NonPublicRange::Special)),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20, Some(NonPublicRange::Special)),
    (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3, None),
];

fn range_of_v4(address: Ipv4Addr) -> Option<NonPublicRange> {
    let fits = |(network, length, _): &&(Ipv4Addr, u32, NonPublicRange)| {
        (address.to_bits() ^ network.to_bits()).leading_zeros() >= *length
    };
    V4.iter().find(fits).map(|(.., range)| *range)
}

fn range_of_v6(address: Ipv6Addr) -> Option<NonPublicRange> {
    let fits = |(network, length, _): &&(Ipv6Addr, u32, Option<NonPublicRange>)| {
        (address.to_bits() ^ network.to_bits()).leading_zeros() >= *length
    };
    V6.iter().find(fits).map_or(Some(NonPublicRange::Special), |(.., range)| *range)
}

/// Returns the IPv4 address that receives packets to this IPv6 address; `None` if it contains no IPv4 address.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let last = || {
        let [.., a, b, c, d] = address.octets();
        Some(Ipv4Addr::new(a, b, c, d))
    };
    match address.segments() {
        // Unspecified and loopback would otherwise be the compatible forms of 0.0.0.0 and 0.0.0.1.
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => None,
        // Compatible; mapped; NAT64 (RFC 6052) and NAT64 of a site (RFC 8215). A site that uses another prefix of its
        // 64:ff9b:1::/48 may put the IPv4 address elsewhere. Such an address cannot be decoded and counts as not
        // global.
        [0, 0, 0, 0, 0, 0 | 0xffff, ..] | [0x64, 0xff9b, 0 | 1, 0, 0, 0, ..] => last(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(text: &str, range: Option<NonPublicRange>) {
        let address = text.parse().unwrap();
        assert_eq!(check_public(address).err().map(|error| error.range), range, "{text}");
    }

    #[test]
    fn public_addresses_are_global() {
        for text in [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "93.184.216.34",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "168.63.129.15",
            "168.63.129.17",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.0.3.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "198.51.99.255",
            "203.0.114.0",
            "223.255.255.255",
            "2000::",
            "2001:1::1",
            "2001:4860:4860::8888",
            "2606:4700::1111",
            "3fff:1000::",
            "::ffff:8.8.8.8",
            "64:ff9b::8.8.8.8",
            "64:ff9b:1::8.8.8.8",
            "::8.8.8.8",
        ] {
            check(text, None);
        }
    }

    #[test]
    fn non_public_addresses_are_classified_by_range_in_every_notation() {
        use NonPublicRange::{LinkLocal, Loopback, Metadata, Private, Special};
        for (text, range) in [
            ("0.0.0.0", Special),
            ("0.255.255.255", Special),
            ("10.0.0.0", Private),
            ("10.255.255.255", Private),
            ("100.64.0.0", Private),
            ("100.100.100.199", Private),
            ("100.100.100.200", Metadata),
            ("::ffff:100.100.100.200", Metadata),
            ("100.127.255.255", Private),
            ("127.0.0.1", Loopback),
            ("127.255.255.255", Loopback),
            ("168.63.129.16", Metadata),
            ("::ffff:168.63.129.16", Metadata),
            ("64:ff9b::168.63.129.16", Metadata),
            ("169.254.0.0", LinkLocal),
            ("169.254.169.254", LinkLocal),
            ("172.16.0.0", Private),
            ("172.31.255.255", Private),
            ("192.0.0.0", Special),
            ("192.0.0.255", Special),
            ("192.0.2.1", Special),
            ("192.168.0.0", Private),
            ("192.168.255.255", Private),
            ("198.18.0.0", Special),
            ("198.19.255.255", Special),
            ("198.51.100.7", Special),
            ("203.0.113.7", Special),
            ("224.0.0.1", Special),
            ("240.0.0.0", Special),
            ("255.255.255.255", Special),
            ("::", Special),
            ("::1", Loopback),
            ("::2", Special),
            ("fc00::1", Private),
            ("fdff:ffff::1", Private),
            ("fd00:ec2::253", Private),
            ("fd00:ec2::254", Metadata),
            ("fd20:ce::254", Metadata),
            ("fe80::1", LinkLocal),
            ("fec0::1", Special),
            ("ff02::1", Special),
            ("100::1", Special),
            ("1fff:ffff::1", Special),
            ("4000::1", Special),
            ("5f00::1", Special),
            ("2001::1", Special),
            ("2001:0:53aa:64c:0:0:f5ff:fffe", Special),
            ("2001:db8::1", Special),
            ("2002:7f00:1::1", Special),
            ("2002:808:808::1", Special),
            ("3fff::1", Special),
            ("3fff:fff:ffff::1", Special),
            ("::ffff:127.0.0.1", Loopback),
            ("::ffff:169.254.169.254", LinkLocal),
            ("::127.0.0.1", Loopback),
            ("::10.0.0.1", Private),
            ("64:ff9b::127.0.0.1", Loopback),
            ("64:ff9b::169.254.169.254", LinkLocal),
            ("64:ff9b:1::192.168.0.1", Private),
            ("64:ff9b:1:a00:0:100::", Special),
            ("64:ff9b:1:1::8.8.8.8", Special),
            ("64:ff9b:2::8.8.8.8", Special),
            ("::ffff:0:127.0.0.1", Special),
        ] {
            check(text, Some(range));
        }
    }

    /// Returns all forms of an IPv4 address in IPv6, including some that only translators of a site know.
    fn forms(v4: Ipv4Addr, filling: u64) -> Vec<Ipv6Addr> {
        let bits = u128::from(v4.to_bits());
        let filling = u128::from(filling);
        let site = 0x64_ff9b_0001_u128 << 80;
        let mut forms = vec![
            Ipv6Addr::from_bits(bits),
            v4.to_ipv6_mapped(),
            Ipv6Addr::from_bits(0xffff_0000_u128 << 32 | bits),
            Ipv6Addr::from_bits(0x64_ff9b_u128 << 96 | bits),
            Ipv6Addr::from_bits(site | bits),
            // 6to4 and Teredo.
            Ipv6Addr::from_bits(0x2002_u128 << 112 | bits << 80 | filling),
            Ipv6Addr::from_bits(0x2001_u128 << 112 | filling << 32 | (!bits & 0xffff_ffff)),
        ];
        // In 0.0.0.0/8, these forms look the same as an address after a prefix of 96 bits.
        if v4.octets()[0] != 0 {
            forms.extend([
                // RFC 6052: after a prefix of 48, 56 and 64 bits, around the eight bits that are zero.
                Ipv6Addr::from_bits(site | (bits >> 16) << 64 | (bits & 0xffff) << 40 | filling & 0xff_ffff_ffff),
                Ipv6Addr::from_bits(site | (bits >> 24) << 64 | (bits & 0xff_ffff) << 32 | filling & 0xffff_ffff),
                Ipv6Addr::from_bits(site | bits << 24 | filling & 0xff_ffff),
            ]);
        }
        forms
    }

    fn not_global() -> impl Strategy<Value = Ipv4Addr> {
        (prop::sample::select(V4), any::<u32>()).prop_map(|((network, length, _), host)| {
            Ipv4Addr::from_bits(network.to_bits() | host & u32::MAX.checked_shr(length).unwrap_or(0))
        })
    }

    proptest! {
        #[test]
        fn non_global_ipv4_addresses_stay_non_global_when_embedded_in_ipv6(v4 in not_global(), filling: u64) {
            prop_assert!(check_public(v4.into()).is_err());
            for form in forms(v4, filling) {
                prop_assert!(check_public(form.into()).is_err(), "{} as {}", v4, form);
            }
        }

        #[test]
        fn outside_2000_slash_3_only_embedded_public_ipv4_addresses_are_global(bits: u128) {
            let address = Ipv6Addr::from_bits(bits);
            if check_public(address.into()).is_ok() && bits >> 125 != 1 {
                prop_assert_eq!(embedded(address).map(|v4| check_public(v4.into())), Some(Ok(())));
            }
        }
    }
}
