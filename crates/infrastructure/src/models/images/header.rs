//! Media type and size of an image, read from its first bytes.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ImageFacts {
    pub(super) media_type: &'static str,
    pub(super) width: u32,
    pub(super) height: u32,
}

impl ImageFacts {
    /// Parses the header of a PNG, JPEG, GIF or WebP image; `None` for other and damaged images.
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        let facts = |media_type, (width, height)| Self { media_type, width, height };
        if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
            png(bytes).map(|size| facts("image/png", size))
        } else if bytes.starts_with(&[0xff, 0xd8]) {
            jpeg(bytes).map(|size| facts("image/jpeg", size))
        } else if bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a") {
            let size = (little(bytes, 6, 2)?, little(bytes, 8, 2)?);
            Some(facts("image/gif", size))
        } else if bytes.starts_with(b"RIFF") && bytes.get(8..12)? == b"WEBP" {
            webp(bytes).map(|size| facts("image/webp", size))
        } else {
            None
        }
    }
}

fn png(bytes: &[u8]) -> Option<(u32, u32)> {
    (bytes.get(12..16)? == b"IHDR").then_some(())?;
    Some((big(bytes, 16, 4)?, big(bytes, 20, 4)?))
}

/// Returns the width and height of a JPEG image from the first segment that contains them.
fn jpeg(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        if *bytes.get(at)? != 0xff {
            return None;
        }
        // Any number of fill bytes may precede a marker.
        while *bytes.get(at)? == 0xff {
            at += 1;
        }
        let marker = *bytes.get(at)?;
        at += 1;
        match marker {
            // These markers have no length.
            0x01 | 0xd0..=0xd8 => continue,
            // Frame header. The markers 0xc4, 0xc8 and 0xcc have another meaning.
            0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf => {
                return Some((big(bytes, at + 5, 2)?, big(bytes, at + 3, 2)?));
            }
            // The image data begins or ends without a frame header.
            0xd9 | 0xda => return None,
            _ => at += usize::try_from(big(bytes, at, 2)?).ok().filter(|length| *length >= 2)?,
        }
    }
}

fn webp(bytes: &[u8]) -> Option<(u32, u32)> {
    match bytes.get(12..16)? {
        b"VP8 " => Some((little(bytes, 26, 2)? & 0x3fff, little(bytes, 28, 2)? & 0x3fff)),
        b"VP8L" => {
            let bits = little(bytes, 21, 4)?;
            Some(((bits & 0x3fff) + 1, ((bits >> 14) & 0x3fff) + 1))
        }
        b"VP8X" => Some((little(bytes, 24, 3)? + 1, little(bytes, 27, 3)? + 1)),
        _ => None,
    }
}

fn big(bytes: &[u8], at: usize, count: usize) -> Option<u32> {
    Some(bytes.get(at..at + count)?.iter().fold(0, |number, byte| number << 8 | u32::from(*byte)))
}

fn little(bytes: &[u8], at: usize, count: usize) -> Option<u32> {
    Some(bytes.get(at..at + count)?.iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(bytes: &[u8], media_type: &'static str, width: u32, height: u32) {
        assert_eq!(ImageFacts::of(bytes), Some(ImageFacts { media_type, width, height }));
        for cut in 0..bytes.len() {
            // Parsing must not read past the end.
            let _ = ImageFacts::of(&bytes[..cut]);
        }
    }

    #[test]
    fn image_sizes_are_read_for_all_four_formats() {
        check(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\x80\0\0\x01\xe0", "image/png", 640, 480);
        check(b"GIF89a\x80\x02\xe0\x01", "image/gif", 640, 480);
        let exif = [0xff, 0xe1, 0, 6, 1, 2, 3, 4];
        let frame = [0xff, 0xff, 0xc2, 0, 11, 8, 1, 0xe0, 2, 0x80, 1, 1, 0x11, 0];
        check(&[&[0xff, 0xd8][..], &exif, &frame].concat(), "image/jpeg", 640, 480);
        let webp = |kind: &[u8], rest: &[u8]| [b"RIFF\0\0\0\0WEBP".as_slice(), kind, &[0; 4], rest].concat();
        check(&webp(b"VP8 ", &[0, 0, 0, 0x9d, 1, 0x2a, 0x80, 2, 0xe0, 1]), "image/webp", 640, 480);
        check(&webp(b"VP8X", &[0, 0, 0, 0, 0x7f, 2, 0, 0xdf, 1, 0]), "image/webp", 640, 480);
        let bits: u32 = 639 | 479 << 14;
        check(&webp(b"VP8L", &[&[0x2f][..], &bits.to_le_bytes()].concat()), "image/webp", 640, 480);
    }

    proptest! {
        #[test]
        fn reading_an_image_header_never_panics(kind in 0..4_usize, rest in proptest::collection::vec(any::<u8>(), 0..200)) {
            let heads = [&b"\x89PNG\r\n\x1a\n"[..], &[0xff, 0xd8, 0xff], b"GIF89a", b"RIFF\0\0\0\0WEBPVP8L"];
            let _ = ImageFacts::of(&[heads[kind], &rest].concat());
        }
    }
}
