//! State that exists once per process, whatever the number of launchers and workspaces. The sandbox has no other global
//! state: these are facts about this process and its machine, or limits of the system.

use super::{
    launcher::{Launcher, SharedLauncherState},
    self_test,
    workspace::open_file_limit::OpenFileLimiter,
};
use std::{io, sync::atomic::AtomicBool};

pub(super) static PROCESS: SandboxGlobalState = SandboxGlobalState {
    has_helper_door: AtomicBool::new(false),
    launchers: SharedLauncherState::new(|launcher| Box::pin(self_test::tier(launcher))),
    open_file_limit: OpenFileLimiter::new(),
};

/// State that this process has once.
#[derive(Debug)]
pub(super) struct SandboxGlobalState {
    /// `true` once this process can be its own helper, because its `main` began with [`enter`](super::helper::enter).
    /// Without that call, an arbitrary program would run its `main` a second time.
    pub(super) has_helper_door: AtomicBool,
    /// Zygotes, cached facts about the machine, and threads for lookups.
    pub(super) launchers: SharedLauncherState,
    /// Limiter of the descriptors that file changes hold.
    pub(super) open_file_limit: OpenFileLimiter,
}

impl Launcher {
    /// Starts the launching thread.
    ///
    /// # Errors
    /// If the system cannot create a thread.
    pub fn start() -> io::Result<Self> {
        Self::sharing(&PROCESS.launchers)
    }
}

/// Test programs have their own `main`. This runs before it, as the first line of Toolstead's `main` would.
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
