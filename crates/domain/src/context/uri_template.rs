//! URI templates, as far as resources use them: texts with variables in braces.

/// URI with variables: `file:///{path}` (RFC 6570). `{name}` and `{+name}` match one character or more, slashes
/// included; every other expression, such as `{?query,page}` and `{/path*}`, matches any characters or none.
///
/// ```
/// use toolstead_domain::context::uri_template::UriTemplate;
///
/// let template = UriTemplate::parse("memo://{year}/{month}")?;
/// assert!(template.fits("memo://2025/09"));
/// assert!(!template.fits("memo://2025"));
/// assert_eq!(template.variables().collect::<Vec<_>>(), ["year", "month"]);
/// # Ok::<(), toolstead_domain::context::uri_template::InvalidUriTemplate>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UriTemplate {
    text: String,
    /// Fixed texts: one before the first expression in braces, one after the last, and one between each two.
    fixed: Vec<String>,
    /// For each expression, `true` if it must match at least one character.
    demanded: Vec<bool>,
    variables: Vec<String>,
}

/// Text that is not a valid template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a URI template: {reason}")]
pub struct InvalidUriTemplate {
    text: String,
    reason: &'static str,
}

impl UriTemplate {
    /// Parses a template.
    ///
    /// # Errors
    /// [`InvalidUriTemplate`] for unmatched braces, variables without a name, and two adjacent variables.
    pub fn parse(text: &str) -> Result<Self, InvalidUriTemplate> {
        let wrong = |reason| InvalidUriTemplate { text: text.chars().take(200).collect(), reason };
        let (mut fixed, mut variables, mut demanded) = (Vec::new(), Vec::new(), Vec::<bool>::new());
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once('{') {
            let (expression, after) = behind.split_once('}').ok_or_else(|| wrong("a `{` has no `}`"))?;
            let names = expression.strip_prefix(['+', '#', '.', '/', ';', '?', '&']).unwrap_or(expression);
            let is_plain = names == expression || expression.starts_with('+');
            let mut is_demanded = is_plain;
            for name in names.split(',') {
                let bare =
                    name.strip_suffix('*').or_else(|| name.split_once(':').map(|(name, _)| name)).unwrap_or(name);
                let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '%');
                if bare.is_empty() || !bare.chars().all(is_name) {
                    return Err(wrong("braces must contain the name of a variable"));
                }
                is_demanded &= bare == names;
                variables.push(bare.to_owned());
            }
            if before.is_empty() && is_demanded && demanded.last() == Some(&true) {
                return Err(wrong("two variables are adjacent, so their values cannot be separated"));
            }
            if before.contains('}') {
                return Err(wrong("a `}` has no `{`"));
            }
            fixed.push(before.to_owned());
            demanded.push(is_demanded);
            rest = after;
        }
        if rest.contains('}') {
            return Err(wrong("a `}` has no `{`"));
        }
        fixed.push(rest.to_owned());
        Ok(Self { text: text.to_owned(), fixed, demanded, variables })
    }

    /// Returns the template as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns `true` if a scheme precedes the first variable. A template that begins with a variable could match the
    /// URIs of any provider.
    pub fn has_scheme(&self) -> bool {
        self.fixed.first().is_some_and(|beginning| beginning.contains(':'))
    }

    /// Returns the variables, in their order.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.variables.iter().map(String::as_str)
    }

    /// Returns `true` if the template matches the URI.
    pub fn fits(&self, uri: &str) -> bool {
        let [first, rest @ ..] = self.fixed.as_slice() else { return false };
        let Some(mut left) = uri.strip_prefix(first.as_str()) else { return false };
        let Some((last, between)) = rest.split_last() else { return left.is_empty() };
        for (fixed, is_demanded) in between.iter().zip(&self.demanded) {
            let least = if *is_demanded { left.chars().next().map(char::len_utf8) } else { Some(0) };
            let Some(least) = least else { return false };
            let Some(at) = left[least..].find(fixed.as_str()) else { return false };
            left = &left[least + at + fixed.len()..];
        }
        let is_demanded = self.demanded.last() == Some(&true);
        left.strip_suffix(last.as_str()).is_some_and(|value| !(is_demanded && value.is_empty()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_matches_uris_in_which_each_required_variable_is_nonempty() {
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
            ("find://{term}{?limit,page}", "find://x", true),
            ("find://{term}{?limit,page}", "find://x?limit=3", true),
            ("find://{term}{?limit,page}", "find://", false),
            ("a://b{/path*}", "a://b/c/d", true),
            ("a://b{/path*}.md", "a://b.txt", false),
        ] {
            assert_eq!(UriTemplate::parse(template).unwrap().fits(uri), fits, "{template} {uri}");
        }
        let variables = UriTemplate::parse("a/{b}/{+c.d}{?e,f*,g:3}").unwrap();
        assert_eq!(variables.variables().collect::<Vec<_>>(), ["b", "c.d", "e", "f", "g"]);
        for (template, has_scheme) in
            [("a://{b}", true), ("a:{b}", true), ("{+b}", false), ("a{b}:c", false), ("a", false)]
        {
            assert_eq!(UriTemplate::parse(template).unwrap().has_scheme(), has_scheme, "{template}");
        }
    }

    #[test]
    fn rejects_malformed_and_ambiguous_uri_templates() {
        for bad in ["a/{b", "a/b}", "a}{b}", "a/{}", "a/{b c}", "a/{b}{c}", "a/{b}}"] {
            assert!(UriTemplate::parse(bad).is_err(), "{bad}");
        }
    }
}
