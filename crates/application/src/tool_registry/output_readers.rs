//! The tools that read stored outputs, and their calls as a text for the receiver of a handle.

use toolstead_domain::{OutputHandle, OutputReaderParameters, Tool};

/// At most one tool for each way to read an output: the first callable one by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct OutputReaders {
    lines: Option<OutputReader>,
    matches: Option<OutputReader>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct OutputReader {
    tool: String,
    /// Name of the parameter for the handle.
    handle: String,
    /// Name of the parameter for the first line, or for the pattern.
    part: String,
}

impl OutputReaders {
    pub(crate) fn of<'a>(tools: impl Iterator<Item = &'a Tool>) -> Self {
        let mut readers = Self::default();
        for tool in tools.filter(|tool| tool.is_callable()) {
            let reader = |handle: &str, part: &str| OutputReader {
                tool: tool.name().to_string(),
                handle: handle.into(),
                part: part.into(),
            };
            match &tool.reads_outputs {
                Some(OutputReaderParameters::Lines { handle, first }) => {
                    readers.lines.get_or_insert_with(|| reader(handle, first));
                }
                Some(OutputReaderParameters::Matches { handle, pattern }) => {
                    readers.matches.get_or_insert_with(|| reader(handle, pattern));
                }
                None => {}
            }
        }
        readers
    }

    /// Returns the call that reads an output from its beginning, as a text; `None` if no callable tool can.
    pub(crate) fn full_read_call(&self, output: OutputHandle) -> Option<String> {
        self.lines.as_ref().map(|OutputReader { tool, handle, .. }| format!("{tool} {{\"{handle}\": \"{output}\"}}"))
    }

    /// Returns the calls that read an output from a given line, or search it, as a text; `None` if no callable tool
    /// can.
    pub(crate) fn lines_from(&self, output: OutputHandle, line: usize) -> Option<String> {
        let lines = self.lines.as_ref().map(|OutputReader { tool, handle, part }| {
            format!("{tool} {{\"{handle}\": \"{output}\", \"{part}\": {line}}}")
        });
        let matches = self.matches.as_ref().map(|OutputReader { tool, handle, part }| {
            format!("{tool} {{\"{handle}\": \"{output}\", \"{part}\": \"…\"}}")
        });
        let calls: Vec<String> = lines.into_iter().chain(matches).collect();
        (!calls.is_empty()).then(|| calls.join(" or "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroU64;
    use toolstead_domain::testing::samples;

    #[test]
    fn suggestions_name_the_first_callable_output_reader_of_each_kind() {
        let reading = |name: &str, reading: OutputReaderParameters| {
            let mut tool = samples::tool(name);
            tool.reads_outputs = Some(reading);
            tool
        };
        let lines = OutputReaderParameters::lines("of", "from");
        let matches = OutputReaderParameters::matches("in", "like");
        let mut off = reading("a", lines.clone());
        off.enabled = false;
        let tools =
            [off, samples::tool("b"), reading("find", matches), reading("show", lines.clone()), reading("z", lines)];
        let output = OutputHandle(NonZeroU64::MIN);
        let text_of = |tools: &[Tool]| {
            let readers = OutputReaders::of(tools.iter());
            [readers.full_read_call(output), readers.lines_from(output, 7)]
        };
        let call = |text: &str| Some(text.to_owned());
        let both = r#"show {"of": "o1", "from": 7} or find {"in": "o1", "like": "…"}"#;
        assert_eq!(text_of(&tools), [call(r#"show {"of": "o1"}"#), call(both)]);
        assert_eq!(text_of(&tools[..3]), [None, call(r#"find {"in": "o1", "like": "…"}"#)]);
        assert_eq!(text_of(&tools[..2]), [None, None]);
    }
}
