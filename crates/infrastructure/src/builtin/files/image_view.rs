//! Converts images into a form that every model provider accepts: upright, small enough, and without metadata.

mod container;

use crate::builtin::files::{file_limits::FileLimits, image_view::container::ImageExtraContentCheck};
use image::{
    DynamicImage, GenericImageView, ImageDecoder, ImageError, ImageFormat, ImageReader, Limits, RgbaImage,
    codecs::jpeg::JpegEncoder, imageops, imageops::FilterType, metadata::Orientation,
};
use schemars::JsonSchema;
use serde::Deserialize;
use std::{
    io::Cursor,
    panic::{self, AssertUnwindSafe},
};
use toolstead_domain::{ToolFailure, error_kind::ErrorKind};

/// Maximum size in bytes of an image file that is decoded.
pub(crate) const MAX_FILE_BYTES: u64 = 64 << 20;
/// Maximum number of decoded pixels. Decoding cannot be interrupted, so this also limits its time.
const MAX_PIXELS: u64 = 100_000_000;
/// Maximum memory of a decoder, in bytes.
const MAX_DECODER_BYTES: u64 = 256 << 20;
/// Qualities of JPEG to try, best first.
const QUALITIES: [u8; 4] = [85, 70, 50, 40];
/// Factor by which each further attempt is smaller, if even the last quality is too large.
const SHRINK: f64 = 0.75;
const ATTEMPTS: usize = 16;

/// A rectangle of an image, in its own pixels, from the upper left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Crop {
    /// Pixels from the left.
    pub(crate) x: u32,
    /// Pixels from the top.
    pub(crate) y: u32,
    /// Pixels across.
    #[schemars(range(min = 1))]
    pub(crate) width: u32,
    /// Pixels down.
    #[schemars(range(min = 1))]
    pub(crate) height: u32,
}

/// A shown image.
#[derive(Debug)]
pub(crate) struct ImageView {
    /// Encoded image to show.
    pub(crate) bytes: Vec<u8>,
    pub(crate) format: ImageFormat,
    /// Width of the upright original, in pixels.
    pub(crate) width: u32,
    /// Height of the upright original, in pixels.
    pub(crate) height: u32,
    pub(crate) shown_width: u32,
    pub(crate) shown_height: u32,
    /// Shown part, clipped to the image.
    pub(crate) crop: Option<Crop>,
    /// `true` if the result has fewer pixels than the image or the part.
    pub(crate) is_scaled: bool,
    /// `true` if the result is not the file itself.
    pub(crate) is_changed: bool,
}

/// Converts an image, or its part `crop`, so that it fits `limits`. A file that already fits and contains only the
/// picture is unchanged. Blocks for a long time.
///
/// # Errors
/// `too_large` for too many pixels, `unsupported_type` for a file that cannot be decoded, `invalid_input` for a part
/// outside of the image.
pub(crate) fn view(
    file: &[u8],
    format: ImageFormat,
    limits: &FileLimits,
    crop: Option<Crop>,
    name: &str,
) -> Result<ImageView, ToolFailure> {
    // Decoders are third-party code, and files are hostile.
    panic::catch_unwind(AssertUnwindSafe(|| viewed(file, format, limits, crop, name)))
        .unwrap_or_else(|_| Err(undecodable(name, format, "the decoder failed")))
}

fn viewed(
    file: &[u8],
    format: ImageFormat,
    limits: &FileLimits,
    crop: Option<Crop>,
    name: &str,
) -> Result<ImageView, ToolFailure> {
    let container = ImageExtraContentCheck::of(file, format);
    if container == ImageExtraContentCheck::Truncated {
        return Err(undecodable(name, format, "it ends too early"));
    }
    let (mut image, orientation) = decoded(file, format, name)?;
    image.apply_orientation(orientation);
    let (width, height) = image.dimensions();
    let crop = crop.map(|crop| within(crop, width, height, name)).transpose()?;
    if let Some(crop) = crop {
        image = image.crop_imm(crop.x, crop.y, crop.width, crop.height);
    }
    let (part_width, part_height) = image.dimensions();
    let scale = scale(part_width, part_height, limits);
    let mut view = ImageView {
        bytes: Vec::new(),
        format,
        width,
        height,
        shown_width: part_width,
        shown_height: part_height,
        crop,
        is_scaled: false,
        is_changed: false,
    };
    let is_upright = orientation == Orientation::NoTransforms;
    if container == ImageExtraContentCheck::Plain
        && is_upright
        && crop.is_none()
        && scale >= 1.0
        && fits(file.len(), limits)
    {
        view.bytes = file.to_vec();
        return Ok(view);
    }
    view.is_changed = true;
    let (bytes, format, shown) = encoded(&image, format, scale.min(1.0), limits).ok_or_else(|| {
        let message = format!("`{name}` could not be made small enough to be shown");
        ToolFailure::new(ErrorKind::TooLarge, message).next("Give `crop` to look at a part of it.")
    })?;
    (view.bytes, view.format, (view.shown_width, view.shown_height)) = (bytes, format, shown);
    view.is_scaled = shown != (part_width, part_height);
    Ok(view)
}

/// Decodes the image, after checks of the header.
fn decoded(file: &[u8], format: ImageFormat, name: &str) -> Result<(DynamicImage, Orientation), ToolFailure> {
    let failed = |error: ImageError| match error {
        ImageError::Limits(_) => too_large(name, "needs more memory to be decoded than is allowed"),
        error => undecodable(name, format, &error.to_string()),
    };
    let mut reader = ImageReader::with_format(Cursor::new(file), format);
    let mut limits = Limits::default();
    limits.max_alloc = Some(MAX_DECODER_BYTES);
    reader.limits(limits);
    let mut decoder = reader.into_decoder().map_err(failed)?;
    let (width, height) = decoder.dimensions();
    if u64::from(width) * u64::from(height) > MAX_PIXELS {
        return Err(too_large(name, &format!("has {width}×{height} pixels, and at most {MAX_PIXELS} are decoded")));
    }
    if decoder.total_bytes() > MAX_DECODER_BYTES {
        return Err(too_large(name, "needs more memory to be decoded than is allowed"));
    }
    // Without readable metadata the picture is not turned.
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    Ok((DynamicImage::from_decoder(decoder).map_err(failed)?, orientation))
}

fn within(crop: Crop, width: u32, height: u32, name: &str) -> Result<Crop, ToolFailure> {
    if crop.x >= width || crop.y >= height {
        let message = format!("the part at ({}, {}) is outside of `{name}`", crop.x, crop.y);
        return Err(ToolFailure::new(ErrorKind::InvalidInput, message)
            .next(format!("The image has {width}×{height} pixels, counted from 0 at the upper left.")));
    }
    Ok(Crop { width: crop.width.min(width - crop.x), height: crop.height.min(height - crop.y), ..crop })
}

fn scale(width: u32, height: u32, limits: &FileLimits) -> f64 {
    let by_side = f64::from(limits.image_side) / f64::from(width.max(height).max(1));
    let pixels = (f64::from(width) * f64::from(height)).max(1.0);
    by_side.min((limits.image_pixels as f64 / pixels).sqrt())
}

fn fits(bytes: usize, limits: &FileLimits) -> bool {
    bytes.div_ceil(3) as u64 * 4 <= limits.image_bytes
}

/// Encodes as PNG unless the source is JPEG or the result is too large, otherwise as JPEG; reduces the size until it
/// fits. `None` if it does not fit after all attempts.
fn encoded(
    image: &DynamicImage,
    source: ImageFormat,
    mut scale: f64,
    limits: &FileLimits,
) -> Option<(Vec<u8>, ImageFormat, (u32, u32))> {
    for _ in 0..ATTEMPTS {
        let scaled = scaled(image, scale);
        let size = scaled.dimensions();
        if source != ImageFormat::Jpeg {
            let mut bytes = Vec::new();
            let plain = if scaled.color().has_alpha() {
                DynamicImage::from(scaled.to_rgba8())
            } else {
                DynamicImage::from(scaled.to_rgb8())
            };
            plain.write_to(&mut Cursor::new(&mut bytes), ImageFormat::Png).ok()?;
            if fits(bytes.len(), limits) {
                return Some((bytes, ImageFormat::Png, size));
            }
        }
        let opaque = on_white(&scaled);
        for quality in QUALITIES {
            let mut bytes = Vec::new();
            JpegEncoder::new_with_quality(&mut bytes, quality).encode_image(&opaque).ok()?;
            if fits(bytes.len(), limits) {
                return Some((bytes, ImageFormat::Jpeg, size));
            }
        }
        scale *= SHRINK;
    }
    None
}

fn scaled(image: &DynamicImage, scale: f64) -> DynamicImage {
    let (width, height) = image.dimensions();
    // Rounded down, so that the result stays within the limits.
    let part = |length: u32| ((f64::from(length) * scale) as u32).clamp(1, length);
    match scale {
        scale if scale >= 1.0 => image.clone(),
        // Averages of whole pixels are as good here and need little time and memory.
        scale if scale <= 0.5 => image.thumbnail_exact(part(width), part(height)),
        _ => image.resize_exact(part(width), part(height), FilterType::CatmullRom),
    }
}

/// Removes transparency, which JPEG does not support.
fn on_white(image: &DynamicImage) -> DynamicImage {
    if !image.color().has_alpha() {
        return image.to_rgb8().into();
    }
    let mut white = RgbaImage::from_pixel(image.width(), image.height(), image::Rgba([255; 4]));
    imageops::overlay(&mut white, &image.to_rgba8(), 0, 0);
    DynamicImage::from(white).to_rgb8().into()
}

fn too_large(name: &str, why: &str) -> ToolFailure {
    ToolFailure::new(ErrorKind::TooLarge, format!("the image `{name}` {why}"))
        .next("Make a smaller copy of it with a program for images, and read that.")
}

fn undecodable(name: &str, format: ImageFormat, why: &str) -> ToolFailure {
    let kind = format.extensions_str().first().copied().unwrap_or("image").to_ascii_uppercase();
    let message = format!("`{name}` begins like a {kind} image and could not be decoded: {why}");
    ToolFailure::new(ErrorKind::UnsupportedType, message)
        .next("It may be damaged or incomplete; `byte_offset` shows its bytes.")
}

#[cfg(test)]
mod tests;
