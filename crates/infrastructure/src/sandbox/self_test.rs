//! Tests whether the confinement holds on this machine, instead of inferring that from a version.
//!
//! One confined run of this program for each kind tries to reach canaries outside of its sandbox. Everything that it
//! reaches is not protected.

mod tries;

pub use crate::sandbox::tier::SandboxTier;
use crate::{
    child_environment,
    sandbox::{
        kernel::{self, KernelFeatures},
        launcher::{ChildInput, Exit, LaunchError, LaunchSpec, Launcher},
        run_request::OWN_PROGRAM,
        toolchains::is_machine_path,
        zygote::{ConfinementLayers, DEDICATED_ID},
    },
};
use rustix::process::geteuid;
use std::{
    env,
    fs::{self, Permissions},
    io,
    net::{TcpListener, UdpSocket},
    os::unix::{
        fs::{PermissionsExt, chown},
        net::{UnixDatagram, UnixListener, UnixStream},
    },
    path::{Path, PathBuf},
    process,
    time::Duration,
};
use tokio::{io::AsyncReadExt, time::timeout};
use toolstead_domain::{Confinement, NetworkPolicy, SandboxLimits, SandboxPolicy};
pub(super) use tries::enter;
use tries::{MARKER, RunProfile, SelfTestInput};
use uuid::Uuid;

/// Timeout of one confined run. Only a run that hangs reaches it, so that the load of the machine does not decide the
/// tier.
const TIME_TO_TRY: Duration = Duration::from_secs(60);
const ROOM_FOR_CANARIES: &str = "free some space in the folder for temporary files (`TMPDIR`, or `/tmp`) or in `/var/tmp`, and let this user write there";
/// First ABI version of Landlock that keeps a run from abstract sockets.
const SCOPED_ABI: u32 = 6;
/// Determines the tier of this machine by testing the confinement.
pub async fn tier(launcher: &Launcher) -> SandboxTier {
    let features = kernel::features();
    let canaries = match Canaries::place_in(&[env::temp_dir(), "/var/tmp".into()]) {
        Ok(canaries) => canaries,
        Err(error) => {
            let missing = format!("the confinement cannot be tested, because its canaries cannot be created: {error}");
            return SandboxTier::Third { missing, remedy: ROOM_FOR_CANARIES.into() };
        }
    };
    let third = |missing| SandboxTier::Third {
        missing,
        remedy: suggestion(features, geteuid().is_root(), launcher.allows_tier_2()),
    };
    let missing = match check_layers(launcher, &canaries, features, ConfinementLayers::All).await {
        Ok(()) => return SandboxTier::First { notes: notes(features) },
        Err(missing) if !launcher.allows_tier_2() => return third(missing),
        Err(missing) => missing,
    };
    match check_layers(launcher, &canaries, features, ConfinementLayers::WithoutNamespaces).await {
        Ok(()) => SandboxTier::Second { missing },
        Err(other) => third(format!("{missing}; and tier 2 failed its test: {other}")),
    }
}

/// Checks that these layers keep a run from everything that it must not reach. Fails with the reason otherwise.
async fn check_layers(
    launcher: &Launcher,
    canaries: &Canaries,
    features: KernelFeatures,
    layers: ConfinementLayers,
) -> Result<(), String> {
    match find_reached_canaries(launcher, canaries, features, layers).await? {
        open if open.is_empty() => Ok(()),
        open => Err(format!("a confined run reached {}", open.join(", "))),
    }
}

/// Returns notes about missing layers that other layers make up for.
fn notes(features: KernelFeatures) -> Vec<String> {
    let note = match features.landlock_abi {
        None => {
            "no Landlock: only the mounts protect files, and servers with the machine's network can use its abstract \
                 sockets"
        }
        Some(..SCOPED_ABI) => {
            "a Landlock older than ABI 6: servers with the machine's network can use its abstract sockets"
        }
        Some(_) => return Vec::new(),
    };
    vec![note.into()]
}

/// Returns a suggestion for the user on how to make confinement possible on this machine. `does_with_tier_2` is `true`
/// if this launcher already accepts tier 2.
fn suggestion(features: KernelFeatures, is_root: bool, does_with_tier_2: bool) -> String {
    let first = match (features.user_namespaces, is_root) {
        (false, _) => {
            "allow user namespaces: `sysctl user.max_user_namespaces=15000`, and on Ubuntu \
             `sysctl kernel.apparmor_restrict_unprivileged_userns=0` or an AppArmor profile for Toolstead"
        }
        (true, true) => {
            "run Toolstead as an ordinary user on Linux 5.12 or later, outside of a container that forbids namespaces"
        }
        (true, false) => {
            "run Toolstead on Linux 5.12 or later and outside of a container that forbids namespaces; if too many \
             are in use, raise `user.max_user_namespaces`"
        }
    };
    let may_do_with_tier_2 =
        !is_root && !does_with_tier_2 && features.landlock_abi.is_some_and(|abi| abi >= SCOPED_ABI);
    let second = if may_do_with_tier_2 {
        "; or accept less: set `sandbox.minimum_tier = 2` in your own settings, see `docs/guide/sandbox.md`"
    } else {
        ""
    };
    format!("{first}{second}")
}

/// Returns the canaries that confined runs reached.
async fn find_reached_canaries(
    launcher: &Launcher,
    canaries: &Canaries,
    features: KernelFeatures,
    layers: ConfinementLayers,
) -> Result<Vec<String>, String> {
    let is_scoped = features.landlock_abi.is_some_and(|abi| abi >= SCOPED_ABI);
    let guarded = async {
        match layers {
            ConfinementLayers::All => {
                find_reached_canaries_of(launcher, canaries, RunProfile::Guarded, is_scoped, layers).await
            }
            // This kind is never started in tier 2.
            ConfinementLayers::WithoutNamespaces => Ok(Vec::new()),
        }
    };
    let (alone, with_folders, guarded) = tokio::join!(
        find_reached_canaries_of(launcher, canaries, RunProfile::Alone, true, layers),
        find_reached_canaries_of(launcher, canaries, RunProfile::WithFolders, true, layers),
        guarded,
    );
    let mut open = [alone?, with_folders?, guarded?].concat();
    // A canary that was removed cannot be reached.
    canaries.are_there().map_err(|error| format!("the canaries were removed during the test: {error}"))?;
    open.sort_unstable();
    open.dedup();
    Ok(open)
}

async fn find_reached_canaries_of(
    launcher: &Launcher,
    canaries: &Canaries,
    kind: RunProfile,
    is_scoped: bool,
    layers: ConfinementLayers,
) -> Result<Vec<String>, String> {
    let port = |address: io::Result<std::net::SocketAddr>| {
        address.map(|one| one.port()).map_err(|error| format!("the canaries cannot be created: {error}"))
    };
    let task = SelfTestInput {
        kind,
        folder: canaries.folder.clone(),
        tcp: port(canaries.tcp.local_addr())?,
        udp: port(canaries.udp.local_addr())?,
        is_scoped,
        neighbour: (layers == ConfinementLayers::WithoutNamespaces).then(process::id),
    };
    let mut environment = child_environment::base(|_| None);
    environment.insert(MARKER.into(), task.to_text()?);
    let has_folders = kind != RunProfile::Alone;
    let folder = |name| has_folders.then(|| canaries.folder.join(name)).into_iter().collect();
    let session = (kind == RunProfile::WithFolders).then(|| canaries.folder.to_string_lossy().into());
    let spec = LaunchSpec {
        program: OWN_PROGRAM.into(),
        args: Vec::new(),
        working_dir: "/".into(),
        input: ChildInput::Nothing,
        policy: SandboxPolicy {
            confinement: if kind == RunProfile::Guarded { Confinement::Guarded } else { Confinement::Sealed },
            session: session.clone(),
            hidden: Vec::new(),
            sealed: Vec::new(),
            write_roots: folder(OWN),
            read_roots: folder(READ_ONLY),
            lasting_home: None,
            network: if kind == RunProfile::Guarded { NetworkPolicy::Host } else { NetworkPolicy::None },
            offers_tools: false,
            environment,
            limits: SandboxLimits::default(),
        },
    };
    let child = launcher.launch_without_test(spec, layers).await;
    if let Some(session) = session {
        // The run keeps the session until it ends.
        launcher.release_session(session);
    }
    let mut child = child.map_err(|error| match error {
        LaunchError::Confine(step) => step,
        error => error.to_string(),
    })?;
    // The run leaves a process behind on purpose.
    child.end_leftovers_at_once();
    let mut said = String::new();
    let reading = async {
        if let Some(stdout) = &mut child.stdout {
            // The stream ends once no process has it open: neither the run nor the process that it left behind.
            let _ = stdout.take(64 << 10).read_to_string(&mut said).await;
        }
        child.exited().await
    };
    let exit = timeout(TIME_TO_TRY, reading).await;
    let exit =
        exit.map_err(|_| "a confined run does not end together with the processes that it started".to_owned())?;
    let open = tries::parse_output(&said).filter(|_| exit == Exit::Code(0));
    let open = open.ok_or_else(|| format!("a confined run does not work: {exit}"))??;
    if !child.had_survivors() {
        return Err("processes that a confined run leaves behind are not detected".into());
    }
    Ok(open)
}

/// Subfolder of the canaries' folder that a run may change.
const OWN: &str = "own";
/// Subfolder of the canaries' folder that a run may only read.
const READ_ONLY: &str = "read-only";
/// Subfolder of the canaries' folder that a run must not see.
const OUTSIDE: &str = "outside";

/// Canaries outside of a run, and folders that it sees. Removed when the value is dropped.
struct Canaries {
    folder: PathBuf,
    tcp: TcpListener,
    udp: UdpSocket,
    _by_path: UnixListener,
    _letters: UnixDatagram,
    _abstract: UnixListener,
}

impl Canaries {
    /// Places the canaries in the first of these folders where that is possible.
    fn place_in(places: &[PathBuf]) -> io::Result<Self> {
        let mut reason = io::Error::from(io::ErrorKind::NotFound);
        for place in places {
            let place = fs::canonicalize(place).ok().filter(|place| !is_machine_path(place));
            match place.map(|place| Self::place(&place)) {
                Some(Ok(canaries)) => return Ok(canaries),
                Some(Err(error)) => reason = error,
                None => {}
            }
        }
        Err(reason)
    }

    fn place(place: &Path) -> io::Result<Self> {
        // The name is short, because the path of a socket may have only about 100 bytes.
        let (name, _) = Uuid::new_v4().as_u64_pair();
        let folder = place.join(format!("toolstead-{name:x}"));
        fs::create_dir(&folder)?;
        let placed = || {
            for name in [OWN, READ_ONLY, OUTSIDE] {
                let path = folder.join(name);
                let inner = path.join(tries::INNER);
                let files = [path.join("file"), path.join(tries::SETTINGS)];
                fs::create_dir_all(&inner)?;
                files.iter().try_for_each(|file| fs::write(file, "canary"))?;
                for (path, rights) in [(&files[0], 0o644), (&files[1], 0o644), (&inner, 0o755), (&path, 0o755)] {
                    // Set explicitly, whatever the file mode mask of this process is.
                    fs::set_permissions(path, Permissions::from_mode(rights))?;
                    if name != OUTSIDE {
                        // If this process is root, its runs have another user. The files are given to that user, so
                        // that the test does not depend on whether this file system can map ids. Otherwise this fails,
                        // and is unnecessary.
                        let _ = chown(path, Some(DEDICATED_ID), Some(DEDICATED_ID));
                    }
                }
            }
            Ok(Self {
                tcp: TcpListener::bind("127.0.0.1:0")?,
                udp: UdpSocket::bind("127.0.0.1:0")?,
                _by_path: UnixListener::bind(tries::socket(&folder))?,
                _letters: UnixDatagram::bind(tries::letters(&folder))?,
                _abstract: UnixListener::bind_addr(&tries::abstract_name(&folder)?)?,
                folder: folder.clone(),
            })
        };
        placed().inspect_err(|_: &io::Error| drop(fs::remove_dir_all(&folder)))
    }

    /// Fails if a canary is missing. Other programs may clear the folder.
    fn are_there(&self) -> io::Result<()> {
        fs::read(self.folder.join(OUTSIDE).join("file"))?;
        UnixStream::connect(tries::socket(&self.folder))?;
        UnixStream::connect_addr(&tries::abstract_name(&self.folder)?)?;
        Ok(())
    }
}

impl Drop for Canaries {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_self_test_finds_full_confinement_on_the_test_machine() {
        let launcher = Launcher::start().unwrap();
        assert_eq!(tier(&launcher).await, SandboxTier::First { notes: Vec::new() });
    }

    /// Without confinement every attempt reaches its canary, so the attempts can detect a difference.
    #[tokio::test]
    async fn the_self_test_detects_every_reachable_canary_without_confinement() {
        let canaries = placed();
        let task = |kind| SelfTestInput {
            kind,
            folder: canaries.folder.clone(),
            tcp: canaries.tcp.local_addr().unwrap().port(),
            udp: canaries.udp.local_addr().unwrap().port(),
            is_scoped: true,
            neighbour: Some(process::id()),
        };
        let found = |kind| tries::parse_output(&tries::all(&task(kind))).unwrap().unwrap();
        let everywhere = [
            "a file outside",
            "a folder outside, to write there",
            "a socket outside by its path",
            "a socket outside by a datagram to its path",
            "a namespace of its own",
            "a trace of a process",
            "a process outside, to signal it",
            "a process outside, to limit it",
            "a set-uid file",
        ];
        let sealed = ["the host by TCP", "the host by multipath TCP", "the host by UDP", "the kernel by netlink"];
        for kind in [RunProfile::Alone, RunProfile::WithFolders, RunProfile::Guarded] {
            let found = found(kind);
            let has = |what: &str| found.iter().any(|one| one == what);
            assert!(everywhere.iter().all(|what| has(what)), "{found:?}");
            assert!(has("an abstract socket outside"), "{found:?}");
            assert_eq!(sealed.iter().all(|what| has(what)), kind != RunProfile::Guarded, "{found:?}");
            for what in ["a folder that may only be read, to write there", "settings of an agent in its own folder"] {
                assert_eq!(has(what), kind != RunProfile::Alone, "{found:?}");
            }
            fs::remove_file(canaries.folder.join(OUTSIDE).join("hole")).unwrap();
        }
    }

    fn placed() -> Canaries {
        Canaries::place_in(&[env::temp_dir()]).unwrap()
    }

    #[test]
    fn canaries_are_placed_in_the_first_folder_with_a_short_enough_socket_path() {
        let folder = tempfile::tempdir().unwrap();
        let top = fs::canonicalize(folder.path()).unwrap();
        let padded = |length: usize| top.join("x".repeat(length - top.as_os_str().len() - 1));
        let (fitting, too_long) = (padded(75), padded(100));
        for place in [&fitting, &too_long] {
            fs::create_dir(place).unwrap();
        }
        let missing = top.join("missing");
        for (places, expected) in [
            (vec![fitting.clone(), top.clone()], Some(&fitting)),
            (vec![missing.clone(), too_long.clone(), top.clone()], Some(&top)),
            (vec![too_long.clone()], None),
            (vec!["/proc".into(), missing], None),
        ] {
            let placed = Canaries::place_in(&places).ok();
            assert_eq!(placed.as_ref().and_then(|one| one.folder.parent()), expected.map(PathBuf::as_path));
        }
        assert_eq!(fs::read_dir(too_long).unwrap().count(), 0);
    }

    #[test]
    fn missing_canaries_are_detected() {
        for taken in [|folder: &Path| folder.join(OUTSIDE).join("file"), |folder: &Path| tries::socket(folder)] {
            let canaries = placed();
            assert!(canaries.are_there().is_ok());
            fs::remove_file(taken(&canaries.folder)).unwrap();
            assert!(canaries.are_there().is_err());
        }
    }

    #[test]
    fn the_suggestion_depends_on_the_user_and_the_kernel_features() {
        let features = |landlock_abi, user_namespaces| KernelFeatures { openat2: true, landlock_abi, user_namespaces };
        for (features, is_root, does_with_tier_2, expected, has_tier_2) in [
            (features(Some(6), false), false, false, "sysctl user.max_user_namespaces=15000", true),
            (features(Some(6), true), true, false, "as an ordinary user", false),
            (features(Some(6), true), false, false, "raise `user.max_user_namespaces`", true),
            (features(Some(6), true), false, true, "outside of a container", false),
            (features(Some(5), true), false, false, "outside of a container", false),
        ] {
            let remedy = suggestion(features, is_root, does_with_tier_2);
            assert!(remedy.contains(expected), "{remedy}");
            assert_eq!(remedy.contains("sandbox.minimum_tier = 2"), has_tier_2, "{remedy}");
        }
    }

    #[test]
    fn missing_landlock_features_are_noted() {
        let features = |landlock_abi| KernelFeatures { openat2: true, landlock_abi, user_namespaces: true };
        for (abi, expected) in [(None, "no Landlock"), (Some(5), "older than ABI 6")] {
            let notes = notes(features(abi));
            assert!(
                notes.len() == 1 && notes[0].contains(expected) && notes[0].contains("abstract sockets"),
                "{notes:?}"
            );
        }
        assert_eq!(notes(features(Some(6))), [""; 0]);
    }
}
