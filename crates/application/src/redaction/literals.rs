//! Literals without which a pattern of a secret cannot match. Scanning for them is cheap, while a compiled pattern
//! takes up to a megabyte and milliseconds, and most texts that are not plain contain none.

use std::ops::{BitOr, BitOrAssign};

/// A set of literals, and of names with the characters that follow them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PrefilterLiterals(u32);

impl PrefilterLiterals {
    const NONE: Self = Self(0);
    const ALL: Self = Self(u32::MAX);
    /// The end of the first line of a private key in PEM.
    pub(super) const PRIVATE_KEY: Self = Self(1);
    /// `://`, and `@` after it.
    pub(super) const USER_OF_URL: Self = Self(1 << 1);
    /// `?` or `&`, and `=` after it.
    pub(super) const QUERY: Self = Self(1 << 2);
    pub(super) const AUTHORIZATION: Self = Self(1 << 3);
    pub(super) const COOKIE: Self = Self(1 << 4);
    /// A part of each name of a secret.
    const SECRET_NAME: Self = Self(1 << 5);
    pub(super) const BEARER: Self = Self(1 << 6);
    pub(super) const BASIC: Self = Self(1 << 7);
    pub(super) const SSHPASS: Self = Self(1 << 8);
    /// `mysql` or `mariadb`.
    pub(super) const MYSQL: Self = Self(1 << 9);
    /// `docker`, `podman` or `helm`.
    pub(super) const CONTAINERS: Self = Self(1 << 10);
    pub(super) const CURL: Self = Self(1 << 11);
    /// The beginning of the tokens of a well-known service.
    pub(super) const SHAPE: Self = Self(1 << 12);
    const SCHEME: Self = Self(1 << 13);
    const PARAMETERS: Self = Self(1 << 14);
    /// A name with a hyphen that may be that of a secret, then white space or nothing, then `:`.
    pub(super) const SECRET_HEADER: Self = Self(1 << 15);
    /// A name that may be that of a secret, then a quote or a backslash.
    pub(super) const SECRET_MEMBER: Self = Self(1 << 16);
    /// A name that may be that of a secret, then white space or nothing, then `=` or `:=`.
    pub(super) const SECRET_ASSIGNMENT: Self = Self(1 << 17);
    /// A name that may be that of a secret, then white space or nothing, then `:` and a space or a tab.
    pub(super) const SECRET_LINE: Self = Self(1 << 18);
    /// A name that may be that of a secret, then white space or a quote.
    pub(super) const SECRET_OPTION: Self = Self(1 << 19);

    /// Returns the literals and names in a text. ASCII case is ignored except in [`SHAPE`](Self::SHAPE).
    pub(super) fn of(text: &str) -> Self {
        let bytes = text.as_bytes();
        let mut found = Self::NONE;
        // End of the name that was examined last: another part of the same name adds nothing.
        let mut end_of_name = 0;
        for (at, byte) in bytes.iter().enumerate() {
            let rest = &bytes[at..];
            let begins = |word: &[u8]| rest.get(..word.len()).is_some_and(|part| part.eq_ignore_ascii_case(word));
            let begins_exactly = |words: &[&[u8]]| words.iter().any(|word| rest.starts_with(word));
            let shape_if = |is_shape: bool| if is_shape { Self::SHAPE } else { Self::NONE };
            let when = |word: &[u8], literals: Self| if begins(word) { literals } else { Self::NONE };
            let literals = match byte {
                b':' => when(b"://", Self::SCHEME),
                b'@' if found.has(Self::SCHEME) => Self::USER_OF_URL,
                b'?' | b'&' => Self::PARAMETERS,
                b'=' if found.has(Self::PARAMETERS) => Self::QUERY,
                b'1' => shape_if(begins_exactly(&[b"1//0"])),
                b'a' | b'A' => {
                    when(b"authorization", Self::AUTHORIZATION | Self::SECRET_NAME)
                        | shape_if(begins_exactly(&[b"AKIA", b"ASIA", b"AIza"]))
                }
                b'b' | b'B' => {
                    when(b"bearer", Self::BEARER) | when(b"basic", Self::BASIC) | shape_if(begins_exactly(&[b"BSA"]))
                }
                b'c' | b'C' => {
                    when(b"cookie", Self::COOKIE | Self::SECRET_NAME)
                        | when(b"credential", Self::SECRET_NAME)
                        | when(b"curl", Self::CURL)
                }
                b'd' | b'D' => when(b"docker", Self::CONTAINERS),
                b'e' => shape_if(begins_exactly(&[b"eyJ"])),
                b'g' | b'G' => shape_if(is_git_token(rest) || begins_exactly(&[b"GOCSPX-"])),
                b'h' | b'H' => when(b"helm", Self::CONTAINERS) | shape_if(begins_exactly(&[b"hf_"])),
                b'j' | b'J' => when(b"jwt", Self::SECRET_NAME),
                b'k' | b'K' => when(b"key", Self::SECRET_NAME),
                b'm' | b'M' => when(b"mysql", Self::MYSQL) | when(b"mariadb", Self::MYSQL),
                b'n' => shape_if(begins_exactly(&[b"npm_"])),
                b'p' | b'P' => {
                    when(b"pass", Self::SECRET_NAME)
                        | when(b"private key-----", Self::PRIVATE_KEY)
                        | when(b"podman", Self::CONTAINERS)
                        | shape_if(begins_exactly(&[b"pypi-"]))
                }
                b'r' => shape_if(begins_exactly(&[b"rk_"])),
                b's' | b'S' => {
                    when(b"secret", Self::SECRET_NAME)
                        | when(b"sshpass", Self::SSHPASS)
                        | shape_if(begins_exactly(&[b"sk-", b"sk_", b"SG."]))
                }
                b't' | b'T' => when(b"token", Self::SECRET_NAME) | shape_if(begins_exactly(&[b"tvly-"])),
                b'x' => shape_if(begins_exactly(&[b"xox"])),
                b'y' => shape_if(begins_exactly(&[b"ya29."])),
                // `ſ` and the Kelvin sign, which patterns match as an `s` and a `k` if case is ignored.
                0xc5 if rest.starts_with("\u{17f}".as_bytes()) => return Self::ALL,
                0xe2 if rest.starts_with("\u{212a}".as_bytes()) => return Self::ALL,
                _ => Self::NONE,
            };
            found |= literals;
            if literals.has(Self::SECRET_NAME) && at >= end_of_name {
                let (start, end) = name_around(bytes, at);
                found |= Self::after_name(&bytes[start..end], &bytes[end..]);
                end_of_name = end;
            }
        }
        found
    }

    /// Returns the literals of the patterns that may match this name with the bytes that follow it.
    fn after_name(name: &[u8], rest: &[u8]) -> Self {
        const ALL_OF_NAMES: PrefilterLiterals = PrefilterLiterals(
            PrefilterLiterals::SECRET_HEADER.0
                | PrefilterLiterals::SECRET_MEMBER.0
                | PrefilterLiterals::SECRET_ASSIGNMENT.0
                | PrefilterLiterals::SECRET_LINE.0
                | PrefilterLiterals::SECRET_OPTION.0,
        );
        let spaces = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t'..=b'\r')).count();
        let option = if spaces == 0 { Self::NONE } else { Self::SECRET_OPTION };
        let header = if name.contains(&b'-') { Self::SECRET_HEADER } else { Self::NONE };
        match &rest[spaces..] {
            // A byte beyond ASCII may begin white space of Unicode.
            [128..=255, ..] => ALL_OF_NAMES,
            [b'"' | b'\'' | b'\\', ..] if spaces == 0 => Self::SECRET_MEMBER | Self::SECRET_OPTION,
            [b'=', ..] => option | Self::SECRET_ASSIGNMENT,
            [b':', b'=', ..] => option | header | Self::SECRET_ASSIGNMENT,
            [b':', b' ' | b'\t', ..] => option | header | Self::SECRET_LINE,
            [b':', ..] => option | header,
            _ => option,
        }
    }

    /// Returns `true` if one of `these` is in the set.
    pub(super) fn has(self, these: Self) -> bool {
        self.0 & these.0 != 0
    }
}

/// Returns the start and the end of the name that contains this position.
fn name_around(bytes: &[u8], at: usize) -> (usize, usize) {
    let is_of_name = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    let before = bytes[..at].iter().rev().take_while(is_of_name).count();
    (at - before, at + bytes[at..].iter().take_while(is_of_name).count())
}

/// Returns `true` for the beginning of a token of GitHub or GitLab.
fn is_git_token(text: &[u8]) -> bool {
    match text {
        [b'g', b'h', b'p' | b'o' | b'u' | b's' | b'r', b'_', ..] => true,
        [b'g', b'l', rest @ ..] => {
            let letters = rest.iter().take(5).take_while(|byte| byte.is_ascii_lowercase()).count();
            (2..=4).contains(&letters) && rest.get(letters) == Some(&b'-')
        }
        _ => text.starts_with(b"github_pat_"),
    }
}

impl BitOr for PrefilterLiterals {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for PrefilterLiterals {
    fn bitor_assign(&mut self, other: Self) {
        *self = *self | other;
    }
}
