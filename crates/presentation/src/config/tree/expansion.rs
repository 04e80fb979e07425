//! `${VAR}` in the settings of MCP servers.

/// Replaces `${NAME}` and `${NAME:-default}` by values. If there is a default, an empty variable is treated as not set.
/// `$${` is a literal `${`. Values are not expanded again.
///
/// # Errors
/// The reason: a variable is not set, an expression is not closed, or only an editor can resolve it.
pub(in crate::config) fn expand(text: &str, value: impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, from) = rest.split_at(at);
        if let Some(before) = before.strip_suffix('$') {
            expanded.push_str(before);
            expanded.push_str("${");
            rest = &from[2..];
            continue;
        }
        expanded.push_str(before);
        let end = from.find('}').ok_or_else(|| format!("`{}` has no closing brace", shortened(from)))?;
        let expression = &from[2..end];
        if let Some(reason) = asked_of_an_editor(expression) {
            return Err(reason);
        }
        let (name, default) = match expression.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (expression, None),
        };
        match (value(name), default) {
            (Some(value), None) => expanded.push_str(&value),
            (Some(value), Some(_)) if !value.is_empty() => expanded.push_str(&value),
            (_, Some(default)) => expanded.push_str(default),
            (None, None) => {
                let name = shortened(name);
                return Err(format!("the environment variable `{name}` is not set: set it, or write `${{{name}:-…}}`"));
            }
        }
        rest = &from[end + 1..];
    }
    expanded.push_str(rest);
    Ok(expanded)
}

/// Replaces everything by `…` except for references to variables, without their defaults, and the scheme `Bearer`: any
/// other part may be a secret. What follows an escaped `$${` is replaced as well.
pub(in crate::config) fn masked(text: &str) -> String {
    let is_name = |name: &str| {
        let name = name.strip_prefix("env:").or_else(|| name.strip_prefix("input:")).unwrap_or(name);
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let (scheme, mut rest) = match text.strip_prefix("Bearer ") {
        Some(rest) => ("Bearer ", rest),
        None => ("", text),
    };
    let mut shown = String::from(scheme);
    loop {
        let reference = rest.find("${").and_then(|start| Some((start, start + rest[start..].find('}')?)));
        let Some((start, end)) = reference.filter(|(start, _)| !rest[..*start].ends_with('$')) else {
            shown.push_str(if rest.is_empty() { "" } else { "…" });
            return shown;
        };
        let expression = &rest[start + 2..end];
        let name = expression.split_once(":-").map_or(expression, |(name, _)| name);
        shown.push_str(if start == 0 { "" } else { "…" });
        match is_name(name) {
            true if name.len() == expression.len() => shown.push_str(&format!("${{{name}}}")),
            true => shown.push_str(&format!("${{{name}:-…}}")),
            false => shown.push('…'),
        }
        rest = &rest[end + 1..];
    }
}

/// Returns the reason why the expression within `${…}` has no value: only an editor can resolve it; `None` for others.
fn asked_of_an_editor(expression: &str) -> Option<String> {
    let (kind, name) = expression.split_once(':').filter(|(_, name)| !name.starts_with('-'))?;
    let expression = shortened(expression);
    match kind {
        "input" => {
            let variable: String =
                name.chars().take(60).map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
            let variable = variable.to_ascii_uppercase();
            Some(format!(
                "`${{{expression}}}` is a value that an editor asks a person for, which is not done here: set an environment \
                 variable, and write `${{env:{variable}}}` instead"
            ))
        }
        "command" | "config" => Some(format!(
            "`${{{expression}}}` is a value that only an editor knows: write the value itself, or `${{env:NAME}}`, instead"
        )),
        _ => None,
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Result<&str, &str>) {
        let value = |name: &str| match name {
            "A" => Some("a".to_owned()),
            "EMPTY" => Some(String::new()),
            "CODE" => Some("${A}".to_owned()),
            _ => None,
        };
        assert_eq!(expand(text, value), expected.map(str::to_owned).map_err(str::to_owned), "{text}");
    }

    #[test]
    fn masking_shows_only_variable_references() {
        for (text, shown) in [
            ("${A}", "${A}"),
            ("${env:A}", "${env:A}"),
            ("Bearer ${A}", "Bearer ${A}"),
            ("Bearer sk-1${A}", "Bearer …${A}"),
            ("sk-1", "…"),
            ("${A:-sk-1}", "${A:-…}"),
            ("a${A}b${B}c", "…${A}…${B}…"),
            ("$${A} sk-1", "…"),
            ("$${A}${B}", "…"),
            ("${A:sk1}", "…"),
            ("${input:a}", "${input:a}"),
            ("${A:-${B:-sk}}", "${A:-…}…"),
            ("${A", "…"),
            ("${not a name}", "…"),
            ("", ""),
        ] {
            assert_eq!(masked(text), shown, "{text}");
        }
    }

    #[test]
    fn values_of_expanded_variables_are_not_expanded_again() {
        check("x${A}y${A}", Ok("xaya"));
        check("${CODE}", Ok("${A}"));
        check("$A $ {A}", Ok("$A $ {A}"));
        check("$${A}", Ok("${A}"));
        check("${EMPTY}", Ok(""));
    }

    #[test]
    fn a_default_replaces_an_unset_or_empty_variable() {
        check("${B:-b}", Ok("b"));
        check("${EMPTY:-b}", Ok("b"));
        check("${A:-b}", Ok("a"));
        check("${B:-}", Ok(""));
        check("${B}", Err("the environment variable `B` is not set: set it, or write `${B:-…}`"));
        check(
            "${input:api-key}",
            Err(
                "`${input:api-key}` is a value that an editor asks a person for, which is not done here: set an environment \
                 variable, and write `${env:API_KEY}` instead",
            ),
        );
        check("x ${B", Err("`${B` has no closing brace"));
    }
}
