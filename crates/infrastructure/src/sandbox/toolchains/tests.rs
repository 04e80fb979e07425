use super::*;
use std::os::unix::fs::symlink;

/// Checks the visible paths of a home that has `files` (folders end with `/`, links are `from -> to`) for a `PATH`
/// beneath it.
fn check(files: &[&str], path: &str, shown: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let home = fs::canonicalize(folder.path()).unwrap();
    for file in files {
        let (name, target) = file.split_once(" -> ").map_or((*file, None), |(name, target)| (name, Some(target)));
        let place = home.join(name);
        fs::create_dir_all(if name.ends_with('/') { &place } else { place.parent().unwrap() }).unwrap();
        match target {
            Some(target) => symlink(home.join(target), place).unwrap(),
            None if name.ends_with('/') => {}
            None => fs::write(place, "").unwrap(),
        }
    }
    let writable = WritableRoots::new(&[home.join("w")]);
    let mut tools = ToolchainFolderCollector::new(Some(&home), &writable);
    let path: Vec<String> = path.split(':').map(|one| home.join(one).display().to_string()).collect();
    tools.add_path(&path.join(":"));
    let found: Vec<String> = tools
        .into_folders()
        .iter()
        .map(|one| one.strip_prefix(&home).map_or(one.display().to_string(), |one| one.display().to_string()))
        .collect();
    assert_eq!(found, shown, "{files:?} {path:?}");
}

#[test]
fn installations_are_visible_but_credentials_and_projects_are_not() {
    check(&[".cargo/bin/", ".cargo/credentials.toml", ".rustup/toolchains/"], ".cargo/bin", &[".cargo/bin", ".rustup"]);
    check(&[".nvm/versions/node/v1/bin/", ".nvm/other"], ".nvm/versions/node/v1/bin", &[".nvm/versions/node/v1"]);
    check(
        &[".pyenv/shims/", ".pyenv/versions/", ".pyenv/version", ".pyenv/.git/config"],
        ".pyenv/shims:.pyenv/bin",
        &[".pyenv/shims", ".pyenv/version", ".pyenv/versions"],
    );
    check(&["bin/tool"], "bin", &["bin"]);
    check(&["project/bin/run", "project/.env"], "project/bin", &["project/bin"]);
    check(&["work/.venv/bin/", "work/.venv/pyvenv.cfg"], "work/.venv/bin", &["work/.venv"]);
    check(&["miniconda3/bin/", "miniconda3/conda-meta/"], "miniconda3/bin", &["miniconda3"]);
    check(
        &[
            ".local/bin/tool -> .local/share/uv/tools/a/bin/tool",
            ".local/share/uv/tools/a/bin/tool",
            ".local/share/uv/tools/a/uv-receipt.toml",
            ".local/share/uv/credentials/",
            ".local/share/keyrings/",
        ],
        ".local/bin",
        &[".local/bin", ".local/share/uv/tools/a/bin"],
    );
    check(&["app/node_modules/.bin/", "app/node_modules/x/"], "app/node_modules/.bin", &["app/node_modules"]);
    check(&["missing/"], "elsewhere:bin", &[]);
    check(&[".pulumi/bin/", ".pulumi/credentials.json"], ".pulumi/bin", &[".pulumi/bin"]);
    check(&[".fly/bin/", ".fly/config.yml"], ".fly/bin", &[".fly/bin"]);
    check(&[".docker/bin/", ".docker/config.json"], ".docker/bin", &[".docker/bin"]);
    check(&[".config/gcloud/bin/", ".config/gcloud/token"], ".config/gcloud/bin", &[".config/gcloud/bin"]);
    check(&[".gem/credentials", ".gem/ruby/3/bin/", ".gem/ruby/3/gems/"], ".gem/ruby/3/bin", &[".gem/ruby/3"]);
    check(&[".own/bin/", ".own/lib/", ".own/token"], ".own/bin", &[".own/bin", ".own/lib"]);
    check(&[".own/bin/tool -> .own/tool", ".own/tool", ".own/token"], ".own/bin", &[".own/bin", ".own/tool"]);
    check(&[".own/bin/tool -> .own/opt/tool", ".own/opt/tool", ".own/token"], ".own/bin", &[".own/bin", ".own/opt"]);
}

/// A file that is not executable does not count as a program of its folder.
fn make_executable(home: &Path, names: &[&str]) {
    use std::os::unix::fs::PermissionsExt;
    for name in names {
        fs::set_permissions(home.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
}

#[test]
fn visible_parts_of_known_installation_folders_contain_no_credentials() {
    for (path, shown, closed) in [
        (
            ".asdf/shims",
            &[".asdf/installs/node/20/bin/node", ".asdf/plugins/node/bin/list-all"][..],
            &[".asdf/plugins/node/.git/config"][..],
        ),
        (".bun/bin", &[".bun/install/global/node_modules/x/x.js"], &[".bun/install/cache/x", ".bun/bunfig.toml"]),
        (
            ".cargo/bin",
            &[".rustup/settings.toml"],
            &[".cargo/credentials.toml", ".cargo/config.toml", ".cargo/registry/x"],
        ),
        (".composer/vendor/bin", &[".composer/vendor/x/x.php"], &[".composer/auth.json"]),
        (".deno/bin", &[".deno/bin/deno"], &[".deno/location_data/x", ".deno/deps/https/x"]),
        (
            ".dotnet",
            &[".dotnet/dotnet", ".dotnet/sdk/8/dotnet.dll", ".dotnet/shared/x"],
            &[".dotnet/corefx/cryptography/x509stores/my/key.pfx", ".dotnet/first-use"],
        ),
        (".dotnet/tools", &[".dotnet/tools/.store/x"], &[".dotnet/corefx/cryptography/x509stores/my/key.pfx"]),
        (".gem/ruby/3/bin", &[".gem/ruby/3/gems/x"], &[".gem/credentials"]),
        (".ghcup/bin", &[".ghcup/ghc/9/bin/ghc"], &[".ghcup/config.yaml", ".ghcup/logs/x"]),
        (".gradle/bin", &[".gradle/bin/x"], &[".gradle/gradle.properties", ".gradle/caches/x"]),
        (
            ".linuxbrew/bin",
            &[".linuxbrew/Cellar/x", ".linuxbrew/etc/ca-certificates/cert.pem"],
            &[".linuxbrew/etc/my.cnf", ".linuxbrew/var/x"],
        ),
        (
            ".local/bin",
            &[".local/share/pipx/venvs/x/bin/x", ".local/share/uv/tools/x/lib/x"],
            &[
                ".local/share/pipx/venvs/x/pipx_metadata.json",
                ".local/share/uv/tools/x/uv-receipt.toml",
                ".local/share/keyrings/x",
            ],
        ),
        (
            ".local/share/pnpm",
            &[".local/share/pnpm/pnpm", ".local/share/pnpm/global/5/node_modules/x"],
            &[".local/share/pnpm/.npmrc", ".local/share/pnpm/store/v3/x"],
        ),
        (".m2/bin", &[".m2/bin/x"], &[".m2/settings.xml", ".m2/settings-security.xml"]),
        (".npm-global/bin", &[".npm-global/lib/node_modules/x"], &[".npm-global/etc/npmrc"]),
        (
            ".opam/default/bin",
            &[".opam/default/lib/x"],
            &[".opam/repo/private/x", ".opam/config", ".opam/default/.opam-switch/switch-config"],
        ),
        (
            ".rbenv/shims",
            &[".rbenv/versions/3/bin/ruby", ".rbenv/version"],
            &[".rbenv/.git/config", ".rbenv/plugins/x/.git/config"],
        ),
        (".rvm/bin", &[".rvm/rubies/x"], &[".rvm/user/db", ".rvm/log/x"]),
        (".sdkman/candidates/java/current/bin", &[".sdkman/candidates/java/current/lib/x"], &[".sdkman/etc/config"]),
        (".volta/bin", &[".volta/tools/x", ".volta/layout.v4"], &[".volta/hooks.json", ".volta/cache/x"]),
        (".yarn/bin", &[".yarn/bin/x"], &[".yarn/berry/x"]),
        ("go/bin", &["go/bin/x"], &["go/src/x", "go/pkg/x"]),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let home = fs::canonicalize(folder.path()).unwrap();
        fs::create_dir_all(home.join(path)).unwrap();
        for file in shown.iter().chain(closed) {
            fs::create_dir_all(home.join(file).parent().unwrap()).unwrap();
            fs::write(home.join(file), "").unwrap();
        }
        make_executable(&home, shown);
        let writable = WritableRoots::default();
        let mut tools = ToolchainFolderCollector::new(Some(&home), &writable);
        tools.add_path(&home.join(path).display().to_string());
        let folders = tools.into_folders();
        let is_shown = |file: &&&str| folders.iter().any(|folder| home.join(file).starts_with(folder));
        assert_eq!(shown.iter().find(|file| !is_shown(file)), None, "{path} shows too little: {folders:?}");
        assert_eq!(closed.iter().find(is_shown), None, "{path} shows too much: {folders:?}");
    }
}

#[test]
fn a_program_makes_its_interpreter_and_link_target_visible() {
    let folder = tempfile::tempdir().unwrap();
    let top = fs::canonicalize(folder.path()).unwrap();
    for name in ["venv/bin", "python/bin", "app/node_modules/.bin", "app/node_modules/server"] {
        fs::create_dir_all(top.join(name)).unwrap();
    }
    fs::write(top.join("python/bin/python3"), "").unwrap();
    symlink(top.join("python/bin/python3"), top.join("venv/bin/python")).unwrap();
    fs::write(top.join("venv/bin/server"), format!("#!{}\n", top.join("venv/bin/python").display())).unwrap();
    symlink("../server/index.js", top.join("app/node_modules/.bin/server")).unwrap();
    fs::write(top.join("app/node_modules/server/index.js"), "#!/usr/bin/env node\n").unwrap();
    let shown = |program: &str| {
        let writable = WritableRoots::default();
        let mut tools = ToolchainFolderCollector::new(None, &writable);
        tools.add_program(&top.join(program));
        tools.into_folders()
    };
    assert_eq!(shown("venv/bin/server"), [top.join("python"), top.join("venv")]);
    assert_eq!(shown("app/node_modules/.bin/server"), [top.join("app/node_modules")]);
    assert_eq!(shown("no/such"), Vec::<PathBuf>::new());
    // The pipe has no writer.
    let pipe = top.join("app/pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
    assert_eq!(shown("app/pipe"), [top.join("app")]);
}

/// `w` is a root that runs write into; `PATH` names its `bin`.
#[test]
fn links_in_writable_folders_expose_only_known_installation_folders() {
    for (files, shown) in [
        (&["w/bin/x -> .ssh/id", ".ssh/id"][..], &[][..]),
        (&["w/bin/x -> .local/share/any", ".local/share/any"], &[]),
        (&["w/bin/x -> w/y", "w/y -> .own/tool", ".own/tool"], &[]),
        (&["w/bin -> .config/app/bin", ".config/app/bin/"], &[]),
        (&["w/bin -> w/real", "w/real/x -> .config/app/x", ".config/app/x"], &[]),
        (&["w/bin/x -> .pyenv/own/x", ".pyenv/own/x -> .ssh/id", ".ssh/id", ".pyenv/bin/"], &[".pyenv/bin"]),
        (&["w/bin/python -> .pyenv/versions/3/bin/python", ".pyenv/versions/3/bin/python"], &[".pyenv/versions"]),
        (
            &["w/bin/x -> w/y", "w/y -> .local/share/uv/python/3/bin/x", ".local/share/uv/python/3/bin/x"],
            &[".local/share/uv/python"],
        ),
        (&["w/bin -> .nvm/versions/1/bin", ".nvm/versions/1/bin/", ".nvm/.git/config"], &[".nvm/versions"]),
        (&["w/bin/x -> .local/share/uv/credentials/x", ".local/share/uv/credentials/x"], &[]),
    ] {
        check(files, "w/bin", shown);
    }
    // A folder that leads over a link in a root of runs counts as writable by them, and roots are shown as such.
    check(&["tools/bin -> w/bin", "w/bin -> .ssh", ".ssh/id"], "tools/bin", &[]);
    check(&[".own/bin/", ".own/lib -> w/lib", "w/lib/"], ".own/bin", &[".own/bin"]);
    check(&[".own/bin/x -> w/x", "w/x -> .ssh/id", ".ssh/id"], ".own/bin", &[".own/bin"]);
}

#[test]
fn a_script_in_a_writable_root_exposes_only_known_interpreter_folders() {
    let folder = tempfile::tempdir().unwrap();
    let home = fs::canonicalize(folder.path()).unwrap();
    for name in ["w/bin", ".ssh", ".pyenv/bin"] {
        fs::create_dir_all(home.join(name)).unwrap();
    }
    let writable = WritableRoots::new(&[home.join("w")]);
    for (interpreter, shown) in [(".ssh/id", None), (".pyenv/bin/python", Some(".pyenv/bin"))] {
        fs::write(home.join(interpreter), "").unwrap();
        fs::write(home.join("w/bin/run"), format!("#!{}\n", home.join(interpreter).display())).unwrap();
        let mut tools = ToolchainFolderCollector::new(Some(&home), &writable);
        tools.add_program(&home.join("w/bin/run"));
        let shown: Vec<PathBuf> = shown.into_iter().map(|one| home.join(one)).collect();
        assert_eq!(tools.into_folders(), shown, "{interpreter}");
    }
}

/// Visible paths are mounted, and a link cannot be mounted.
#[test]
fn a_visible_part_that_is_a_link_is_replaced_by_its_target() {
    check(&[".own/bin/", ".own/lib -> stuff/lib", "stuff/lib/"], ".own/bin", &[".own/bin", "stuff/lib"]);
    check(&[".own/bin/x -> .own/x", ".own/x -> stuff/bin/x", "stuff/bin/x"], ".own/bin", &[".own/bin", "stuff/bin"]);
    // Not the home itself.
    check(&[".own/bin/", ".own/lib -> .", ".own/libexec -> w", "w/"], ".own/bin", &[".own/bin"]);
    check(&[".cargo/bin/", ".rustup -> big/rustup", "big/rustup/"], ".cargo/bin", &[".cargo/bin", "big/rustup"]);
}
