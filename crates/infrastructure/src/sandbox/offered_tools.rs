//! The places of a run to which tools are offered: the program `tool`, which is this program again, and the socket that
//! leads from it to the runtime. Both stand in the root of that run alone, where nobody makes or moves anything, and on no
//! disk.

use std::{fs, path::Path};

/// The places of both in the run.
pub(super) const PLACE: &str = "/run/toolstead";
/// The folder on its `PATH`.
pub(super) const FOLDER: &str = "/run/toolstead/bin";
/// The program.
pub(super) const PROGRAM: &str = "/run/toolstead/bin/tool";
/// The socket.
pub const SOCKET: &str = "/run/toolstead/tools";
/// The variable that names the socket to programs that speak on it by themselves.
pub const VARIABLE: &str = "TOOLSTEAD_TOOLS";

/// Tells whether this process is the program `tool` of a run, whatever it was called by.
pub fn is_program() -> bool {
    fs::read_link("/proc/self/exe").is_ok_and(|path| path == Path::new(PROGRAM))
}
