//! Guarantees of shown images.

use super::*;
use crate::builtin::tests::Bench;
use base64::{Engine, engine::general_purpose::STANDARD};
use image::{Rgb, RgbImage};
use serde_json::{Value, json};
use toolstead_domain::ToolResult;

/// Returns a picture of noise, which no encoder can make small.
fn noise(width: u32, height: u32) -> RgbImage {
    let mut state = 1_u32;
    RgbImage::from_fn(width, height, |_, _| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let [r, g, b, _] = (state >> 4).to_le_bytes();
        Rgb([r, g, b])
    })
}

fn file(image: impl Into<DynamicImage>, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    image.into().write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

fn shown(result: &ToolResult) -> (Vec<u8>, DynamicImage, &str) {
    let block = &result.content()[0];
    let bytes = STANDARD.decode(block["data"].as_str().unwrap()).unwrap();
    let image = image::load_from_memory(&bytes).unwrap();
    (bytes, image, block["mimeType"].as_str().unwrap())
}

/// Returns a JPEG whose EXIF data contains a rotation.
fn turned(image: RgbImage, orientation: u8) -> Vec<u8> {
    let plain = file(image, ImageFormat::Jpeg);
    let mut exif = b"\xff\xe1\0\x22Exif\0\0MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0".to_vec();
    exif.extend([orientation, 0, 0, 0, 0, 0, 0]);
    [&plain[..2], &exif, &plain[2..]].concat()
}

#[test]
fn an_image_within_the_limits_is_returned_unchanged() {
    let bench = Bench::new();
    for (name, format, mime) in [
        ("a.png", ImageFormat::Png, "image/png"),
        ("a.jpg", ImageFormat::Jpeg, "image/jpeg"),
        ("a.webp", ImageFormat::WebP, "image/webp"),
    ] {
        let bytes = file(noise(40, 30), format);
        bench.put(name, &bytes);
        let result = bench.call("read_file", json!({"path": name})).unwrap();
        assert_eq!((shown(&result).0, shown(&result).2), (bytes.clone(), mime));
        assert_eq!(result.joined_text(), format!("`{name}`: {mime}, {} bytes, 40×30 pixels.", bytes.len()));
        let expected = json!({
            "path": name, "kind": "image", "size_bytes": bytes.len(), "truncated": false, "mime": mime,
            "width": 40, "height": 30, "shown_width": 40, "shown_height": 30,
        });
        assert_eq!(result.structured_content(), Some(&expected));
    }
}

#[test]
fn a_large_image_is_scaled_down_and_its_original_is_stored() {
    let bench = Bench::new();
    let bytes = file(noise(2400, 300), ImageFormat::Png);
    bench.put("a.png", &bytes);
    let result = bench.call("read_file", json!({"path": "a.png"})).unwrap();
    let (sent, image, mime) = shown(&result);
    assert!(STANDARD.encode(&sent).len() <= 768 << 10, "{}", sent.len());
    assert_eq!((image.dimensions(), mime), ((2000, 250), "image/jpeg"));
    let text = result.joined_text();
    assert!(
        text.ends_with("shown in 2000×250; `crop` shows a part in full. The original is stored as `o1`."),
        "{text}"
    );
    assert_eq!(result.structured_content().unwrap()["original"], "o1");
    let part = bench
        .call("read_file", json!({"path": "o1", "crop": {"x": 2390, "y": 290, "width": 100, "height": 100}}))
        .unwrap();
    assert_eq!(shown(&part).1.to_rgb8(), imageops::crop_imm(&noise(2400, 300), 2390, 290, 10, 10).to_image());
    assert!(part.joined_text().contains("the part of 10×10 pixels at (2390, 290)"), "{}", part.joined_text());
    assert!(part.joined_text().ends_with("`o1` is the original."));
}

#[test]
fn image_metadata_is_removed_and_the_orientation_is_applied() {
    let bench = Bench::new();
    let mut picture = RgbImage::from_pixel(32, 16, Rgb([255; 3]));
    (0..16).for_each(|y| (0..16).for_each(|x| picture.put_pixel(x, y, Rgb([0; 3]))));
    bench.put("a.jpg", turned(picture, 6));
    let result = bench.call("read_file", json!({"path": "a.jpg"})).unwrap();
    let (sent, image, _) = shown(&result);
    assert!(!sent.windows(4).any(|bytes| bytes == b"Exif"));
    assert_eq!(image.dimensions(), (16, 32));
    let luma = image.to_luma8();
    assert!(luma.get_pixel(8, 4)[0] < 30 && luma.get_pixel(8, 28)[0] > 225, "the dark half is up");
    assert_eq!(result.structured_content().unwrap()["width"], 16);
}

#[test]
fn detects_plain_truncated_and_extra_content_in_image_files() {
    let png = file(noise(4, 4), ImageFormat::Png);
    let jpeg = file(noise(4, 4), ImageFormat::Jpeg);
    let text_chunk = b"\0\0\0\x03tEXta\0b\0\0\0\0";
    let with_text = [&png[..33], text_chunk, &png[33..]].concat();
    let comment = [&jpeg[..2], b"\xff\xfe\0\x04hi", &jpeg[2..]].concat();
    for (bytes, format, expected) in [
        (&png[..], ImageFormat::Png, ImageExtraContentCheck::Plain),
        (&with_text, ImageFormat::Png, ImageExtraContentCheck::Other),
        (&[&png[..], b"more"].concat(), ImageFormat::Png, ImageExtraContentCheck::Other),
        (&png[..png.len() - 1], ImageFormat::Png, ImageExtraContentCheck::Truncated),
        (&png[..9], ImageFormat::Png, ImageExtraContentCheck::Truncated),
        (&jpeg, ImageFormat::Jpeg, ImageExtraContentCheck::Plain),
        (&comment, ImageFormat::Jpeg, ImageExtraContentCheck::Other),
        (&turned(noise(4, 4), 1), ImageFormat::Jpeg, ImageExtraContentCheck::Other),
        (&[&jpeg[..], b"more"].concat(), ImageFormat::Jpeg, ImageExtraContentCheck::Other),
        (&jpeg[..jpeg.len() - 2], ImageFormat::Jpeg, ImageExtraContentCheck::Truncated),
        (&jpeg[..3], ImageFormat::Jpeg, ImageExtraContentCheck::Truncated),
        (&file(noise(4, 4), ImageFormat::Gif), ImageFormat::Gif, ImageExtraContentCheck::Other),
        (&file(noise(4, 4), ImageFormat::WebP)[..20], ImageFormat::WebP, ImageExtraContentCheck::Truncated),
    ] {
        assert_eq!(ImageExtraContentCheck::of(bytes, format), expected, "{format:?}, {} bytes", bytes.len());
    }
}

#[test]
fn other_formats_become_png_and_transparency_stays() {
    let bench = Bench::new();
    let clear = RgbaImage::from_pixel(8, 8, image::Rgba([10, 20, 30, 0]));
    bench.put("a.gif", file(clear, ImageFormat::Gif));
    bench.put("a.bmp", file(noise(8, 8), ImageFormat::Bmp));
    for (name, has_alpha) in [("a.gif", true), ("a.bmp", false)] {
        let result = bench.call("read_file", json!({"path": name})).unwrap();
        let (_, image, mime) = shown(&result);
        assert_eq!((mime, image.color().has_alpha()), ("image/png", has_alpha), "{name}");
    }
}

#[test]
fn rejects_truncated_and_oversized_images_and_crops_outside_the_image() {
    let bench = Bench::new();
    let png = file(noise(40, 30), ImageFormat::Png);
    bench.put("cut.png", &png[..png.len() / 2]);
    let mut bomb = png.clone();
    bomb[16..24].copy_from_slice(&[0, 0, 0x75, 0x30, 0, 0, 0x75, 0x30]);
    let crc = crc(&bomb[12..29]);
    bomb[29..33].copy_from_slice(&crc.to_be_bytes());
    bench.put("bomb.png", bomb);
    bench.put("a.png", &png);
    let jpeg = file(noise(40, 30), ImageFormat::Jpeg);
    bench.put("cut.jpg", &jpeg[..jpeg.len() / 2]);
    let failure = |arguments: Value| bench.call("read_file", arguments).unwrap_err();
    for name in ["cut.png", "cut.jpg"] {
        let answer = failure(json!({"path": name}));
        assert_eq!(answer.kind, ErrorKind::UnsupportedType);
        assert!(answer.text().contains("image and could not be decoded: it ends too early"), "{}", answer.text());
    }
    let answer = failure(json!({"path": "bomb.png"}));
    assert_eq!(
        (answer.kind, answer.text().as_str()),
        (
            ErrorKind::TooLarge,
            "the image `bomb.png` has 30000×30000 pixels, and at most 100000000 are decoded. Make a smaller copy of it \
             with a program for images, and read that."
        )
    );
    let answer = failure(json!({"path": "a.png", "crop": {"x": 40, "y": 0, "width": 1, "height": 1}}));
    assert_eq!(
        (answer.kind, answer.text().as_str()),
        (
            ErrorKind::InvalidInput,
            "the part at (40, 0) is outside of `a.png`. The image has 40×30 pixels, counted from 0 at the upper left."
        )
    );
}

/// Returns the checksum of a PNG chunk.
fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 })
    })
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(200))]
    #[test]
    fn damaged_images_do_not_cause_a_panic(
        format in proptest::sample::select(vec![ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::Gif, ImageFormat::WebP, ImageFormat::Bmp]),
        at in 0.0..1.0_f64,
        byte: u8,
        end in 0.0..1.0_f64,
    ) {
        let mut bytes = file(noise(9, 9), format);
        let place = (at * bytes.len() as f64) as usize;
        bytes[place] = byte;
        bytes.truncate(place.max((end * bytes.len() as f64) as usize));
        ImageExtraContentCheck::of(&bytes, format);
        let _ = view(&bytes, format, &FileLimits::default(), None, "f");
    }
}
