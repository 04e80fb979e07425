//! The defaults, and what is closed to tools under every configuration.

use super::{Machine, USER};
use std::{fs, path::Path};
use toolstead_domain::{NetworkPolicy, PermissionMode, ToolSelection};

#[test]
fn without_any_configuration_the_defaults_hold() {
    let machine = Machine::new();
    let config = machine.config();
    assert_eq!(machine.roots(), ["write ~/home/project"]);
    assert_eq!(
        (config.permissions.mode, config.permissions.rules.len(), &config.tools.selection),
        (PermissionMode::Default, 0, &ToolSelection::all())
    );
    assert_eq!((&config.sandbox.network, config.sandbox.minimum_tier), (&NetworkPolicy::None, 1));
    assert!(!config.sandbox.requires_landlock);
    assert_eq!(
        (config.limits.output_bytes, config.limits.timeout_seconds, config.limits.max_timeout_seconds),
        (30_000, 120, 600)
    );
    assert_eq!(
        (config.limits.memory_bytes, config.limits.processes, config.limits.file_bytes),
        (4 << 30, 512, 1 << 30)
    );
    assert_eq!(config.call_settings(), Default::default());
    assert_eq!(config.sandbox_limits(), Default::default());
    assert_eq!(machine.plain(config.database.url.place()), "~/home/.local/share/toolstead/toolstead.db");
    assert_eq!(config.server.listen.to_string(), "127.0.0.1:7332");
    assert!(config.mcp_servers.is_empty() && config.notes.is_empty());
    let forbidden: Vec<String> = config.roots.forbidden.iter().map(|path| machine.plain(path.display())).collect();
    assert_eq!(forbidden[..3], ["~/home/.local/share/toolstead", "~/home/.config/toolstead", "~/etc"]);
}

#[test]
fn file_lock_folders_are_forbidden_to_tools() {
    let roots = Machine::with(&[]).config().roots;
    let user = rustix::process::geteuid().as_raw();
    for folder in [format!("/tmp/toolstead-{user}"), format!("/run/user/{user}/toolstead")] {
        assert!(roots.is_forbidden(&Path::new(&folder).join("0123.lock")), "{folder}");
    }
}

#[test]
fn companion_files_of_a_custom_database_path_are_forbidden_to_tools() {
    let machine = Machine::with(&[(USER, "[database]\nurl = \"sqlite://~/project/db/link.db\"")]);
    for folder in ["home/project/db", "home/project/real"] {
        fs::create_dir_all(machine.path(folder)).unwrap();
    }
    fs::write(machine.path("home/project/real/other.db"), "").unwrap();
    std::os::unix::fs::symlink("../real/other.db", machine.path("home/project/db/link.db")).unwrap();
    let roots = machine.config().roots;
    for path in [
        "db/link.db",
        "db/link.db-wal",
        "db/blobs/00/x",
        "db/instances/x",
        "real/other.db",
        "real/other.db-shm",
        "real/blobs/00/x",
    ] {
        assert!(roots.is_forbidden(Path::new(&machine.path(&format!("home/project/{path}")))), "{path}");
    }
    assert!(!roots.is_forbidden(Path::new(&machine.path("home/project/real/mine.txt"))));
}

#[test]
fn home_and_the_filesystem_root_are_not_default_roots() {
    let mut machine = Machine::new();
    machine.request.start = machine.path("home").into();
    assert_eq!(machine.roots(), [""; 0]);
    machine.request.flags.roots = vec![".".into()];
    assert_eq!(machine.roots(), ["write ~/home"]);
    machine.request.flags.roots.clear();
    machine.request.start = "/".into();
    assert_eq!(machine.roots(), [""; 0]);
}
