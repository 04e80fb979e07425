//! Packages, and the programs that run them.

use super::{InputDescriptions, arguments, find, mounts, text};
use crate::config::{
    servers::foreign_servers::translation::member_of,
    tree::{
        node::{Member, Node, NodeContent},
        origin::Origin,
    },
};

/// Translates a package of an entry in the MCP registry to the keys `command`, `args` and `env` of a server that runs
/// exactly its version.
///
/// # Errors
/// The reason why the package cannot be run.
pub(super) fn translate(
    package: &[Member],
    origin: &Origin,
    inputs: &mut InputDescriptions,
) -> Result<Vec<Member>, String> {
    let kind = text(package, &["registryType", "registry_type", "registry_name"]).unwrap_or_default();
    let identifier = text(package, &["identifier", "name"]).ok_or("a package has no identifier")?;
    let transport = match find(package, &["transport"]) {
        Some(NodeContent::Table(transport)) => text(transport, &["type"]).unwrap_or("stdio"),
        _ => "stdio",
    };
    if transport != "stdio" {
        return Err(format!(
            "the package `{identifier}` has the transport `{transport}`, and only stdio can be started"
        ));
    }
    let registry = text(package, &["registryBaseUrl", "registry_base_url"]);
    let is_known_registry = |known: &[&str]| registry.is_none_or(|url| known.contains(&url.trim_end_matches('/')));
    let variables = inputs.named(find(package, &["environmentVariables", "environment_variables"]), origin);
    if let Some(variable) = variables.iter().find(|variable| configures_runner(&variable.name)) {
        return Err(format!(
            "the package `{identifier}` sets `{}`, which changes what is downloaded or run: describe the server in \
             `toolstead.toml` if you want that",
            variable.name
        ));
    }
    check_runtime_arguments(package, kind, identifier)?;
    let runtime = arguments::translate(find(package, &["runtimeArguments", "runtime_arguments"]), inputs)?;
    check_mounts(&runtime, identifier)?;
    let own = arguments::translate(find(package, &["packageArguments", "package_arguments"]), inputs)?;
    let version = || exact_version(identifier, text(package, &["version"]));
    let (command, registries, mut args): (&str, &[&str], Vec<String>) = match kind {
        "npm" => {
            let yes = (!runtime.iter().any(|one| one == "-y" || one == "--yes")).then(|| "-y".to_owned());
            let package = format!("{}@{}", checked(identifier, "@/._-~")?, version()?);
            ("npx", &["https://registry.npmjs.org"], yes.into_iter().chain(runtime).chain([package]).collect())
        }
        "pypi" => {
            let package = format!("{}@{}", checked(identifier, "._-")?, version()?);
            ("uvx", &["https://pypi.org"], runtime.into_iter().chain([package]).collect())
        }
        "nuget" => {
            let package = format!("{}@{}", checked(identifier, "._-")?, version()?);
            let end = (!own.is_empty()).then(|| "--".to_owned());
            let before = runtime.into_iter().chain([package, "--yes".to_owned()]).chain(end);
            ("dnx", &["https://api.nuget.org", "https://api.nuget.org/v3/index.json"], before.collect())
        }
        "oci" => {
            let image = image(identifier, text(package, &["version"]))?;
            let passed = variables.iter().flat_map(|variable| ["-e".to_owned(), variable.name.clone()]);
            let before = ["run", "-i", "--rm"].map(str::to_owned).into_iter().chain(passed).chain(runtime);
            ("docker", &["https://docker.io", "https://ghcr.io"], before.chain([image]).collect())
        }
        other => return Err(format!("packages of the type `{other}` cannot be run (`{identifier}`)")),
    };
    if let Some(hint) = text(package, &["runtimeHint", "runtime_hint"]).filter(|hint| *hint != command) {
        return Err(format!("the package `{identifier}` is to be run with `{hint}`, not with `{command}`"));
    }
    if !is_known_registry(registries) {
        return Err(format!("the package `{identifier}` is in the registry {}", registry.unwrap_or_default()));
    }
    args.extend(own);
    let args = args.into_iter().map(|text| Node { content: NodeContent::Text(text), origin: origin.clone() });
    let mut keys = vec![
        member_of("command", NodeContent::Text(command.into()), origin),
        member_of("args", NodeContent::List(args.collect()), origin),
    ];
    if !variables.is_empty() {
        keys.push(member_of("env", NodeContent::Table(variables), origin));
    }
    Ok(keys)
}

/// Returns `true` if the environment variable configures the program that downloads and starts the package, or the
/// dynamic loader or shell.
fn configures_runner(name: &str) -> bool {
    const PREFIXES: &[&str] =
        &["NPM_CONFIG_", "UV_", "PIP_", "NUGET_", "LD_", "DYLD_", "BASH_", "GIT_SSH", "GIT_CONFIG", "GIT_EXEC"];
    const NAMES: &[&str] = &[
        "PATH",
        "HOME",
        "ENV",
        "SHELL",
        "IFS",
        "XDG_CONFIG_HOME",
        "NODE_OPTIONS",
        "NODE_PATH",
        "NODE_EXTRA_CA_CERTS",
        "NODE_TLS_REJECT_UNAUTHORIZED",
        "PYTHONPATH",
        "PYTHONHOME",
        "PYTHONSTARTUP",
        "DOCKER_HOST",
        "DOCKER_CONFIG",
        "DOCKER_CONTEXT",
        "DOTNET_STARTUP_HOOKS",
    ];
    let name = name.to_ascii_uppercase();
    PREFIXES.iter().any(|prefix| name.starts_with(prefix)) || NAMES.contains(&name.as_str())
}

/// Checks the arguments of the runtime. Others than the allowed ones could run a different package, or weaken the
/// container.
///
/// # Errors
/// The reason why an argument is refused.
fn check_runtime_arguments(package: &[Member], kind: &str, identifier: &str) -> Result<(), String> {
    let is_container = kind == "oci";
    let allowed: &[&str] = if is_container { &["-e", "--env", "--mount"] } else { &["-y", "--yes"] };
    let Some(NodeContent::List(nodes)) = find(package, &["runtimeArguments", "runtime_arguments"]) else {
        return Ok(());
    };
    for node in nodes {
        let NodeContent::Table(argument) = &node.content else { return Err("an argument is not an object".into()) };
        let name = text(argument, &["name"]).filter(|_| text(argument, &["type"]) == Some("named"));
        if !name.is_some_and(|name| allowed.contains(&name)) {
            let name = name.unwrap_or("positional");
            return Err(format!(
                "the package `{identifier}` gives its runtime the argument {name:?}, which is not allowed"
            ));
        }
        match (is_container, arguments::takes_value(argument)) {
            (true, false) => return Err(format!("the package `{identifier}` has an option of docker without a value")),
            (false, true) => {
                return Err(format!("the package `{identifier}` has a switch of its runtime with a value"));
            }
            (true, true) | (false, false) => {}
        }
    }
    Ok(())
}

/// Checks each mount in the arguments of the runtime, which are switches, or options with a value.
///
/// # Errors
/// The reason why a mount is refused.
fn check_mounts(runtime: &[String], identifier: &str) -> Result<(), String> {
    let mounts = runtime.chunks(2).filter(|option| option[0] == "--mount");
    mounts.map(|option| option.get(1).map_or("", String::as_str)).try_for_each(|value| {
        mounts::check(value).map_err(|reason| format!("the mount of the package `{identifier}` {reason}"))
    })
}

/// Returns the version if it is a single version; an error for a range such as `1.x`, a word such as `latest`, or no
/// version.
fn exact_version<'v>(identifier: &str, version: Option<&'v str>) -> Result<&'v str, String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+' | '_' | '!');
    let is_exact = |version: &&str| {
        let digits = version.strip_prefix('v').unwrap_or(version);
        digits.starts_with(|c: char| c.is_ascii_digit())
            && version.chars().all(is_part)
            && !version.split('.').any(|part| matches!(part, "x" | "X"))
    };
    version
        .filter(is_exact)
        .ok_or_else(|| format!("the package `{identifier}` has no exact version, but {:?}", version.unwrap_or("none")))
}

/// Returns the identifier if it consists of letters, digits and these signs, and cannot be taken for an option, a path
/// or a repository. A slash only ends a scope.
fn checked<'i>(identifier: &'i str, signs: &str) -> Result<&'i str, String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || signs.contains(c);
    // A version in the identifier would take the place of the checked one.
    let is_scoped_once = !identifier.chars().skip(1).any(|c| c == '@');
    match !identifier.is_empty()
        && !identifier.starts_with(['-', '.', '/'])
        && is_scoped_once
        && identifier.matches('/').count() == usize::from(identifier.starts_with('@'))
        && identifier.chars().all(is_part)
    {
        true => Ok(identifier),
        false => Err(format!("{identifier:?} is not the name of a package")),
    }
}

/// Returns the reference of a container image of a known registry, with a tag or digest.
fn image(identifier: &str, version: Option<&str>) -> Result<String, String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "._-/:@".contains(c);
    if identifier.is_empty()
        || !identifier.starts_with(|c: char| c.is_ascii_alphanumeric())
        || !identifier.chars().all(is_part)
    {
        return Err(format!("{identifier:?} is not the name of an image"));
    }
    // Docker takes the first part for a registry by the same rule.
    if let Some((host, _)) = identifier.split_once('/')
        && (host.contains(['.', ':']) || host.contains(|c: char| c.is_ascii_uppercase()) || host == "localhost")
        && !matches!(host, "docker.io" | "ghcr.io")
    {
        return Err(format!("the image `{identifier}` is in the registry {host}"));
    }
    if identifier.contains('@') {
        return Ok(identifier.to_owned());
    }
    let last = identifier.rsplit('/').next().unwrap_or_default();
    match last.split_once(':') {
        Some((_, tag)) => exact_version(identifier, Some(tag)).map(|_| identifier.to_owned()),
        None => exact_version(identifier, version).map(|version| format!("{identifier}:{version}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_only_exact_versions_valid_names_and_known_registries() {
        for (version, is_exact) in [
            ("1.0.2", true),
            ("v2.1", true),
            ("0.4.0-beta", true),
            ("latest", false),
            ("^1.0.0", false),
            ("1.x", false),
            ("1.0 || 2", false),
            ("", false),
        ] {
            assert_eq!(exact_version("p", Some(version)).is_ok(), is_exact, "{version}");
        }
        assert!(checked("--package=evil", "@/._-~").is_err());
        assert!(checked("a@1.0.0", "@/._-~").is_err());
        assert!(checked("@scope/name", "@/._-~").is_ok());
        for identifier in ["owner/repository", "~/folder", "@scope", "@scope/name/more"] {
            assert!(checked(identifier, "@/._-~").is_err(), "{identifier}");
        }
        assert_eq!(image("mcp/fs", Some("1.0")).as_deref(), Ok("mcp/fs:1.0"));
        assert_eq!(image("ghcr.io/a/b:2.0", None).as_deref(), Ok("ghcr.io/a/b:2.0"));
        for identifier in [
            "evil.example.com/a:1.0",
            "localhost/a:1.0",
            "host:5000/a:1.0",
            "HOST/a:1.0",
            "evil.example.com/a@sha256:00",
        ] {
            assert!(image(identifier, None).is_err(), "{identifier}");
        }
        assert!(image("mcp/fs:latest", None).is_err() && image("-v", Some("1")).is_err());
    }
}
