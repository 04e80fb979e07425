//! Paths of a run to which tools are offered: the program `tool`, which is this program, and the socket that connects
//! it to the runtime. Both are only in the root of that run, where no process can create or move files, and not on
//! disk.

use std::{fs, path::Path};

/// Folder in a run that contains the program `tool` and the socket for its calls.
pub(super) const PLACE: &str = "/run/toolstead";
/// Folder in a run that contains the program `tool` and is on the run's `PATH`.
pub(super) const FOLDER: &str = "/run/toolstead/bin";
/// Path of the program `tool` in a run.
pub(super) const PROGRAM: &str = "/run/toolstead/bin/tool";
/// Path of the socket in a run that connects the program `tool` to the runtime.
pub const SOCKET: &str = "/run/toolstead/tools";
/// Variable with the path of the socket, for programs that use it directly.
pub const VARIABLE: &str = "TOOLSTEAD_TOOLS";

/// Returns `true` if this process is the program `tool` of a run, whatever its name is.
pub fn is_program() -> bool {
    fs::read_link("/proc/self/exe").is_ok_and(|path| path == Path::new(PROGRAM))
}
