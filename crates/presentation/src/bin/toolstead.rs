//! The command line of Toolstead. Under the name `toolstead-server`, it is the server.

use mimalloc::MiMalloc;
use std::{env, ffi::OsStr, path::Path, process::ExitCode};
use toolstead_infrastructure::helper::enter_if_helper;
use toolstead_presentation::{
    cli::{Cli, exit::parsed, serve::ServeCommand},
    config::layers::environment::EnvironmentVariables,
    runtime, telemetry,
};

/// Allocator of this process. The system's own takes a lock if a thread frees memory that another thread allocated,
/// which applies to most memory of a call.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    enter_if_helper();
    if is_server() {
        let serve: ServeCommand = parsed();
        return runtime::run_server(|cores| serve.run(cores), give_back);
    }
    let cli: Cli = parsed();
    telemetry::start(cli.log(), &EnvironmentVariables::of_process());
    runtime::run(cli.run(), give_back)
}

/// Returns `true` if this program was started under the name of the server.
fn is_server() -> bool {
    let name = env::args_os().next();
    name.is_some_and(|name| Path::new(&name).file_name() == Some(OsStr::new("toolstead-server")))
}

/// Returns free memory to the system, and unmaps the code of this program. The system maps again what runs.
#[expect(
    unsafe_code,
    reason = "the allocator is written in C, and its crate does not offer this; the kernel takes addresses"
)]
fn give_back() {
    unsafe extern "C" {
        fn mi_collect(force: bool);
    }
    // SAFETY: The function takes no pointer and may be called by any thread at any time.
    unsafe { mi_collect(true) }
    for range in runtime::code_of_program() {
        let pages = std::ptr::with_exposed_provenance_mut(range.start);
        // SAFETY: The range is a private mapping of a file that nothing writes to: the next access reads the same bytes.
        unsafe { libc::madvise(pages, range.len(), libc::MADV_DONTNEED) };
    }
}
