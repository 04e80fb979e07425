//! Number of processes and threads of a user, as the kernel counts them against the limit of a run (`RLIMIT_NPROC`).
//!
//! The kernel counts processes of all containers that share the user with the machine, but `/proc` lists only those of
//! one container. Therefore the count is measured: a fork fails if the limit is below it.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;

/// Maximum number of process ids in the kernel.
const MOST: u64 = 1 << 22;

/// Counter of the processes and threads of the user of this process, as the limit of a run (`RLIMIT_NPROC`) counts
/// them.
#[derive(Debug)]
pub(super) struct UserProcessCounter {
    /// Result of the last measurement.
    last: u64,
}

impl UserProcessCounter {
    pub(super) const fn new() -> Self {
        Self { last: 1 << 6 }
    }

    /// Measures the current number of processes and threads of the user, including this process, at most [`MOST`].
    pub(super) fn count(&mut self) -> io::Result<u64> {
        let usual = getrlimit(Resource::Nproc);
        let limited = |to| setrlimit(Resource::Nproc, Rlimit { current: to, maximum: usual.maximum });
        let counted = least(self.last, usual.maximum.unwrap_or(MOST).min(MOST), |limit| {
            limited(Some(limit))?;
            can_fork()
        });
        limited(usual.current)?;
        // The forked child counts as well.
        self.last = counted?.saturating_sub(1);
        Ok(self.last)
    }
}

/// Returns the least number up to `most` for which `does` returns `true`, or an error if there is none. `does` is
/// assumed to be `false` for zero and monotonic. Numbers near `guess` are tried first.
fn least(guess: u64, most: u64, mut does: impl FnMut(u64) -> io::Result<bool>) -> io::Result<u64> {
    let (mut low, mut high) = (0, most);
    let (mut at, mut step) = (guess.saturating_add(1), 1_u64);
    while low + 1 < high {
        if at <= low || at >= high {
            at = low.midpoint(high);
        }
        // Moves away from the guess in growing steps, until the result is between two of them.
        if does(at)? {
            high = at;
            at = high.saturating_sub(step);
        } else {
            low = at;
            at = low.saturating_add(step);
        }
        step = step.saturating_mul(2);
    }
    // Another limit may be exhausted, such as the processes of a control group.
    if high < most || does(most)? { Ok(high) } else { Err(io::ErrorKind::WouldBlock.into()) }
}

/// Returns `true` if the limits allow this process one more child.
fn can_fork() -> io::Result<bool> {
    // SAFETY: this process has one thread, so the child finds no lock held; the child ends at once. The other call
    // writes nowhere, and returns when the child has ended, even if the kernel reaped it.
    unsafe {
        match libc::fork() {
            0 => libc::_exit(0),
            -1 => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
                error => Err(error),
            },
            child => {
                libc::waitpid(child, std::ptr::null_mut(), 0);
                Ok(true)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_sufficient_limit_is_found_from_any_guess() {
        for sought in [1, 2, 3, 64, 65, 1000, 99_999, 100_000] {
            for guess in [0, 1, 63, 64, 65, 998, 1000, 50_000, 99_999, 1 << 40] {
                let mut tries = 0;
                let found = least(guess, 100_000, |limit| {
                    tries += 1;
                    assert!((1..=100_000).contains(&limit), "{limit} was tried");
                    Ok(limit >= sought)
                });
                assert_eq!(found.unwrap(), sought, "from {guess}");
                assert!(
                    tries <= 36 && (guess + 1 != sought || sought == 100_000 || tries <= 2),
                    "{tries} from {guess} to {sought}"
                );
            }
        }
        assert!(least(64, 100_000, |_| Ok(false)).is_err());
    }
}
