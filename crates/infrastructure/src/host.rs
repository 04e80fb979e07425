//! Information about the machine. No path comes from a call.

pub mod disks;
pub mod interfaces;
pub mod machine;

use std::{fs::File, io::Read};

/// Maximum number of bytes that are read from a system file.
const MAX_SYSTEM_FILE_BYTES: u64 = 1 << 20;
const TIME_ZONES: &str = "/usr/share/zoneinfo";

/// Returns the text of a system file, or `None` if it cannot be read.
fn system_file(path: &str) -> Option<String> {
    Some(String::from_utf8_lossy(&system_bytes(path)?).into_owned())
}

/// Returns the file of a time zone such as `Europe/Berlin` (TZif, RFC 9636), or `None` if the system does not have it.
/// Blocks briefly.
pub fn time_zone(name: &str) -> Option<Vec<u8>> {
    let is_part = |part: &str| {
        !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '+'))
    };
    if name.len() > 64 || !name.split('/').all(is_part) {
        return None;
    }
    system_bytes(&format!("{TIME_ZONES}/{name}"))
}

/// Returns the name of the system's time zone, such as `Europe/Berlin`, or `None` if it is not configured. Ignores the
/// environment. Blocks briefly.
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
    fn invalid_time_zone_names_resolve_to_no_zone_file() {
        for name in ["", "/etc/passwd", "../../../etc/passwd", "Europe/../UTC", "Nowhere/At_All", "a\0b"] {
            assert_eq!(time_zone(name), None, "{name:?}");
        }
    }
}
