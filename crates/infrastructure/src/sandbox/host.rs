//! What the machine says of itself: no path of a call is involved.

pub mod disks;
pub mod interfaces;
pub mod machine;
pub mod time_zone;

use std::{fs::File, io::Read};

/// As much is read of a file of the system.
const MAX_SYSTEM_FILE_BYTES: u64 = 1 << 20;

/// A text file of the system; `None` where there is none.
fn system_file(path: &str) -> Option<String> {
    Some(String::from_utf8_lossy(&system_bytes(path)?).into_owned())
}

#[expect(clippy::disallowed_methods, reason = "files of the system under names of our own, not of a caller")]
fn system_bytes(path: &str) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    File::open(path).ok()?.take(MAX_SYSTEM_FILE_BYTES).read_to_end(&mut content).ok()?;
    Some(content)
}
