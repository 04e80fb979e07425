//! The tokio runtimes of both binaries.

use crate::{cli::output::note, cores::RuntimePool};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use std::{env, fs, io, num::NonZero, ops::Range, path::Path, pin::pin, process::ExitCode, thread, time::Duration};
use tokio::runtime::{Builder, Runtime};
use toolstead_infrastructure::helper::end_helpers;

/// Maximum time for blocking threads to finish. A thread that reads from a terminal never finishes.
const LAST_WORK: Duration = Duration::from_millis(200);

/// Time after which memory that only the start used is returned to the system.
const AFTER_START: Duration = Duration::from_secs(1);

/// Interval between checks for memory that can be returned.
const BETWEEN_LOOKS: Duration = Duration::from_secs(2);
/// Increase in bytes from which on memory is returned.
const WORTH_GIVING_BACK: usize = 16 << 20;
/// Number of attempts to return memory. After that, the memory is considered to be in use.
const LOOKS_AT_A_PEAK: u32 = 15;

/// Maximum number of threads for blocking work, which the runtimes of the connections share.
const MAX_BLOCKING_THREADS: usize = 512;
/// Minimum number of threads for blocking work in each runtime of a server with many processors.
const MIN_BLOCKING_THREADS: usize = 16;

/// Runs a program to its end. `give_back` returns the free memory of the allocator and the pages of [`code_of_program`]
/// to the system.
pub fn run(program: impl Future<Output = ExitCode>, give_back: fn()) -> ExitCode {
    protect_memory();
    match Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => run_on(runtime, Vec::new(), program, give_back),
        Err(error) => not_started(&error),
    }
}

/// Runs the server like [`run`], with one more runtime of one thread for each processor, for connections and upstream
/// servers. The program itself, which accepts connections, has a runtime of its own.
pub fn run_server<F: Future<Output = ExitCode>>(server: impl FnOnce(RuntimePool) -> F, give_back: fn()) -> ExitCode {
    protect_memory();
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    let blocking = (MAX_BLOCKING_THREADS / processors).max(MIN_BLOCKING_THREADS);
    let runtime = |_| Builder::new_multi_thread().worker_threads(1).max_blocking_threads(blocking).enable_all().build();
    let (own, cores) = match (runtime(0), (0..processors).map(runtime).collect::<io::Result<Vec<_>>>()) {
        (Ok(own), Ok(cores)) => (own, cores),
        (Err(error), _) | (_, Err(error)) => return not_started(&error),
    };
    let program = server(RuntimePool::new(cores.iter().map(|runtime| runtime.handle().clone())));
    run_on(own, cores, program, give_back)
}

/// Makes the memory of this process inaccessible to other programs of the same user: it contains keys and tokens.
fn protect_memory() {
    if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        note(&format!("warning: other programs of this user may read the memory of this one: {error}"));
    }
}

fn not_started(error: &io::Error) -> ExitCode {
    note(&format!("error: the runtime cannot be started: {error}"));
    ExitCode::from(70)
}

fn run_on(runtime: Runtime, cores: Vec<Runtime>, program: impl Future<Output = ExitCode>, give_back: fn()) -> ExitCode {
    let looking = runtime.spawn(give_back_after_peaks(give_back));
    let code = runtime.block_on(give_back_after_start(program, give_back));
    looking.abort();
    // At the same time: each has work on blocking threads, such as ending the processes of a cancelled call.
    thread::scope(|scope| {
        for runtime in cores.into_iter().chain([runtime]) {
            scope.spawn(move || runtime.shutdown_timeout(LAST_WORK));
        }
    });
    // Helper processes end first, so that none of them exists once this process has ended.
    end_helpers();
    code
}

/// Runs the program. Returns memory to the system once, on this thread, which allocated most of the memory that the
/// start needed.
async fn give_back_after_start<T>(program: impl Future<Output = T>, give_back: fn()) -> T {
    let mut program = pin!(program);
    tokio::select! {
        done = &mut program => return done,
        () = tokio::time::sleep(AFTER_START) => give_back(),
    }
    program.await
}

/// Returns memory to the system after peaks: the allocator retains the memory of one large message until the next
/// allocation.
async fn give_back_after_peaks(give_back: fn()) {
    tokio::time::sleep(AFTER_START + BETWEEN_LOOKS).await;
    let Some(mut memory) = resident_bytes().map(MemoryPeakDetector::of) else { return };
    loop {
        tokio::time::sleep(BETWEEN_LOOKS).await;
        match resident_bytes() {
            Some(now) if memory.has_peaked(now) => give_back(),
            Some(_) => {}
            None => return,
        }
    }
}

/// Tracks the memory that is permanently in use.
struct MemoryPeakDetector {
    least: usize,
    /// Number of consecutive checks that found considerably more memory than `least`.
    peaks: u32,
}

impl MemoryPeakDetector {
    fn of(bytes: usize) -> Self {
        Self { least: bytes, peaks: 0 }
    }

    /// Returns `true` if more memory than usual is resident, which may still be in use. An amount found in every check
    /// becomes the usual amount.
    fn has_peaked(&mut self, now: usize) -> bool {
        if now <= self.least.saturating_add(WORTH_GIVING_BACK) || self.peaks == LOOKS_AT_A_PEAK {
            *self = Self::of(if self.peaks == LOOKS_AT_A_PEAK { now } else { self.least.min(now) });
            return false;
        }
        self.peaks += 1;
        true
    }
}

/// Returns the address ranges of the code and constants of this program, which are unmodified parts of its file. Most
/// of their resident pages were used only during the start, and each page fault maps 64 KiB.
pub fn code_of_program() -> Vec<Range<usize>> {
    match (env::current_exe(), fs::read_to_string("/proc/self/maps")) {
        (Ok(program), Ok(maps)) => code_in(&maps, &program),
        _ => Vec::new(),
    }
}

/// Returns the mappings of a program up to its code; empty if their layout is not known. None of them is ever written
/// to: the parts that the dynamic linker relocates follow the code.
fn code_in(maps: &str, program: &Path) -> Vec<Range<usize>> {
    let mut code = Vec::new();
    for line in maps.lines() {
        // Start and end, permissions, offset, device, inode, path.
        let mut parts = line.splitn(6, ' ');
        let (Some(addresses), Some(permissions), Some(path)) = (parts.next(), parts.next(), parts.nth(3)) else {
            continue;
        };
        if Path::new(path.trim_start()) != program {
            continue;
        }
        let address = |text: &str| usize::from_str_radix(text, 16).ok();
        let range = addresses.split_once('-').and_then(|(start, end)| Some(address(start)?..address(end)?));
        match (permissions, range) {
            ("r--p", Some(range)) => code.push(range),
            ("r-xp", Some(range)) => {
                code.push(range);
                return code;
            }
            _ => break,
        }
    }
    // The layout of the mappings is not known.
    Vec::new()
}

/// Returns the resident memory of this process in bytes; `None` if the system does not report it.
fn resident_bytes() -> Option<usize> {
    let text = fs::read_to_string("/proc/self/status").ok()?;
    let kilobytes = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    kilobytes.trim().strip_suffix(" kB")?.trim().parse::<usize>().ok()?.checked_mul(1 << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memory_peak_is_detected_until_the_use_becomes_steady() {
        let mut memory = MemoryPeakDetector::of(50 << 20);
        assert!(!memory.has_peaked(60 << 20));
        assert!(!memory.has_peaked(40 << 20));
        assert!(memory.has_peaked(60 << 20), "counted from the least");
        assert!(memory.has_peaked(60 << 20), "it may have been in use");
        assert!(!memory.has_peaked(41 << 20));
        let asked = (0..100).filter(|_| memory.has_peaked(200 << 20)).count();
        assert_eq!(asked, LOOKS_AT_A_PEAK as usize, "what is held all the time is needed");
        assert!(memory.has_peaked(217 << 20));
    }

    #[test]
    fn only_mappings_up_to_the_executable_one_count_as_program_code() {
        let maps = "55d0000-55d2000 r--p 00000000 fe:00 12                     /opt/a b/toolstead\n\
                    55d2000-55d8000 r-xp 00002000 fe:00 12                     /opt/a b/toolstead\n\
                    55d8000-55d9000 r--p 00008000 fe:00 12                     /opt/a b/toolstead\n\
                    55d9000-55da000 rw-p 00009000 fe:00 12                     /opt/a b/toolstead\n\
                    7ff0000-7ff1000 r-xp 00000000 fe:00 13                     /usr/lib/libc.so.6\n\
                    7ff1000-7ff2000 rw-p 00000000 00:00 0 \n";
        let program = Path::new("/opt/a b/toolstead");
        assert_eq!(code_in(maps, program), [0x55d_0000..0x55d_2000, 0x55d_2000..0x55d_8000]);
        assert!(code_in(maps, Path::new("/opt/other")).is_empty());
        let writable_first = maps.replacen("r--p", "rw-p", 1);
        assert!(code_in(&writable_first, program).is_empty());
        assert!(!code_of_program().is_empty());
    }

    #[test]
    fn the_resident_memory_of_the_process_is_reported() {
        assert!(resident_bytes().is_some_and(|bytes| bytes > 1 << 20));
    }
}
