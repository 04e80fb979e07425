//! The server with an allocator that counts.
#![expect(unsafe_code, reason = "an allocator cannot be written without it")]

use mimalloc::MiMalloc;
use std::{
    alloc::{GlobalAlloc, Layout},
    io::Read,
    process::ExitCode,
    sync::atomic::{AtomicU64, Ordering},
};
use toolstead_presentation::{
    cli::{exit::parsed, serve::ServeCommand},
    runtime,
};

/// The name under which this program is started as such a server.
pub(crate) const NAME: &str = "toolstead-server-counted";
/// First word of a line with counts.
pub(crate) const COUNTED: &str = "counted";

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The allocator of the binaries, which counts what is asked of it. What is made longer counts as allocated anew.
struct Counting;

fn count(bytes: usize) {
    ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
    BYTES.fetch_add(bytes as u64, Ordering::Relaxed);
}

// SAFETY: everything is passed on as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller keeps to the rules of this very function.
        unsafe { MiMalloc.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: as above.
        unsafe { MiMalloc.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        count(bytes);
        // SAFETY: as above.
        unsafe { MiMalloc.realloc(start, layout, bytes) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { MiMalloc.dealloc(start, layout) }
    }
}

pub(crate) fn is_counted_server() -> bool {
    std::env::args_os().next().is_some_and(|name| name == NAME)
}

/// Runs the server. A thread prints the counts for every byte on standard input.
pub(crate) fn serve() -> ExitCode {
    let serve: ServeCommand = parsed();
    std::thread::spawn(report);
    runtime::run_server(|cores| serve.run(cores), || ())
}

fn report() {
    let (mut input, mut request) = (std::io::stdin().lock(), [0]);
    while matches!(input.read(&mut request), Ok(1)) {
        let (allocations, bytes) = (ALLOCATIONS.load(Ordering::Relaxed), BYTES.load(Ordering::Relaxed));
        println!("{COUNTED} {allocations} {bytes}");
    }
}
