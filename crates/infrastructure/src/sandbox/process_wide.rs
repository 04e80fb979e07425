//! All that there can be one of in a process, whatever the number of launchers and workspaces. Nothing else of the
//! sandbox is global: what is here is a fact about this process and its machine, or a bound that the system sets it.

use super::{
    launcher::{Launcher, Shared},
    self_test,
    workspace::seats::FileSeats,
};
use std::{io, sync::atomic::AtomicBool};

/// The one value of it.
pub(super) static PROCESS: ProcessWide = ProcessWide {
    has_helper_door: AtomicBool::new(false),
    launchers: Shared::new(|launcher| Box::pin(self_test::tier(launcher))),
    file_seats: FileSeats::new(),
};

/// What this process has once.
#[derive(Debug)]
pub(super) struct ProcessWide {
    /// Whether this process can be its own helper: its `main` began with [`enter`](super::helper::enter). Without it, a
    /// foreign program would run its own `main` a second time, with whatever that does.
    pub(super) has_helper_door: AtomicBool,
    /// The processes that start confined programs, what is known of the machine, and the threads for look-ups.
    pub(super) launchers: Shared,
    /// The descriptors that changes of files hold.
    pub(super) file_seats: FileSeats,
}

impl Launcher {
    /// Starts the launching thread.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub fn start() -> io::Result<Self> {
        Self::sharing(&PROCESS.launchers)
    }
}

/// Test programs have a `main` of their own; this runs before it, as the first line of ours would.
#[cfg(test)]
#[expect(unsafe_code, reason = "only the linker can put something before `main`")]
mod test_door {
    extern "C" fn before_main() {
        super::PROCESS.launchers.zygotes.enter();
        crate::sandbox::self_test::enter();
    }

    #[used]
    #[unsafe(link_section = ".init_array")]
    static BEFORE_MAIN: extern "C" fn() = before_main;
}
