//! Mail addresses: `local@host`, with nothing around it.

use url::Host;

/// Maximum length of the part before the `@`, and of an address, in bytes (RFC 5321, section 4.5.3.1).
const LOCAL_BYTES: usize = 64;
const ADDRESS_BYTES: usize = 254;
/// Maximum length of a label of a host, in bytes (RFC 1035, section 2.3.4).
const LABEL_BYTES: usize = 63;

/// Parses an address, and converts its host to the ASCII form (`xn--…`), so that no letter can be mistaken for another.
/// The result contains no blank, comma, semicolon or bracket.
///
/// # Errors
/// The reason why the text is not an address.
pub(super) fn read(text: &str) -> Result<String, &'static str> {
    let (local, host) = text.rsplit_once('@').ok_or("it has no `@`")?;
    // A dot-atom (RFC 5322, section 3.2.3).
    let is_atom = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~.".contains(c);
    if local.is_empty() || local.len() > LOCAL_BYTES || !local.chars().all(is_atom) {
        return Err("before the `@`, only letters, digits and dots are allowed, without quotes and blanks");
    }
    if local.starts_with('.') || local.ends_with('.') || local.contains("..") {
        return Err("it has a dot at an end, or two in a row");
    }
    let host = match Host::parse(host) {
        Ok(Host::Domain(host)) if host.contains('.') && host.split('.').all(is_label) => host,
        _ => return Err("it has no domain after the `@`"),
    };
    let address = format!("{local}@{host}");
    if address.len() > ADDRESS_BYTES { Err("it is too long") } else { Ok(address) }
}

/// Returns `true` if the label consists of letters, digits and hyphens; `url` accepts more.
fn is_label(label: &str) -> bool {
    (1..=LABEL_BYTES).contains(&label.len())
        && !label.starts_with('-')
        && !label.ends_with('-')
        && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn mail_addresses_are_validated_and_their_host_is_converted_to_ascii() {
        for (text, expected) in [
            ("ann@example.com", Ok("ann@example.com")),
            ("ANN.e+x@EXAMPLE.com", Ok("ANN.e+x@example.com")),
            ("ann@b\u{fc}cher.example", Ok("ann@xn--bcher-kva.example")),
            ("ann", Err("no `@`")),
            ("ann@b@example.com", Err("before the `@`")),
            ("a..b@example.com", Err("a dot")),
            ("ann@localhost", Err("no domain")),
            ("ann@127.0.0.1", Err("no domain")),
            ("ann@example.com\r\nBcc: eve@example.com", Err("before the `@`")),
            ("ann@example.com\r\n", Err("no domain")),
            (" ann@example.com", Err("before the `@`")),
        ] {
            match (read(text), expected) {
                (Ok(address), Ok(expected)) => assert_eq!(address, expected, "{text:?}"),
                (Err(why), Err(expected)) => assert!(why.contains(expected), "{text:?}: {why}"),
                (found, expected) => panic!("{text:?}: {found:?}, and not {expected:?}"),
            }
        }
    }

    proptest! {
        #[test]
        fn a_parsed_mail_address_has_no_separators_and_parses_to_itself(text in "[ -~\r\n\u{a0}-\u{2fff}]{0,30}@[a-z.,;@ \r\n\u{a0}-\u{2fff}-]{0,30}") {
            if let Ok(address) = read(&text) {
                prop_assert_eq!(address.matches('@').count(), 1);
                prop_assert!(address.chars().all(|c| c.is_ascii_graphic() && !",;<>\"()[]\\:".contains(c)));
                prop_assert_eq!(read(&address), Ok(address));
            }
        }
    }
}
