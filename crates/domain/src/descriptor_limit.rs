//! Exhausted file descriptors, recognised by the error of the operating system.

use std::{error::Error, io};

/// Error number of the limit of the process (`EMFILE`) on Linux and the BSDs; [`SYSTEM`] is `ENFILE`.
const PROCESS: i32 = 24;
const SYSTEM: i32 = 23;

/// Limit of file descriptors that was reached.
///
/// ```
/// use std::io::Error;
/// use toolstead_domain::descriptor_limit::FileDescriptorExhaustion;
///
/// assert_eq!(FileDescriptorExhaustion::of(&Error::from_raw_os_error(24)), Some(FileDescriptorExhaustion::Process));
/// assert_eq!(FileDescriptorExhaustion::of(&Error::from_raw_os_error(2)), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FileDescriptorExhaustion {
    /// The limit of the process.
    #[error("this process has no file descriptor left")]
    Process,
    /// The limit of the whole system.
    #[error("the system has no file descriptor left")]
    System,
}

impl FileDescriptorExhaustion {
    /// Returns the limit that this error reports.
    pub fn of(error: &io::Error) -> Option<Self> {
        match error.raw_os_error()? {
            PROCESS => Some(Self::Process),
            SYSTEM => Some(Self::System),
            _ => None,
        }
    }

    /// Returns the limit that this error or one of its causes reports.
    pub fn in_chain(error: &(dyn Error + 'static)) -> Option<Self> {
        std::iter::successors(Some(error), |cause| (*cause).source())
            .find_map(|cause| Self::of(cause.downcast_ref::<io::Error>()?))
    }

    /// Returns advice for the user on the reached limit, as a sentence.
    pub fn suggestion(self) -> &'static str {
        match self {
            Self::Process => {
                "Try again when other calls have ended; an operator can raise the limit (`ulimit -n`, `LimitNOFILE=` of \
                 systemd)."
            }
            Self::System => "Try again later; an operator can raise `fs.file-max`.",
        }
    }
}
