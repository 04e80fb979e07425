use super::*;
use proptest::prelude::*;

#[test]
fn host_names_and_addresses_are_parsed_and_normalized() {
    for (text, shown) in [
        ("example.com", "example.com"),
        ("EXAMPLE.Com", "example.com"),
        ("localhost", "localhost"),
        ("a_b-c.example.com", "a_b-c.example.com"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("例え.jp", "xn--r8jz45g.jp"),
        ("ｅｘａｍｐｌｅ．ｃｏｍ", "example.com"),
        ("1.1.1.1", "1.1.1.1"),
        ("[2606:4700::1111]", "[2606:4700::1111]"),
        ("[::ffff:1.2.3.4]", "[::ffff:1.2.3.4]"),
        ("1e100.net", "1e100.net"),
        ("0x.example", "0x.example"),
    ] {
        assert_eq!(Host::parse(text).map(|host| host.to_string()).as_deref(), Ok(shown), "{text}");
    }
    assert!(matches!(Host::parse("1.1.1.1"), Ok(Host::Address(_))));
    assert!(matches!(Host::parse("1.1.1.1.nip.io"), Ok(Host::Name(_))));
}

#[test]
fn rejects_nonstandard_ipv4_notations_and_suggests_the_address() {
    for (text, address) in [
        ("2130706433", "127.0.0.1"),
        ("0x7f000001", "127.0.0.1"),
        ("0X7F000001", "127.0.0.1"),
        ("017700000001", "127.0.0.1"),
        ("0177.0.0.1", "127.0.0.1"),
        ("0177.0.0.01", "127.0.0.1"),
        ("0x7f.0.0.1", "127.0.0.1"),
        ("0x7f.0x0.0x0.0x1", "127.0.0.1"),
        ("127.1", "127.0.0.1"),
        ("127.0.1", "127.0.0.1"),
        ("127.65534", "127.0.255.254"),
        ("127.0.0.001", "127.0.0.1"),
        ("0", "0.0.0.0"),
        ("2852039166", "169.254.169.254"),
        ("0xa9fea9fe", "169.254.169.254"),
        ("169.254.43518", "169.254.169.254"),
        ("0251.0376.0251.0376", "169.254.169.254"),
        ("１２７.0.0.1", "127.0.0.1"),
        ("①②⑦.0.0.1", "127.0.0.1"),
        ("127。0。0。1", "127.0.0.1"),
        ("127.0.0.1\u{ad}", "127.0.0.1"),
    ] {
        let error = Host::parse(text).expect_err(text).to_string();
        assert!(error.contains(&format!("did you mean {address}?")), "{text}: {error}");
    }
}

#[test]
fn rejects_text_that_is_not_a_valid_host() {
    let long_label = "a".repeat(64) + ".com";
    let long_name = vec!["a".repeat(63); 4].join(".") + ".com";
    let longer = "ä".repeat(5000);
    for text in [
        "",
        ".",
        "..",
        "example.com.",
        "127.0.0.1.",
        ".example.com",
        "a..b",
        "user@example.com",
        "example.com@evil.net",
        "example.com/path",
        "example.com\\evil.net",
        "example.com?x",
        "example.com#x",
        "example.com:443",
        "example.com%00.evil.net",
        "%65xample.com",
        "127%2e0.0.1",
        "example.com\0.evil.net",
        "example.com\r\nHost: evil.net",
        "exam\u{7f}ple.com",
        "exam ple.com",
        "exam\u{a0}ple.com",
        "exa\u{85}mple.com",
        "-a.example.com",
        "a-.example.com",
        "--help",
        "*.example.com",
        "a,b.com",
        "a;b.com",
        "$(id).com",
        "example.com!",
        "1.2.3.4.5",
        "256.256.256.256",
        "1.2.3.08",
        "example.0x7f",
        "example.123",
        "0x100000000",
        "::1",
        "[::1",
        "::1]",
        "[]",
        "[1.2.3.4]",
        "[fe80::1%eth0]",
        "[fe80::1%25eth0]",
        "[::1]x",
        "[[::1]]",
        "xn--",
        "xn--a\u{0}",
        "a\u{202e}b.com",
        "\u{200d}",
        long_label.as_str(),
        long_name.as_str(),
        longer.as_str(),
    ] {
        let error = Host::parse(text).expect_err(text).to_string();
        assert!(error.len() < 600 && !error.contains(char::is_control), "{text:?}: {error:?}");
    }
}

#[test]
fn an_authority_is_a_host_and_a_port() {
    for (text, default, shown) in [
        ("example.com:443", None, Some("example.com 443")),
        ("example.com", Some(80), Some("example.com 80")),
        ("example.com", None, None),
        ("[::1]:8080", None, Some("[::1] 8080")),
        ("[::1]", Some(80), Some("[::1] 80")),
        ("::1", Some(80), None),
        ("1.2.3.4:1", None, Some("1.2.3.4 1")),
        ("example.com:", Some(80), None),
        ("example.com:0", None, None),
        ("example.com:65536", None, None),
        ("example.com:+80", None, None),
        ("example.com:80:80", None, None),
        ("user:pw@example.com:443", None, None),
        (":443", None, None),
    ] {
        let read = parse_authority(text, default).ok().map(|(host, port)| format!("{host} {port}"));
        assert_eq!(read.as_deref(), shown, "{text}");
    }
}

#[test]
fn host_patterns_match_hosts_on_their_listed_or_default_ports() {
    let listed = |patterns: &[&str], host: &str, port| {
        HostPatterns::parse(patterns).unwrap().match_host(&Host::parse(host).unwrap(), port)
    };
    use HostMatchResult::{No, OtherPort, Yes};
    for (patterns, host, port, expected) in [
        (&[][..], "example.com", 443, No),
        (&["example.com"], "example.com", 443, Yes),
        (&["Example.COM"], "EXAMPLE.com", 80, Yes),
        (&["example.com"], "example.com", 22, OtherPort),
        (&["example.com"], "www.example.com", 443, No),
        (&["example.com"], "example.com.evil.net", 443, No),
        (&["example.com:22"], "example.com", 22, Yes),
        (&["example.com:22"], "example.com", 443, OtherPort),
        (&["example.com:22", "example.com"], "example.com", 443, Yes),
        (&["*.example.com"], "a.b.example.com", 443, Yes),
        (&["*.example.com"], "example.com", 443, No),
        (&["*.example.com"], "badexample.com", 443, No),
        (&["*.Example.com:8080"], "a.example.com", 8080, Yes),
        (&["api-*.example.com"], "api-1.example.com", 443, Yes),
        (&["api-*.example.com"], "api-1.x.example.com", 443, No),
        (&["bücher.example"], "xn--bcher-kva.example", 443, Yes),
        (&["10.0.0.1"], "10.0.0.1", 80, Yes),
        (&["10.0.0.1"], "[::ffff:10.0.0.1]", 80, No),
        (&["[fd00::1]:5432"], "[fd00:0::1]", 5432, Yes),
        (&["*.*.*.x1"], "1.2.3.4", 80, No),
    ] {
        assert_eq!(listed(patterns, host, port), expected, "{patterns:?} {host} {port}");
    }
}

#[test]
fn rejects_invalid_or_too_broad_host_patterns() {
    for (pattern, reason) in [
        ("", "empty"),
        ("*", "must be below a domain"),
        ("*:80", "must be below a domain"),
        ("https://example.com", "without `https://`"),
        ("example.com/x", "invalid in a host name"),
        ("*.example.com/x", "a pattern is"),
        ("**", "must be below a domain"),
        ("10.*", "each address"),
        ("10.0.0.*:80", "each address"),
        ("127.1", "did you mean 127.0.0.1?"),
        ("*.bücher.example", "xn--"),
        ("example.com:x", "with a port"),
        ("[::*]", "a pattern is"),
        ("*..com", "a pattern is"),
    ] {
        let error = HostPatterns::parse([pattern]).expect_err(pattern).to_string();
        assert!(error.contains(reason), "{pattern}: {error}");
    }
}

proptest! {
    #[test]
    fn a_parsed_host_is_plain_ascii_and_parses_to_the_same_host(text in "\\PC{0,30}|[0-9a-fx.]{1,16}|[a-zA-Z0-9._-]{1,40}") {
        if let Ok(host) = Host::parse(&text) {
            let shown = host.to_string();
            prop_assert!(shown.bytes().all(|byte| byte.is_ascii_graphic() && !b"@/\\?#%".contains(&byte)));
            prop_assert_eq!(Host::parse(&shown), Ok(host.clone()));
            // The system's resolver does not take any name for an address.
            if let Host::Name(name) = &host {
                let last = name.rsplit('.').next().unwrap();
                let is_number = |digits: &str, radix| digits.chars().all(|c: char| c.is_digit(radix));
                prop_assert!(!is_number(last, 10));
                prop_assert!(!last.strip_prefix("0x").is_some_and(|digits| is_number(digits, 16)));
            }
        }
    }

    #[test]
    fn no_other_notation_of_an_address_passes_as_a_name(bits: u32, form in 0_usize..6) {
        let [a, b, c, d] = bits.to_be_bytes();
        let text = match form {
            0 => format!("{bits}"),
            1 => format!("{bits:#x}"),
            2 => format!("0{bits:o}"),
            3 => format!("{a}.{}", bits & 0xff_ffff),
            4 => format!("{a}.{b}.{}", bits & 0xffff),
            _ => format!("{a:#x}.{b:#o}.0{c:o}.{d}").replace("0o", "0"),
        };
        prop_assert!(Host::parse(&text).is_err(), "{}", text);
    }
}
