//! Hexadecimal view of bytes for models.

/// Maximum number of bytes shown.
pub(crate) const SHOWN_BYTES: usize = 256;
const ROW: usize = 16;

/// Returns bytes in rows, each with its offset and its readable characters.
pub(crate) fn hex_window(offset: u64, bytes: &[u8]) -> String {
    let mut text = String::new();
    for (row, bytes) in bytes.chunks(ROW).enumerate() {
        let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let readable = |byte: &u8| if byte.is_ascii_graphic() || *byte == b' ' { *byte as char } else { '.' };
        let plain: String = bytes.iter().map(readable).collect();
        text.push_str(&format!("{:08x}  {:<47}  {plain}\n", offset + (row * ROW) as u64, hex.join(" ")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_rows_show_offsets_bytes_and_printable_characters() {
        assert_eq!(
            hex_window(0x20, b"0123456789abcdef\0 "),
            "00000020  30 31 32 33 34 35 36 37 38 39 61 62 63 64 65 66  0123456789abcdef\n\
             00000030  00 20                                            . \n"
        );
    }
}
