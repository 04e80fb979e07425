//! The prompt for an agent on the command line: words, files, standard input and images.

use super::exit::CommandError;
use base64::{Engine, engine::general_purpose::STANDARD};
use clap::Args;
use std::{
    fs::File,
    io::{self, IsTerminal, Read},
    path::{Path, PathBuf},
};
use toolstead_domain::{Block, Image};

/// Maximum size of a prompt in bytes, which is more than the context window of any model.
const MOST_TEXT: u64 = 8 << 20;
/// Maximum size of an image in bytes. Providers have limits of their own.
const MOST_IMAGE: u64 = 20 << 20;
/// Maximum number of images in a prompt.
const MOST_IMAGES: usize = 20;

/// Arguments that form the prompt.
#[derive(Debug, Args)]
pub(super) struct PromptArgs {
    /// The prompt; `-` reads it from standard input, `@FILE` from a file. Piped input is appended
    #[arg(value_name = "TEXT|-|@FILE")]
    words: Vec<String>,
    /// Image to attach (PNG, JPEG, GIF or WebP); repeatable
    #[arg(long, value_name = "FILE")]
    image: Vec<PathBuf>,
}

impl PromptArgs {
    /// Reads the prompt, including piped standard input. Returns no blocks if there is no prompt.
    ///
    /// # Errors
    /// [`CommandError::Usage`] if a part of it cannot be read.
    pub(super) fn read(&self) -> Result<Vec<Block>, CommandError> {
        let input = io::stdin();
        let is_piped = !input.is_terminal();
        self.read_with(&mut input.lock(), is_piped)
    }

    fn read_with(&self, input: &mut dyn Read, is_piped: bool) -> Result<Vec<Block>, CommandError> {
        if self.image.len() > MOST_IMAGES {
            return Err(CommandError::Usage(format!("a prompt accepts at most {MOST_IMAGES} images")));
        }
        let mut parts = Vec::new();
        let wants_input = self.words == ["-"];
        match self.words.as_slice() {
            _ if wants_input => {}
            [text] => parts.push(read_text_or_file(text)?),
            words => parts.push(words.join(" ")),
        }
        if is_piped || wants_input {
            parts.push(text_of(input, "standard input")?);
        }
        parts.retain(|part| !part.trim().is_empty());
        let mut blocks: Vec<Block> = self.image.iter().map(|path| image(path)).collect::<Result<_, _>>()?;
        if !parts.is_empty() {
            blocks.push(Block::text(parts.join("\n\n")));
        }
        Ok(blocks)
    }
}

/// Returns a text that is given directly or as `@FILE`.
///
/// # Errors
/// [`CommandError::Usage`] if the file cannot be read.
pub(super) fn read_text_or_file(text: &str) -> Result<String, CommandError> {
    match text.strip_prefix('@').filter(|path| !path.is_empty()) {
        Some(path) => {
            let mut file = open(Path::new(path)).map_err(|error| {
                CommandError::Usage(format!("{error}; a text that begins with `@` needs a space before it"))
            })?;
            text_of(&mut file, &format!("`{path}`"))
        }
        None => Ok(text.to_owned()),
    }
}

fn open(path: &Path) -> Result<File, CommandError> {
    File::open(path).map_err(|error| CommandError::Usage(format!("could not read `{}`: {error}", path.display())))
}

fn bytes_of(input: &mut dyn Read, most: u64, from: &str) -> Result<Vec<u8>, CommandError> {
    let mut bytes = Vec::new();
    let read = input.take(most + 1).read_to_end(&mut bytes);
    read.map_err(|error| CommandError::Usage(format!("could not read {from}: {error}")))?;
    match bytes.len() as u64 > most {
        true => Err(CommandError::Usage(format!("{from} holds more than {most} bytes; shorten it"))),
        false => Ok(bytes),
    }
}

fn text_of(input: &mut dyn Read, from: &str) -> Result<String, CommandError> {
    String::from_utf8(bytes_of(input, MOST_TEXT, from)?)
        .map_err(|_| CommandError::Usage(format!("{from} is not UTF-8 text; pass images with `--image FILE`")))
}

fn image(path: &Path) -> Result<Block, CommandError> {
    let bytes = bytes_of(&mut open(path)?, MOST_IMAGE, &format!("`{}`", path.display()))?;
    let media_type = media_type(&bytes).ok_or_else(|| {
        CommandError::Usage(format!("`{}` is not a supported image; use PNG, JPEG, GIF or WebP", path.display()))
    })?;
    Ok(Block::Image(Image { media_type: media_type.into(), data: STANDARD.encode(bytes).into() }))
}

/// Returns the media type by the first bytes, because file name extensions may be wrong.
fn media_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn read(words: &[&str], image: &[&Path], piped: Option<&str>) -> Result<Vec<Block>, String> {
        let asked = PromptArgs {
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            image: image.iter().map(|path| path.to_path_buf()).collect(),
        };
        asked
            .read_with(&mut piped.unwrap_or("typed later").as_bytes(), piped.is_some())
            .map_err(|error| error.to_string())
    }

    #[track_caller]
    fn check(words: &[&str], piped: Option<&str>, expected: &str) {
        assert_eq!(read(words, &[], piped), Ok(vec![Block::text(expected)]));
    }

    #[test]
    fn words_files_and_piped_input_form_one_prompt() {
        check(&["explain", "this"], None, "explain this");
        check(&["explain this"], Some("fn main() {}\n"), "explain this\n\nfn main() {}\n");
        check(&[], Some("what is new?"), "what is new?");
        check(&["-"], None, "typed later");
        check(&["-"], Some("what is new?"), "what is new?");
        check(&["what is new?"], Some(""), "what is new?");
        check(&["@me", "too"], None, "@me too");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("prompt.md");
        fs::write(&file, "from a file").unwrap();
        check(&[&format!("@{}", file.display())], Some("and a pipe"), "from a file\n\nand a pipe");
    }

    #[test]
    fn unreadable_prompt_input_is_reported_with_a_suggestion() {
        for (words, piped) in [(&[][..], None), (&[" "], Some("\n")), (&[], Some(""))] {
            assert_eq!(read(words, &[], piped), Ok(Vec::new()));
        }
        let error = read(&["@/nowhere/p.md"], &[], None).unwrap_err();
        assert!(error.starts_with("could not read `/nowhere/p.md`: No such file"), "{error}");
        let asked = PromptArgs { words: Vec::new(), image: Vec::new() };
        let error = asked.read_with(&mut &b"\xff\xd8\xff"[..], true).unwrap_err().to_string();
        assert!(error.contains("pass images with `--image FILE`"), "{error}");
        let endless = &mut io::repeat(b'a').take(MOST_TEXT + 2);
        assert!(asked.read_with(endless, true).unwrap_err().to_string().contains("holds more than 8388608 bytes"));
    }

    #[test]
    fn an_image_is_recognized_by_its_bytes_and_precedes_the_text() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.txt");
        fs::write(&file, b"\x89PNG\r\n").unwrap();
        let image = Block::Image(Image { media_type: "image/png".into(), data: "iVBORw0K".into() });
        assert_eq!(read(&["what is it?"], &[&file], None).unwrap(), [image, Block::text("what is it?")]);
        fs::write(&file, b"text").unwrap();
        assert!(read(&["x"], &[&file], None).unwrap_err().contains("is not a supported image"));
    }
}
