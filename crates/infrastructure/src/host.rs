//! What the machine says of itself: no path of a call is involved.

pub mod disks;
pub mod interfaces;
pub mod machine;

use std::{fs::File, io::Read};

/// As much is read of a file of the system.
const MAX_SYSTEM_FILE_BYTES: u64 = 1 << 20;
const TIME_ZONES: &str = "/usr/share/zoneinfo";

/// A text file of the system; `None` where there is none.
fn system_file(path: &str) -> Option<String> {
    Some(String::from_utf8_lossy(&system_bytes(path)?).into_owned())
}

/// The file of a time zone (TZif, RFC 9636), as in `Europe/Berlin`; `None` if the system knows none of that name. Blocks
/// for moments.
pub fn time_zone(name: &str) -> Option<Vec<u8>> {
    let is_part = |part: &str| {
        !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '+'))
    };
    if name.len() > 64 || !name.split('/').all(is_part) {
        return None;
    }
    system_bytes(&format!("{TIME_ZONES}/{name}"))
}

/// The name of the system's own time zone, as in `Europe/Berlin`; `None` where it does not say one. What the environment
/// says of a time zone is not in it. Blocks for moments.
#[expect(clippy::disallowed_methods, reason = "a file of the system under a name of our own, not of a caller")]
pub fn local_time_zone_name() -> Option<String> {
    let link = std::fs::read_link("/etc/localtime").ok().and_then(|target| target.to_str().map(str::to_owned));
    let linked = link.and_then(|target| Some(target.split_once("zoneinfo/")?.1.to_owned()));
    linked.or_else(|| Some(system_file("/etc/timezone")?.trim().to_owned())).filter(|name| time_zone(name).is_some())
}

#[expect(clippy::disallowed_methods, reason = "files of the system under names of our own, not of a caller")]
fn system_bytes(path: &str) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    File::open(path).ok()?.take(MAX_SYSTEM_FILE_BYTES).read_to_end(&mut content).ok()?;
    Some(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_no_zones_lead_to_no_file() {
        for name in ["", "/etc/passwd", "../../../etc/passwd", "Europe/../UTC", "Nowhere/At_All", "a\0b"] {
            assert_eq!(time_zone(name), None, "{name:?}");
        }
    }
}
