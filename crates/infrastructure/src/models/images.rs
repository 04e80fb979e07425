//! Limits of images in conversations. A rejected image would make every later request fail, so it is replaced by a
//! text.

mod header;

use base64::{Engine, prelude::BASE64_STANDARD};
use header::ImageFacts;
use serde_json::Value;
use std::borrow::Cow;
use toolstead_domain::{Block, Image, Message, OfferedTool};

/// Limits of a provider for images.
#[derive(Debug, Clone, Copy)]
pub(super) struct ImageLimits {
    /// Accepted media types.
    pub(super) media_types: &'static [&'static str],
    /// Maximum size of an image, in bytes of base64.
    pub(super) max_base64: usize,
    /// Maximum width and height, in pixels.
    pub(super) max_side: u32,
    /// Number of images above which `max_side_of_many` applies.
    pub(super) many: usize,
    /// Maximum width and height with many images, in pixels.
    pub(super) max_side_of_many: u32,
    /// Maximum number of images of a request. The newest ones are sent.
    pub(super) max_images: usize,
}

/// Returns the messages with texts in place of images that the provider does not accept. `limits` is `None` for a model
/// without image support. Wrong media types are corrected.
pub(super) fn fitted<'m>(
    messages: &'m [Message],
    limits: Option<&ImageLimits>,
    tools: &[OfferedTool],
) -> Cow<'m, [Message]> {
    let total = messages.iter().flat_map(|message| &message.blocks).map(count).sum();
    if total == 0 {
        return Cow::Borrowed(messages);
    }
    let mut fitting = ImageLimitEnforcer { limits, total, seen: 0, recognizer: recognizer(tools) };
    let mut messages = messages.to_vec();
    for block in messages.iter_mut().flat_map(|message| &mut message.blocks) {
        fitting.fit(block);
    }
    Cow::Owned(messages)
}

fn count(block: &Block) -> usize {
    match block {
        Block::Image(_) => 1,
        Block::ToolResult(result) => result.content.iter().map(count).sum(),
        _ => 0,
    }
}

/// Returns the first tool that accepts images as arguments according to its schema (JSON Schema, `contentMediaType`).
fn recognizer(tools: &[OfferedTool]) -> Option<&str> {
    let takes_images = |tool: &&OfferedTool| {
        let is_image = |property: &Value| {
            let media_type = property.get("contentMediaType").and_then(Value::as_str);
            media_type.is_some_and(|media_type| media_type.starts_with("image/"))
        };
        let properties = tool.input_schema.get("properties").and_then(Value::as_object);
        properties.is_some_and(|properties| properties.values().any(is_image))
    };
    tools.iter().find(takes_images).map(|tool| tool.name.as_str())
}

struct ImageLimitEnforcer<'a> {
    limits: Option<&'a ImageLimits>,
    total: usize,
    seen: usize,
    recognizer: Option<&'a str>,
}

impl ImageLimitEnforcer<'_> {
    fn fit(&mut self, block: &mut Block) {
        match block {
            Block::Image(image) => {
                let place = self.seen;
                self.seen += 1;
                match self.judge(image, place) {
                    Ok(media_type) if media_type == image.media_type => {}
                    Ok(media_type) => image.media_type = media_type.to_owned(),
                    Err(reason) => *block = Block::text(format!("[an image is omitted: {reason}]")),
                }
            }
            Block::ToolResult(result) => result.content.iter_mut().for_each(|block| self.fit(block)),
            _ => {}
        }
    }

    /// Returns the media type of the image, or the reason why it is omitted. `place` is the number of images before it
    /// in the request.
    fn judge(&self, image: &Image, place: usize) -> Result<&'static str, String> {
        let Some(limits) = self.limits else {
            return Err(match self.recognizer {
                Some(tool) => format!("this model accepts no images; the tool `{tool}` does"),
                None => "this model accepts no images".into(),
            });
        };
        if self.total - place > limits.max_images {
            return Err(format!("a request may have at most {} images, and this is an older one", limits.max_images));
        }
        if image.data.len() > limits.max_base64 {
            let (size, most) = (image.data.len() >> 10, limits.max_base64 >> 10);
            return Err(format!("it has {size} KiB in base64, at most {most} are allowed; make it smaller"));
        }
        let damaged = || "it is damaged or not an image".to_owned();
        let bytes = BASE64_STANDARD.decode(&*image.data).map_err(|_| damaged())?;
        let ImageFacts { media_type, width, height } = ImageFacts::of(&bytes).ok_or_else(damaged)?;
        if !limits.media_types.contains(&media_type) {
            return Err(format!("it is {media_type}, and this model accepts {}", limits.media_types.join(", ")));
        }
        let most = if self.total > limits.many { limits.max_side_of_many } else { limits.max_side };
        if width.max(height) > most {
            return Err(format!(
                "it has {width}x{height} pixels, at most {most} per side are allowed; make it smaller"
            ));
        }
        Ok(media_type)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::sync::Arc;
    use toolstead_domain::ToolResultBlock;

    const LIMITS: ImageLimits = ImageLimits {
        media_types: &["image/png", "image/jpeg"],
        max_base64: 1000,
        max_side: 800,
        many: 2,
        max_side_of_many: 200,
        max_images: 3,
    };

    fn png(width: u32, height: u32) -> Vec<u8> {
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        bytes.extend(width.to_be_bytes());
        bytes.extend(height.to_be_bytes());
        bytes
    }

    fn image(bytes: &[u8]) -> Block {
        Block::Image(Image { media_type: "image/png".into(), data: BASE64_STANDARD.encode(bytes).into() })
    }

    fn result(content: Vec<Block>) -> Message {
        let result = ToolResultBlock { id: "1".into(), name: "view".into(), content, is_error: false };
        Message { role: toolstead_domain::model::message::Role::User, blocks: vec![Block::ToolResult(result)] }
    }

    /// Returns each image of one result as `image` or as the text in its place.
    fn texts_of(images: Vec<Block>, limits: Option<&ImageLimits>, tools: &[OfferedTool]) -> Vec<String> {
        let messages = [result(images)];
        let fitted = fitted(&messages, limits, tools);
        let [Block::ToolResult(result)] = fitted[0].blocks.as_slice() else { panic!("{fitted:?}") };
        let describe = |block: &Block| match block {
            Block::Text { text } => text.clone(),
            Block::Image(image) => image.media_type.clone(),
            other => panic!("{other:?}"),
        };
        result.content.iter().map(describe).collect()
    }

    #[track_caller]
    fn check(bytes: &[u8], words: &str) {
        let [outcome] = texts_of(vec![image(bytes)], Some(&LIMITS), &[]).try_into().unwrap();
        assert!(outcome.contains(words), "{outcome}");
    }

    #[test]
    fn an_image_that_the_provider_would_reject_is_replaced_by_a_text() {
        check(&png(800, 1), "image/png");
        check(&png(801, 1), "801x1 pixels, at most 800 per side");
        check(&[&png(1, 1)[..], &[0; 2000]].concat(), "KiB in base64");
        check(b"hello", "damaged");
        check(b"GIF89a\x01\0\x01\0", "it is image/gif, and this model accepts image/png, image/jpeg");
        let broken = Block::Image(Image { media_type: "image/png".into(), data: "%%%".into() });
        assert!(texts_of(vec![broken], Some(&LIMITS), &[])[0].contains("damaged"));
    }

    #[test]
    fn the_media_type_of_an_image_is_detected_from_its_bytes() {
        let jpeg = [0xff, 0xd8, 0xff, 0xc0, 0, 11, 8, 0, 5, 0, 7, 1, 1, 0x11, 0];
        check(&jpeg, "image/jpeg");
    }

    #[test]
    fn many_images_have_a_smaller_size_limit_and_the_oldest_are_omitted() {
        let images = |count: usize, side: u32| texts_of(vec![image(&png(side, side)); count], Some(&LIMITS), &[]);
        assert_eq!(images(2, 300), ["image/png", "image/png"]);
        assert!(images(3, 300).iter().all(|one| one.contains("at most 200 per side")));
        let four = images(4, 100);
        assert!(four[0].contains("at most 3 images") && four[1..] == ["image/png"; 3], "{four:?}");
    }

    #[test]
    fn a_model_without_image_support_is_referred_to_a_tool_that_accepts_images() {
        let tool = |property: Value| OfferedTool {
            name: "look".into(),
            description: String::new(),
            input_schema: Arc::new(json!({"type": "object", "properties": {"picture": property}})),
        };
        let blind = tool(json!({"type": "string"}));
        let eyes = tool(json!({"type": "string", "contentMediaType": "image/png", "contentEncoding": "base64"}));
        let images = || vec![image(&png(1, 1))];
        assert_eq!(texts_of(images(), None, &[blind]), ["[an image is omitted: this model accepts no images]"]);
        assert!(texts_of(images(), None, &[eyes])[0].contains("the tool `look` does"));
    }

    #[test]
    fn messages_without_images_are_not_copied() {
        assert!(matches!(fitted(&[Message::user("a")], None, &[]), Cow::Borrowed(_)));
    }
}
