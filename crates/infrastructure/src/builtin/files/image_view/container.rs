//! Checks an image file for content other than its picture, by its outer structure alone.

use image::ImageFormat;

/// Classification of an image file by its outer structure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ImageExtraContentCheck {
    /// One picture and what is needed to show it, nothing else.
    Plain,
    /// Metadata, more pictures, data after the end, or an unknown part.
    Other,
    /// The file ends before its structure does.
    Truncated,
}

/// Chunks of PNG that affect the appearance of the picture.
const PNG_CHUNKS: &[&[u8; 4]] =
    &[b"IHDR", b"PLTE", b"IDAT", b"IEND", b"tRNS", b"gAMA", b"cHRM", b"sRGB", b"iCCP", b"sBIT", b"bKGD", b"pHYs"];

impl ImageExtraContentCheck {
    pub(super) fn of(file: &[u8], format: ImageFormat) -> Self {
        match format {
            ImageFormat::Png => png(file),
            ImageFormat::Jpeg => jpeg(file),
            ImageFormat::WebP => webp(file),
            // GIF may be animated, and not every provider accepts BMP.
            _ => Self::Other,
        }
    }
}

fn png(file: &[u8]) -> ImageExtraContentCheck {
    let (mut rest, mut is_plain) = (file.get(8..).unwrap_or_default(), true);
    loop {
        let Some((head, behind)) = rest.split_first_chunk::<8>() else { return ImageExtraContentCheck::Truncated };
        let (length, name) = head.split_at(4);
        let length = u32::from_be_bytes([length[0], length[1], length[2], length[3]]) as usize;
        let Some(next) = behind.get(length.saturating_add(4)..) else { return ImageExtraContentCheck::Truncated };
        is_plain &= PNG_CHUNKS.iter().any(|known| known[..] == *name);
        if name == b"IEND" {
            return if is_plain && next.is_empty() {
                ImageExtraContentCheck::Plain
            } else {
                ImageExtraContentCheck::Other
            };
        }
        rest = next;
    }
}

fn jpeg(file: &[u8]) -> ImageExtraContentCheck {
    let (mut at, mut is_plain) = (2, true);
    loop {
        let marker = match file.get(at..at + 2) {
            Some([0xff, marker]) => marker,
            Some(_) => return ImageExtraContentCheck::Other,
            None => return ImageExtraContentCheck::Truncated,
        };
        let length = match file.get(at + 2..at + 4) {
            _ if *marker == 0xd9 => {
                return if is_plain && file.len() == at + 2 {
                    ImageExtraContentCheck::Plain
                } else {
                    ImageExtraContentCheck::Other
                };
            }
            // Any number of fill bytes may precede a marker.
            _ if *marker == 0xff => {
                at += 1;
                continue;
            }
            Some(bytes) => usize::from(u16::from_be_bytes([bytes[0], bytes[1]])),
            None => return ImageExtraContentCheck::Truncated,
        };
        let body = file.get(at + 4..at + 2 + length.max(2)).unwrap_or_default();
        is_plain &= match marker {
            0xe0 => body.starts_with(b"JFIF\0"),
            0xe2 => body.starts_with(b"ICC_PROFILE\0"),
            0xee => body.starts_with(b"Adobe"),
            0xe1..=0xef | 0xfe => false,
            _ => true,
        };
        at += 2 + length.max(2);
        if *marker == 0xda {
            // The data of a scan continues to the next marker that is not part of it.
            let own = |pair: &[u8]| pair[0] != 0xff || matches!(pair[1], 0 | 0xd0..=0xd7 | 0xff);
            match file.get(at..).and_then(|data| data.windows(2).position(|pair| !own(pair))) {
                Some(passed) => at += passed,
                None => return ImageExtraContentCheck::Truncated,
            }
        }
    }
}

fn webp(file: &[u8]) -> ImageExtraContentCheck {
    let Some(header) = file.get(4..16) else { return ImageExtraContentCheck::Truncated };
    let length = u32::from_le_bytes([header[0], header[1], header[2], header[3]]) as usize;
    match file.len().cmp(&length.saturating_add(8)) {
        std::cmp::Ordering::Less => ImageExtraContentCheck::Truncated,
        // The simple forms have one chunk, which is the picture.
        std::cmp::Ordering::Equal if [&b"VP8 "[..], b"VP8L"].contains(&&header[8..12]) && is_one_chunk(file) => {
            ImageExtraContentCheck::Plain
        }
        _ => ImageExtraContentCheck::Other,
    }
}

fn is_one_chunk(file: &[u8]) -> bool {
    let length = file.get(16..20).map(|length| u32::from_le_bytes([length[0], length[1], length[2], length[3]]));
    length.is_some_and(|length| file.len() as u64 == 20 + u64::from(length).next_multiple_of(2))
}
