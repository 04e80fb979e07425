//! Mounts of a container: only folders and volumes that the user chooses.

/// Character in place of a value that the user supplies and that has no default. No argument contains it.
const CHOSEN: char = '\0';

/// Checks the value of `--mount`. Everything in it that an entry sets is read as docker reads it: a fixed source would
/// open a folder of the user's machine to the container, and options of volumes can name one, too.
///
/// # Errors
/// The reason why the mount is refused, as a clause.
pub(super) fn check(value: &str) -> Result<(), String> {
    let value = with_choices(value);
    if is_chosen(&value) {
        return Ok(());
    }
    // Quotes would change where an option ends.
    if value.contains(['"', '\n', '\r']) {
        return Err("has a quotation mark or a line break".into());
    }
    for option in value.split(',') {
        let (key, value) = option.split_once('=').unwrap_or((option, ""));
        let is_allowed = match key.to_ascii_lowercase().as_str() {
            "type" => matches!(value, "bind" | "volume" | "tmpfs"),
            "src" | "source" => is_chosen(value),
            "dst" | "destination" | "target" | "readonly" | "ro" | "tmpfs-size" | "tmpfs-mode" => true,
            _ => false,
        };
        if !is_allowed {
            let shown = option.replace(CHOSEN, "…");
            return Err(format!("has the option {shown:?}, and only the user may choose what is mounted"));
        }
    }
    Ok(())
}

fn is_chosen(value: &str) -> bool {
    value.chars().eq([CHOSEN])
}

/// Replaces each reference to a variable by its default, or by [`CHOSEN`].
fn with_choices(value: &str) -> String {
    let mut text = String::new();
    let mut rest = value;
    while let Some(at) = rest.find("${") {
        text.push_str(&rest[..at]);
        let end = rest[at..].find('}').map(|end| at + end);
        match end {
            Some(end) if !rest[..at].ends_with('$') => {
                match rest[at + 2..end].split_once(":-") {
                    Some((_, default)) => text.push_str(default),
                    None => text.push(CHOSEN),
                }
                rest = &rest[end + 1..];
            }
            _ => {
                text.push_str("${");
                rest = &rest[at + 2..];
            }
        }
    }
    text.push_str(rest);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_folder_is_mounted_only_if_the_user_chooses_its_path() {
        for value in [
            "${input:mount}",
            "type=bind,src=${input:source},dst=/project",
            "type=bind,source=${input:source},target=${input:target:-/project},readonly",
            "type=tmpfs,dst=/tmp,tmpfs-size=1000000",
            "dst=/data",
        ] {
            assert_eq!(check(value), Ok(()), "{value}");
        }
        for value in [
            "src=/,dst=/host",
            "type=bind,src=/,dst=/host",
            "type=bind,SOURCE=/home,dst=/host",
            "type=bind,src=${input:source:-/},dst=/host",
            "type=bind,src=/${input:source},dst=/host",
            "type=bind,src=${input:source},dst=${input:target:-/x,src=/}",
            "type=bind,src=${input:source},src=/,dst=/host",
            "type=bind,src=$${input:source},dst=/host",
            "type=volume,dst=/host,volume-driver=local,volume-opt=type=none,volume-opt=o=bind,volume-opt=device=/",
            "type=volume,src=other,dst=/data",
            "type=bind,\"src=/\",dst=/host",
            "type=bind,${input:options},dst=/host",
            "${input:mount:-src=/,dst=/host}",
            " src=/,dst=/host",
            "type=npipe,dst=/host",
            "",
        ] {
            assert!(check(value).is_err(), "{value}");
        }
    }
}
