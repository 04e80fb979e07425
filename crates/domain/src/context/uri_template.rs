//! Templates of URIs, as far as resources use them: texts with variables in braces.

/// A URI with variables: `file:///{path}`. Of RFC 6570 it knows `{name}` and `{+name}`, and takes both alike: a variable
/// stands for one character or more, slashes among them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UriTemplate {
    text: String,
    /// The fixed texts, of which one stands before, one behind and one between each two variables.
    fixed: Vec<String>,
    variables: Vec<String>,
}

/// A text that is no template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no URI template: {reason}")]
pub struct InvalidUriTemplate {
    text: String,
    reason: &'static str,
}

impl UriTemplate {
    /// Reads a template.
    ///
    /// # Errors
    /// [`InvalidUriTemplate`] for braces without a partner, variables without a name, and two of them side by side.
    pub fn parse(text: &str) -> Result<Self, InvalidUriTemplate> {
        let wrong = |reason| InvalidUriTemplate { text: text.chars().take(200).collect(), reason };
        let (mut fixed, mut variables) = (Vec::new(), Vec::new());
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once('{') {
            let (variable, after) = behind.split_once('}').ok_or_else(|| wrong("a `{` has no `}`"))?;
            let variable = variable.strip_prefix('+').unwrap_or(variable);
            let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
            if variable.is_empty() || !variable.chars().all(is_name) {
                return Err(wrong("in braces stands the name of a variable"));
            }
            if before.is_empty() && !variables.is_empty() {
                return Err(wrong("two variables stand side by side, so nobody can tell where one ends"));
            }
            if before.contains('}') {
                return Err(wrong("a `}` has no `{`"));
            }
            fixed.push(before.to_owned());
            variables.push(variable.to_owned());
            rest = after;
        }
        if rest.contains('}') {
            return Err(wrong("a `}` has no `{`"));
        }
        fixed.push(rest.to_owned());
        Ok(Self { text: text.to_owned(), fixed, variables })
    }

    /// The template as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The variables, in their order.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.variables.iter().map(String::as_str)
    }

    /// Tells whether the URI is one of the family.
    pub fn fits(&self, uri: &str) -> bool {
        let [first, rest @ ..] = self.fixed.as_slice() else { return false };
        let Some(mut left) = uri.strip_prefix(first.as_str()) else { return false };
        let Some((last, between)) = rest.split_last() else { return left.is_empty() };
        for fixed in between {
            // A variable stands for one character at least.
            let Some(first) = left.chars().next() else { return false };
            let Some(at) = left[first.len_utf8()..].find(fixed.as_str()) else { return false };
            left = &left[first.len_utf8() + at + fixed.len()..];
        }
        left.strip_suffix(last.as_str()).is_some_and(|value| !value.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_stands_for_one_character_or_more() {
        for (template, uri, fits) in [
            ("file:///{path}", "file:///a/b%20c", true),
            ("file:///{path}", "file:///", false),
            ("file:///{path}", "file://host/a", false),
            ("file:///{+path}", "file:///a", true),
            ("db://{table}/rows/{id}.json", "db://users/rows/7.json", true),
            ("db://{table}/rows/{id}.json", "db:///rows/7.json", false),
            ("db://{table}/rows/{id}.json", "db://users/rows/.json", false),
            ("db://{table}/rows/{id}.json", "db://users/rows/7", false),
            ("config://server", "config://server", true),
            ("config://server", "config://server/x", false),
            ("ä{x}ö{y}", "äüöü", true),
        ] {
            assert_eq!(UriTemplate::parse(template).unwrap().fits(uri), fits, "{template} {uri}");
        }
        let variables = UriTemplate::parse("a/{b}/{+c.d}").unwrap();
        assert_eq!(variables.variables().collect::<Vec<_>>(), ["b", "c.d"]);
    }

    #[test]
    fn what_nobody_could_take_apart_is_no_template() {
        for bad in ["a/{b", "a/b}", "a}{b}", "a/{}", "a/{b c}", "a/{b}{c}", "a/{b}}"] {
            assert!(UriTemplate::parse(bad).is_err(), "{bad}");
        }
    }
}
