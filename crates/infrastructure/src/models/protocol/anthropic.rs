//! Anthropic Messages (`anthropic-version: 2023-06-01`), streamed.

mod answer;
mod request;

use super::{Decoder, ModelProtocol};
use crate::models::{
    images::ImageLimits,
    offer::{CallIdAllocator, ToolMapping},
    settings::{ModelSettings, ProviderKind},
};
use answer::AnthropicDecoder;
use http::{HeaderMap, HeaderName, HeaderValue, header::InvalidHeaderValue};
use serde_json::Value;
use toolstead_domain::{ModelError, ModelRequest, OfferedTool, Secret};

/// Provider name that marks the sealed blocks of this protocol.
const PROVIDER: &str = "anthropic";
const API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const VERSION: HeaderName = HeaderName::from_static("anthropic-version");
/// Maximum length of a tool name.
const MAX_NAME: usize = 128;
/// Limits of images ("Vision", "Limitations" in Anthropic's documentation).
const IMAGES: ImageLimits = ImageLimits {
    media_types: &["image/png", "image/jpeg", "image/gif", "image/webp"],
    max_base64: 5 << 20,
    max_side: 8000,
    many: 20,
    max_side_of_many: 2000,
    max_images: 100,
};

/// Protocol of Anthropic Messages.
pub(super) struct Anthropic;

impl ModelProtocol for Anthropic {
    fn path(&self, settings: &ModelSettings) -> String {
        let has_version = settings.base_url.trim_end_matches('/').ends_with("/v1");
        if has_version { "/messages" } else { "/v1/messages" }.to_owned()
    }

    fn authorize(&self, key: &Secret, headers: &mut HeaderMap) -> Result<(), InvalidHeaderValue> {
        let mut value = HeaderValue::from_str(key.expose())?;
        value.set_sensitive(true);
        headers.insert(API_KEY, value);
        Ok(())
    }

    fn add_headers(&self, headers: &mut HeaderMap) {
        headers.insert(VERSION, HeaderValue::from_static("2023-06-01"));
    }

    fn definitions(&self, tools: &[OfferedTool]) -> Vec<Value> {
        request::definitions(tools, &offer(tools))
    }

    fn body(&self, settings: &ModelSettings, request: &ModelRequest) -> Result<Vec<u8>, ModelError> {
        request::body(settings, request, &offer(&request.tools))
    }

    fn decoder(&self, request: &ModelRequest) -> Box<dyn Decoder> {
        Box::new(AnthropicDecoder::new(offer(&request.tools), CallIdAllocator::after(request)))
    }
}

fn offer(tools: &[OfferedTool]) -> ToolMapping {
    let allowed = |_: usize, c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    ToolMapping::of(ProviderKind::Anthropic, tools, allowed, MAX_NAME)
}

#[cfg(test)]
mod tests;
