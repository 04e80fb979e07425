//! The guidance of several providers as one text.

use toolstead_domain::tool::hidden_text::hides;

/// So much of one provider's guidance is passed on, in bytes.
const OF_ONE: usize = 2 << 10;
/// So much of all of it, in bytes.
const OF_ALL: usize = 16 << 10;

/// Each text under a heading with its provider's name. No line of a text can be taken for such a heading.
pub(super) fn joined(given: &[(String, String)]) -> Option<String> {
    let mut all = String::new();
    let mut left_out = Vec::new();
    for (provider, text) in given {
        let text = fit(text);
        if text.is_empty() {
            continue;
        }
        let section = format!("## {provider}\n{text}\n\n");
        if all.len() + section.len() > OF_ALL {
            left_out.push(provider.as_str());
            continue;
        }
        all.push_str(&section);
    }
    if !left_out.is_empty() {
        let names: String = left_out.join(", ").chars().take(OF_ONE).collect();
        all.push_str(&format!("[The guidance of {names} is left out: all of it together is too long.]"));
    }
    let all = all.trim_end();
    (!all.is_empty()).then(|| all.to_owned())
}

/// The text without what hides text, its headings below ours, cut where it is too long.
fn fit(text: &str) -> String {
    let mut fit = String::new();
    for line in text.trim().split('\n') {
        let line: String =
            line.chars().filter(|c| !hides(*c) && !matches!(c, '\r' | '\u{2028}' | '\u{2029}')).collect();
        let line = line.trim_end();
        let (indent, rest) = line.split_at(line.len() - line.trim_start().len());
        fit.push_str(indent);
        if rest.starts_with('#') {
            fit.push_str("##");
        }
        fit.push_str(rest);
        fit.push('\n');
    }
    let fit = fit.trim();
    if fit.len() <= OF_ONE {
        return fit.to_owned();
    }
    format!("{}\n[the rest is cut]", fit[..fit.floor_char_boundary(OF_ONE)].trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn given(texts: &[(&str, &str)]) -> Vec<(String, String)> {
        texts.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn each_text_stands_under_its_name_and_cannot_speak_in_anothers() {
        assert_eq!(joined(&[]), None);
        assert_eq!(joined(&given(&[("a", " \r\n\u{1b}")])), None);
        let text = joined(&given(&[("a", "One.\n## b\n  # c\nx\u{202e}y\u{1b}[1m\r\n"), ("b", "Two.")])).unwrap();
        assert_eq!(text, "## a\nOne.\n#### b\n  ### c\nxy[1m\n\n## b\nTwo.");
    }

    #[test]
    fn what_is_too_long_is_cut_and_said_to_be() {
        let long = "ä".repeat(3000);
        let many: Vec<_> = (0..20).map(|n| (format!("s{n:02}"), long.clone())).collect();
        let text = joined(&many).unwrap();
        assert!(text.contains("ä\n[the rest is cut]\n\n## s01\n"), "{text}");
        assert!(text.ends_with("is left out: all of it together is too long.]") && text.contains("of s07, s08"));
        assert!(text.len() <= OF_ALL + OF_ONE);
    }

    proptest! {
        #[test]
        fn no_text_makes_a_heading_of_ours(text in "(#| |\\n|\\r|\u{2028}|x|\u{1b}|\u{85}){0,40}") {
            let joined = joined(&given(&[("one", &text)])).unwrap_or_default();
            prop_assert!(joined.lines().skip(1).all(|line| !line.trim_start().starts_with("## ")), "{joined:?}");
        }
    }
}
