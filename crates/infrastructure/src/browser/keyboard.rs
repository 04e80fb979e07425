//! Named keys, as a user presses them: they scroll, close, submit, and move between fields.

use crate::browser::{
    devtools::{CommandTarget, DevToolsError},
    references::ElementReference,
    session::{BrowserSession, BrowserSessionError},
};
use futures::future::try_join_all;
use serde_json::{Value, json};
use std::{collections::HashSet, str::FromStr};

/// Names, key codes in browsers, and typed texts.
const KEYS: [(&str, u32, &str); 15] = [
    ("Enter", 13, "\r"),
    ("Escape", 27, ""),
    ("Tab", 9, ""),
    ("Backspace", 8, ""),
    ("Delete", 46, ""),
    ("Insert", 45, ""),
    ("Home", 36, ""),
    ("End", 35, ""),
    ("PageUp", 33, ""),
    ("PageDown", 34, ""),
    ("ArrowUp", 38, ""),
    ("ArrowDown", 40, ""),
    ("ArrowLeft", 37, ""),
    ("ArrowRight", 39, ""),
    ("Space", 32, " "),
];

/// Modifier keys, and their bits.
const HELD: [(&str, u8); 4] = [("Alt", 1), ("Control", 2), ("Meta", 4), ("Shift", 8)];

/// Returns `true` if a frame, or one within it, has the focus.
const HAS_FOCUS: &str = "function () { return document.hasFocus(); }";

/// A key with its modifiers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyPress {
    name: &'static str,
    code: u32,
    /// Text that it types without modifiers.
    text: &'static str,
    held: u8,
    /// The letter or digit, if the key is one.
    letter: Option<char>,
}

/// The error for an unknown name of a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a known key: use {all}, also as in `Shift+Tab`, or a letter as in `Control+a`",
    all = KEYS.map(|(name, ..)| name).join(", ")
)]
pub(crate) struct UnknownKey(String);

impl KeyPress {
    pub(crate) const ENTER: Self = Self { name: "Enter", code: 13, text: "\r", held: 0, letter: None };

    /// Returns the event for pressing or releasing the key.
    fn event(&self, is_down: bool) -> Value {
        // A key with such a modifier is a command and types nothing.
        let text = if is_down && self.held & !8 == 0 { self.text } else { "" };
        let kind = match (is_down, text.is_empty()) {
            (false, _) => "keyUp",
            (true, true) => "rawKeyDown",
            (true, false) => "keyDown",
        };
        let (key, code) = match self.letter {
            Some(letter) if letter.is_ascii_digit() => (letter.to_string(), format!("Digit{letter}")),
            Some(letter) => (letter.to_string(), format!("Key{}", letter.to_ascii_uppercase())),
            None if self.name == "Space" => (" ".into(), "Space".into()),
            None => (self.name.into(), self.name.into()),
        };
        json!({"type": kind, "key": key, "code": code, "windowsVirtualKeyCode": self.code, "text": text,
            "modifiers": self.held})
    }
}

impl FromStr for KeyPress {
    type Err = UnknownKey;

    fn from_str(text: &str) -> Result<Self, UnknownKey> {
        let unknown = || UnknownKey(text.chars().take(40).collect());
        let mut parts = text.split('+').map(str::trim).rev();
        let name = parts.next().unwrap_or_default();
        let mut held = 0;
        for part in parts {
            let part = if part.eq_ignore_ascii_case("ctrl") { "Control" } else { part };
            let (_, bit) = HELD.iter().find(|(name, _)| name.eq_ignore_ascii_case(part)).ok_or_else(unknown)?;
            held |= bit;
        }
        let name = if name.eq_ignore_ascii_case("esc") { "Escape" } else { name };
        if let Some((name, code, text)) = KEYS.iter().find(|(known, ..)| known.eq_ignore_ascii_case(name)) {
            return Ok(Self { name: *name, code: *code, text: *text, held, letter: None });
        }
        // Single letters are text, which is typed and checked as text.
        match (name.as_bytes(), held & !8) {
            ([letter], 1..) if letter.is_ascii_alphanumeric() => {
                let code = letter.to_ascii_uppercase().into();
                Ok(Self { name: "", code, text: "", held, letter: Some(char::from(letter.to_ascii_lowercase())) })
            }
            _ => Err(unknown()),
        }
    }
}

impl BrowserSession {
    /// Presses a key at the focused element.
    ///
    /// # Errors
    /// [`BrowserSessionError`].
    pub(crate) async fn press(&self, target: &CommandTarget, key: &KeyPress) -> Result<(), BrowserSessionError> {
        for is_down in [true, false] {
            self.command(target, "Input.dispatchKeyEvent", key.event(is_down)).await?;
        }
        Ok(())
    }

    /// Moves the focus to an element, which then receives keys.
    ///
    /// # Errors
    /// [`BrowserSessionError`].
    pub(crate) async fn focus(&self, reference: ElementReference) -> Result<(), BrowserSessionError> {
        let (target, object) = self.resolve_element(reference).await?;
        let focused = self.command(&target, "DOM.focus", json!({"objectId": object})).await;
        focused
            .map(|_| ())
            .map_err(|_| BrowserSessionError::Unusable { reference, reason: "it accepts no keys".into() })
    }

    /// Returns the host of the focused frame; `None` if no frame has the focus.
    ///
    /// # Errors
    /// [`BrowserSessionError`]. A frame that was removed meanwhile does not cause an error.
    pub(crate) async fn focused_host(&self) -> Result<Option<String>, BrowserSessionError> {
        let (target, frames) = {
            let state = self.state();
            let tab = state.current().ok_or(BrowserSessionError::NoTab)?;
            (tab.target.clone().ok_or(BrowserSessionError::NoTab)?, tab.frames.keys().cloned().collect::<Vec<_>>())
        };
        let answers = try_join_all(frames.iter().map(|frame| self.has_focus(&target, frame))).await?;
        let focused = frames.iter().zip(answers).filter_map(|(frame, has_focus)| has_focus.then_some(frame.as_str()));
        let focused: HashSet<&str> = focused.collect();
        let state = self.state();
        let Some(tab) = state.current().filter(|tab| tab.target.as_ref() == Some(&target)) else { return Ok(None) };
        // Its ancestors report the focus as well.
        let around = focused.iter().filter_map(|frame| tab.frames.get(*frame)?.parent.as_deref());
        let around: HashSet<&str> = around.collect();
        Ok(focused.difference(&around).next().and_then(|frame| tab.host_of_frame(frame)))
    }

    async fn has_focus(&self, target: &CommandTarget, frame: &str) -> Result<bool, BrowserSessionError> {
        let asking = async {
            let world = self.create_isolated_world(target, Some(frame.to_owned())).await?;
            let asked = json!({"functionDeclaration": HAS_FOCUS, "executionContextId": world, "returnByValue": true});
            self.command(target, "Runtime.callFunctionOn", asked).await
        };
        match asking.await {
            Ok(evaluated) => {
                Ok(evaluated.get("result").and_then(|evaluated| evaluated.get("value")) == Some(&Value::Bool(true)))
            }
            Err(BrowserSessionError::DevTools(DevToolsError::Refused { .. })) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_parsed_by_dom_names_and_plain_letters_are_rejected() {
        for (text, key, code, held) in [
            ("Enter", "Enter", 13, 0),
            ("esc", "Escape", 27, 0),
            ("pagedown", "PageDown", 34, 0),
            ("Space", " ", 32, 0),
            ("Shift+Tab", "Tab", 9, 8),
            ("ctrl + Shift + ArrowLeft", "ArrowLeft", 37, 10),
            ("Control+A", "a", 65, 2),
            ("Alt+5", "5", 53, 1),
        ] {
            let event = text.parse::<KeyPress>().unwrap().event(true);
            assert_eq!((&event["key"], &event["windowsVirtualKeyCode"]), (&json!(key), &json!(code)), "{text}");
            assert_eq!(event["modifiers"], held, "{text}");
        }
        for text in ["", "a", "Shift+a", "Hyper+Tab", "Control+", "Control+ab", "EnterEnter", "é"] {
            let error = text.parse::<KeyPress>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("`{text}` is not a known key")) && error.contains("ArrowUp"), "{error}");
        }
        assert_eq!("Enter".parse(), Ok(KeyPress::ENTER));
    }

    #[test]
    fn only_typing_keys_without_a_command_modifier_carry_text() {
        for (text, kind, typed) in [
            ("Enter", "keyDown", "\r"),
            ("Shift+Enter", "keyDown", "\r"),
            ("Control+Enter", "rawKeyDown", ""),
            ("Escape", "rawKeyDown", ""),
        ] {
            let key: KeyPress = text.parse().unwrap();
            assert_eq!((&key.event(true)["type"], &key.event(true)["text"]), (&json!(kind), &json!(typed)), "{text}");
            assert_eq!((&key.event(false)["type"], &key.event(false)["text"]), (&json!("keyUp"), &json!("")));
        }
    }
}
