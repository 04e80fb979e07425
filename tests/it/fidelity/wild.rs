//! Unusual messages: unknown members, odd names, many digits, escapes and blanks.

use serde_json::{Map, Value, json};

/// Names that no method, block or definition has.
const NAMES: &[&str] =
    &["b", "a", "", "ü", "x/y", "com.example/z", "two words", "\"q\"", "0", "🦀", "x-unknown", "nested", "toolsteady"];
/// Texts that also a definition may hold.
const TEXTS: &[&str] = &[
    "",
    " ",
    "plain",
    "line\nbreak\r\n\ttab",
    "äöü ẞ",
    "🦀",
    "\"\\/",
    "{\"json\": [1.0]}",
    "https://example.com/?a=b&c=d#e",
    "(no output)",
    "null",
];
/// Texts that hide or move others, which are no business of definitions.
const ODD_TEXTS: &[&str] = &["\u{0}\u{1b}[31m\u{7f}", "\u{2028}\u{2029}", "\u{202e}\u{200b}", "👩‍👩‍👧"];

/// A source of such values. The same seed gives the same ones.
#[derive(Debug)]
pub(super) struct Wild {
    state: u64,
    /// `true` if texts are restricted to what definitions may contain.
    pub(super) is_tame: bool,
}

impl Wild {
    pub(super) fn of(seed: u64) -> Self {
        Self { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, is_tame: false }
    }

    fn next(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        (self.next() >> 33) as usize % bound
    }

    pub(super) fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub(super) fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }

    pub(super) fn text(&mut self) -> String {
        let odd = if self.is_tame { "" } else { self.pick(ODD_TEXTS) };
        format!("{}{}", self.pick(TEXTS), self.pick(&[odd, "", "x"]))
    }

    /// A number that 64 bits or a double carry.
    pub(super) fn number(&mut self) -> Value {
        match self.below(5) {
            0 => self.next().into(),
            1 => (self.next() as i64).into(),
            2 => self.pick(&[json!(0), json!(-0.0), json!(1.0), json!(1e20), json!(5e-324), json!(f64::MAX)]),
            3 => self.pick(&[json!(u64::MAX), json!(i64::MIN), json!(9_007_199_254_740_993_i64)]),
            _ => loop {
                let double = f64::from_bits(self.next());
                if double.is_finite() {
                    return double.into();
                }
            },
        }
    }

    pub(super) fn value(&mut self, depth: usize) -> Value {
        match self.below(if depth == 0 { 4 } else { 6 }) {
            0 => self.pick(&[Value::Null, true.into(), false.into()]),
            1 => self.number(),
            2 | 3 => self.text().into(),
            4 => (0..self.below(4)).map(|_| self.value(depth - 1)).collect(),
            _ => self.object(depth - 1).into(),
        }
    }

    /// An object of unknown members.
    pub(super) fn object(&mut self, depth: usize) -> Map<String, Value> {
        (0..self.below(4)).map(|_| (self.pick(NAMES).to_owned(), self.value(depth))).collect()
    }

    /// These members among unknown ones, in any order, and now and then a `_meta`.
    pub(super) fn among(&mut self, known: &[(&str, Value)]) -> Map<String, Value> {
        let mut members: Vec<(String, Value)> = self.object(2).into_iter().collect();
        let meta = self.object(2).into();
        let known = known.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        for member in known.chain(self.one_in(2).then(|| ("_meta".to_owned(), meta))) {
            members.insert(self.below(members.len() + 1), member);
        }
        members.into_iter().collect()
    }

    /// Some of these members.
    pub(super) fn some_of<'a>(&mut self, members: &[(&'a str, Value)]) -> Vec<(&'a str, Value)> {
        members.iter().filter(|_| self.one_in(2)).cloned().collect()
    }

    /// The value as JSON on one line, with blanks, escapes and exponents that are not needed.
    pub(super) fn write(&mut self, value: &Value) -> String {
        let mut text = String::new();
        self.write_into(value, &mut text);
        text
    }

    fn write_into(&mut self, value: &Value, text: &mut String) {
        self.blank(text);
        match value {
            Value::Null | Value::Bool(_) => text.push_str(&value.to_string()),
            Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
                Some(double) if self.one_in(2) => text.push_str(&format!("{double:e}")),
                _ => text.push_str(&number.to_string()),
            },
            Value::String(string) => self.write_text(string, text),
            Value::Array(items) => {
                text.push('[');
                for (at, item) in items.iter().enumerate() {
                    text.push_str(if at == 0 { "" } else { "," });
                    self.write_into(item, text);
                }
                self.blank(text);
                text.push(']');
            }
            Value::Object(members) => {
                text.push('{');
                for (at, (name, member)) in members.iter().enumerate() {
                    text.push_str(if at == 0 { "" } else { "," });
                    self.write_text(name, text);
                    self.blank(text);
                    text.push(':');
                    self.write_into(member, text);
                }
                self.blank(text);
                text.push('}');
            }
        }
    }

    fn write_text(&mut self, string: &str, text: &mut String) {
        text.push('"');
        for character in string.chars() {
            match character {
                '/' if self.one_in(4) => text.push_str("\\/"),
                '"' | '\\' => text.extend(['\\', character]),
                '\0'..='\u{1f}' => text.push_str(&format!("\\u{:04x}", u32::from(character))),
                _ if self.one_in(8) => {
                    for unit in character.encode_utf16(&mut [0; 2]) {
                        text.push_str(&format!("\\u{unit:04X}"));
                    }
                }
                _ => text.push(character),
            }
        }
        text.push('"');
    }

    fn blank(&mut self, text: &mut String) {
        if self.one_in(6) {
            text.push_str(self.pick(&[" ", "  ", "\t"]));
        }
    }
}
