//! The last steps of a payload, from the fork to its program.

use super::{
    request::{ProgramLocation, RunRequest, StepFailure, StepResultExt},
    spawner::{IGNORED, OwnProgramAndUmask},
};
use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, RestrictionStatus, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use rustix::{
    fs::{FileType, fstat},
    process::{Resource, Rlimit, setrlimit, setsid, umask},
    stdio::{dup2_stderr, dup2_stdin, dup2_stdout},
};
use std::{
    ffi::CString,
    fs, io,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::fs::OpenOptionsExt,
    },
    path::Path,
};

const OPEN_FILES: u64 = 1024;
/// Maximum size of POSIX message queues, in bytes: the usual limit, whatever the limit of the runtime is.
const QUEUED_BYTES: u64 = 800 << 10;

/// Data that a payload needs besides the request, prepared before the fork.
#[derive(Debug)]
pub(super) struct PayloadConfinementInputs<'a> {
    pub(super) settled: &'a OwnProgramAndUmask,
    pub(super) landlock: Option<ABI>,
    pub(super) places: &'a [AccessiblePath],
    pub(super) streams: &'a [OwnedFd; 3],
}

/// Prepares this process for its program: sets the session, the streams and the limits, restricts it with Landlock,
/// marks all other descriptors to be closed, and resets the signals.
pub(super) fn confine(request: &RunRequest, tools: &PayloadConfinementInputs<'_>) -> Result<(), StepFailure> {
    umask(tools.settled.usual_mask);
    setsid().step(|| "make a session".into())?;
    if request.terminal {
        rustix::process::ioctl_tiocsctty(&tools.streams[0]).step(|| "take the terminal".into())?;
    }
    let [stdin, stdout, stderr] = tools.streams;
    dup2_stdin(stdin)
        .and_then(|()| dup2_stdout(stdout))
        .and_then(|()| dup2_stderr(stderr))
        .step(|| "set the standard streams".into())?;
    for (resource, most) in [
        // The address space is not limited: V8, Go and Java reserve many times what they use.
        (Resource::Data, request.memory_bytes),
        (Resource::Nproc, request.processes),
        (Resource::Fsize, request.file_bytes),
        (Resource::Nofile, OPEN_FILES),
        (Resource::Msgqueue, QUEUED_BYTES),
        (Resource::Core, 0),
    ] {
        limit(resource, most).step(|| "set the limits of memory, processes and files".into())?;
    }
    if let Some(abi) = tools.landlock {
        let own_program = matches!(request.program, ProgramLocation::Own).then_some(&tools.settled.own_program);
        landlock(tools.places, abi, own_program, tools.streams)?;
    }
    // Marked, not closed, because the pipe that reports a failed exec is among them.
    let closed = unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    if closed != 0 {
        return Err(io::Error::last_os_error()).step(|| "close all descriptors".into());
    }
    // SAFETY: no structure is passed; this process has one thread.
    unsafe {
        for signal in IGNORED {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut none = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
    Ok(())
}

/// Enters the folder that the program begins in. Others may create links on this path. The machine's root must be
/// unmounted before, because `..` would lead to it while it is on top of the new one.
pub(super) fn enter_folder(request: &RunRequest) -> Result<(), StepFailure> {
    rustix::process::chdir(&request.working_dir)
        .step(|| format!("enter the working folder `{}`", request.working_dir.display()))
}

/// Lowers a limit. A limit that is already lower stays.
fn limit(resource: Resource, most: u64) -> io::Result<()> {
    let known = rustix::process::getrlimit(resource);
    let most = known.maximum.map_or(most, |maximum| maximum.min(most));
    Ok(setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?)
}

/// A file or folder that Landlock leaves accessible, with everything below it.
#[derive(Debug)]
pub(super) struct AccessiblePath {
    handle: OwnedFd,
    rights: BitFlags<AccessFs>,
}

impl AccessiblePath {
    /// Creates an accessible path with those of the rights that apply to its type of file.
    pub(super) fn new(handle: OwnedFd, rights: BitFlags<AccessFs>, abi: ABI) -> io::Result<Self> {
        let is_folder = FileType::from_raw_mode(fstat(&handle)?.st_mode) == FileType::Directory;
        Ok(Self { handle, rights: if is_folder { rights } else { rights & AccessFs::from_file(abi) } })
    }

    /// Returns the accessible paths of a run with mounts: everything that it sees is readable, and its writable
    /// folders, home, temporary folders, `/dev` and `/proc` are writable.
    pub(super) fn within_mounts(request: &RunRequest, abi: ABI) -> Result<Vec<Self>, StepFailure> {
        let writable = request.folders.iter().filter(|folder| folder.is_writable).map(|folder| folder.target.as_path());
        let open = writable.chain(request.home.as_deref()).chain(["/tmp", "/var/tmp", "/dev", "/proc"].map(Path::new));
        let all = [(Path::new("/"), AccessFs::from_read(abi))]
            .into_iter()
            .chain(open.map(|path| (path, AccessFs::from_all(abi))));
        let place = |(path, rights): (&Path, _)| {
            let handle = fs::File::options().read(true).custom_flags(libc::O_PATH).open(path);
            handle.and_then(|handle| Self::new(handle.into(), rights, abi)).step(restriction)
        };
        all.map(place).collect()
    }
}

fn restriction() -> String {
    "restrict this process with Landlock".into()
}

/// Puts this process and its children into a new Landlock domain, which limits the processes that they can signal and
/// the abstract sockets that they can connect to.
pub(super) fn part() -> Result<(), StepFailure> {
    let rules = Ruleset::default().set_compatibility(CompatLevel::HardRequirement).scope(Scope::from_all(ABI::V6));
    enforced(rules.and_then(Ruleset::create).and_then(|rules| rules.restrict_self()))
}

fn landlock(
    places: &[AccessiblePath],
    abi: ABI,
    own_program: Option<&OwnedFd>,
    streams: &[OwnedFd; 3],
) -> Result<(), StepFailure> {
    let is_device = |stream: &&OwnedFd| {
        fstat(stream).is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::CharacterDevice)
    };
    let devices: Vec<_> = streams.iter().filter(is_device).collect();
    let rules = || -> Result<_, RulesetError> {
        let mut rules = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_all(abi))?;
        if abi >= ABI::V6 {
            rules = rules.scope(Scope::from_all(abi))?;
        }
        let mut rules = rules.create()?;
        for AccessiblePath { handle, rights } in places {
            rules = rules.add_rule(PathBeneath::new(handle, *rights))?;
        }
        if let Some(own_program) = own_program {
            rules = rules.add_rule(PathBeneath::new(own_program, AccessFs::Execute | AccessFs::ReadFile))?;
        }
        for device in &devices {
            // It is one of the machine's devices, and can only be opened by its descriptor.
            rules = rules.add_rule(PathBeneath::new(device, AccessFs::from_file(abi) & !AccessFs::Execute))?;
        }
        rules.restrict_self()
    };
    enforced(rules())
}

fn enforced(restricted: Result<RestrictionStatus, RulesetError>) -> Result<(), StepFailure> {
    let status = restricted.map_err(io::Error::other).step(restriction)?;
    if status.ruleset == RulesetStatus::FullyEnforced {
        return Ok(());
    }
    Err(StepFailure::new(restriction(), "the kernel did not enforce all of it"))
}

/// Replaces this process by the program. Returns only on failure.
pub(super) fn execute(request: &RunRequest, settled: &OwnProgramAndUmask) -> StepFailure {
    let own_program = settled.own_program.as_raw_fd();
    let step = || match &request.program {
        ProgramLocation::Own => "start the runtime's own program".to_owned(),
        ProgramLocation::At(path) => format!("start `{}`", path.display()),
    };
    let texts = || -> io::Result<_> {
        let name = match &request.program {
            ProgramLocation::Own => c"toolstead".to_owned(),
            ProgramLocation::At(path) => CString::new(path.as_os_str().as_encoded_bytes())?,
        };
        let args = request.args.iter().map(|text| CString::new(text.as_str()));
        let args = [Ok(name.clone())].into_iter().chain(args).collect::<Result<Vec<_>, _>>()?;
        let environment = request.environment.iter().map(|(name, value)| CString::new(format!("{name}={value}")));
        Ok((name, args, environment.collect::<Result<Vec<_>, _>>()?))
    };
    let (name, args, environment) = match texts().step(step) {
        Ok(texts) => texts,
        Err(failure) => return failure,
    };
    let pointers = |texts: &[CString]| {
        texts.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect::<Vec<*const libc::c_char>>()
    };
    let (args, environment) = (pointers(&args), pointers(&environment));
    // SAFETY: the texts and both lists end with a null and live until the call has replaced this process or failed.
    unsafe {
        match &request.program {
            ProgramLocation::At(_) => libc::execve(name.as_ptr(), args.as_ptr(), environment.as_ptr()),
            ProgramLocation::Own => {
                let flags = libc::AT_EMPTY_PATH;
                let place = c"".as_ptr();
                libc::syscall(libc::SYS_execveat, own_program, place, args.as_ptr(), environment.as_ptr(), flags)
                    as libc::c_int
            }
        };
    }
    let error = io::Error::last_os_error();
    let reason = match error.kind() {
        io::ErrorKind::NotFound => {
            "it, or the interpreter that its first line names, does not exist in the sandbox".to_owned()
        }
        _ => error.to_string(),
    };
    StepFailure::new(step(), reason)
}
