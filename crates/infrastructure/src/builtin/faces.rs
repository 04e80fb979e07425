//! How the built-in tools look in the five tool systems whose work continues here: one table of faces a system.

mod clai;
mod claude_code;
mod given;
mod kodelet;
mod micro_x;
mod printed;
mod tfo;
mod wording;

use crate::dialects::{CLAI, CLAUDE_CODE, KODELET, MICRO_X, TFO};
use toolstead_domain::alias::{Dialect, face::Face};

/// The faces of one system, each under the name that its tool has there.
type Faces = &'static [(&'static str, Face)];

/// The tables.
static TABLES: &[(Dialect, Faces)] = &[
    (CLAI, clai::FACES),
    (CLAUDE_CODE, claude_code::FACES),
    (KODELET, kodelet::FACES),
    (MICRO_X, micro_x::FACES),
    (TFO, tfo::FACES),
];

/// The face of that name in the dialect.
pub(super) fn face_of(dialect: Dialect, name: &str) -> Option<&'static Face> {
    let (_, faces) = TABLES.iter().find(|(one, _)| *one == dialect)?;
    faces.iter().find(|(one, _)| *one == name).map(|(_, face)| face)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin;
    use toolstead_domain::{testing::samples, tool::Tool};

    #[test]
    fn every_face_has_an_alias_that_bears_it_and_is_a_definition() {
        let mut tools = builtin::tests::definitions();
        // They call other tools, and stand elsewhere.
        tools.extend(["batch", "subagent"].map(|name| {
            let mut tool = samples::tool(name);
            tool.aliases = builtin::aliases_of(name);
            tool
        }));
        for (dialect, faces) in TABLES {
            for (name, face) in *faces {
                let bears = |tool: &&Tool| {
                    tool.aliases.iter().any(|alias| alias.is(name, Some(*dialect)) && alias.face == Some(face))
                };
                let tool = tools.iter().find(bears).unwrap_or_else(|| panic!("{dialect:?} `{name}` is no alias"));
                let shown = tool.shown_in(*dialect).unwrap();
                let shown = shown.iter().find(|shown| shown.name().as_str() == *name);
                let shown = shown.unwrap_or_else(|| panic!("{dialect:?} `{name}` is no definition"));
                assert_eq!(shown.input_schema()["type"], "object", "{dialect:?} `{name}`");
                assert!(!shown.description().is_empty(), "{dialect:?} `{name}`");
            }
        }
    }
}
