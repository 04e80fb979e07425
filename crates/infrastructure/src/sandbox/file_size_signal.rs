//! `SIGXFSZ`, which the kernel sends to a process that writes beyond its file size limit (`ulimit -f`).

use std::{os::unix::process::CommandExt, process::Command};

/// Ignores `SIGXFSZ`, so that a write beyond the file size limit fails with `EFBIG` and does not end the process with
/// all its calls. Programs that the process starts inherit this, unless [`restore`] runs in between.
pub(super) fn ignore() {
    // SAFETY: no handler is passed.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// Restores the default action of `SIGXFSZ` in this process. May run between fork and exec.
pub(super) fn restore() {
    // SAFETY: no handler is passed.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_DFL) };
}

/// Restores the default action of `SIGXFSZ` in the program that the command starts.
pub(super) fn restore_in(command: &mut Command) {
    let restored = || {
        restore();
        Ok(())
    };
    // SAFETY: the closure makes one system call.
    unsafe { command.pre_exec(restored) };
}
