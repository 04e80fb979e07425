//! Rules common to both protocols of OpenAI.

use crate::models::{images::ImageLimits, settings::ModelSettings};
use http::{
    HeaderMap, HeaderValue,
    header::{AUTHORIZATION, InvalidHeaderValue},
};
use toolstead_domain::{Image, Secret};

/// Maximum length of a tool name.
pub(super) const MAX_NAME: usize = 64;

/// Limits of images ("Images and vision" in OpenAI's documentation). The provider scales down larger ones.
pub(super) const IMAGES: ImageLimits = ImageLimits {
    media_types: &["image/png", "image/jpeg", "image/gif", "image/webp"],
    max_base64: 20 << 20,
    max_side: u32::MAX,
    many: usize::MAX,
    max_side_of_many: u32::MAX,
    max_images: 500,
};

/// Returns `true` for letters, digits, `_` and `-`.
pub(super) fn is_of_name(_: usize, letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-')
}

/// Returns `true` if the base URL is that of OpenAI itself or of its models in Azure, whose rules are stricter and
/// newer than those of compatible servers.
pub(super) fn is_openai(settings: &ModelSettings) -> bool {
    let host = settings.base_url.split_once("://").map_or("", |(_, rest)| rest);
    let host = host.split(['/', ':', '?']).next().unwrap_or("");
    host == "api.openai.com" || host.ends_with(".api.openai.com") || host.ends_with(".openai.azure.com")
}

/// Adds the header `Authorization: Bearer …`.
pub(super) fn authorize(key: &Secret, headers: &mut HeaderMap) -> Result<(), InvalidHeaderValue> {
    let mut value = HeaderValue::from_str(&format!("Bearer {}", key.expose()))?;
    value.set_sensitive(true);
    headers.insert(AUTHORIZATION, value);
    Ok(())
}

/// Returns an image as a data URL.
pub(super) fn data_url(image: &Image) -> String {
    format!("data:{};base64,{}", image.media_type, image.data)
}
