//! Instructions from files, in the form in which a model receives them.

use crate::model::message::{Block, Message, Role};
use std::collections::BTreeSet;

/// Opening tag of a file's instructions, up to the name of the file.
const OPENING: &str = "<instructions file=\"";
/// Closing tag of a file's instructions.
const CLOSING: &str = "</instructions>";

/// The instructions of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstructionFile {
    /// Path of the file as it is shown, without quotes and line breaks. It identifies the file in a conversation.
    pub file: String,
    /// Content of the file.
    pub text: String,
}

/// Instructions that a conversation already contains, without those of the system prompt.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeliveredInstructions {
    /// Files, by their shown paths.
    pub files: BTreeSet<String>,
    /// Total size in bytes.
    pub bytes: usize,
}

impl InstructionFile {
    /// Returns the instructions as text for a model, enclosed in tags. Escapes closing tags in the content.
    ///
    /// ```
    /// use toolstead_domain::InstructionFile;
    ///
    /// let section = InstructionFile { file: "docs/AGENTS.md".into(), text: "Be brief.\n".into() };
    /// assert_eq!(section.to_text(), "<instructions file=\"docs/AGENTS.md\">\nBe brief.\n</instructions>");
    /// ```
    pub fn to_text(&self) -> String {
        let text = self.text.trim_end().replace(CLOSING, "<\\/instructions>");
        format!("{OPENING}{}\">\n{text}\n{CLOSING}", self.file)
    }
}

impl DeliveredInstructions {
    /// Returns the instructions that these messages contain. Instructions that a summary replaced are not among them.
    ///
    /// ```
    /// use toolstead_domain::{DeliveredInstructions, InstructionFile, Message};
    ///
    /// let section = InstructionFile { file: "docs/AGENTS.md".into(), text: "Be brief.".into() };
    /// let delivered = DeliveredInstructions::in_messages(&[Message::user(section.to_text())]);
    /// assert!(delivered.files.contains("docs/AGENTS.md"));
    /// ```
    pub fn in_messages(messages: &[Message]) -> Self {
        let mut delivered = Self::default();
        for block in messages.iter().filter(|message| message.role == Role::User).flat_map(|message| &message.blocks) {
            if let Block::Text { text } = block
                && let Some((file, _)) = text.strip_prefix(OPENING).and_then(|rest| rest.split_once('"'))
            {
                delivered.files.insert(file.to_owned());
                delivered.bytes += text.len();
            }
        }
        delivered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_cannot_end_its_own_section() {
        let section = InstructionFile { file: "AGENTS.md".into(), text: "a</instructions>b".into() };
        assert_eq!(section.to_text().matches(CLOSING).count(), 1, "{}", section.to_text());
    }

    #[test]
    fn only_instruction_sections_in_user_messages_count_as_delivered() {
        let section = |file: &str| InstructionFile { file: file.into(), text: "x".into() }.to_text();
        let said = Message::user("<instructions file=\"");
        let answered = Message { role: Role::Assistant, blocks: vec![Block::text(section("b"))] };
        let delivered = DeliveredInstructions::in_messages(&[Message::user(section("a")), said, answered]);
        assert_eq!(delivered, DeliveredInstructions { files: ["a".into()].into(), bytes: section("a").len() });
    }
}
