//! A tree of files as repositories have them and worse: the same one every time.

use std::{
    ffi::OsString,
    fs,
    os::unix::{ffi::OsStringExt, fs::symlink},
    path::{Path, PathBuf},
    time::{Duration, UNIX_EPOCH},
};

/// Numbers that look random and are always the same (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % limit as u64) as usize
    }

    fn one_of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }
}

const FOLDERS: &[&str] = &[
    "src",
    "lib",
    "docs",
    "tests",
    "build",
    "target",
    "node_modules",
    "vendor",
    "gen",
    "out",
    "a",
    "b",
    "c",
    "util",
    ".hidden",
    ".config",
    "with space",
    "-dash",
    "ünï",
    "[br]",
];
const STEMS: &[&str] = &["main", "mod", "util", "keep", "test_one", "README", "foo1", "x", ".dot", "data", "index"];
const EXTENSIONS: &[&str] =
    &[".rs", ".rs", ".txt", ".txt", ".md", ".log", ".tmp", ".o", ".c", ".h", ".py", ".js", ".json", ".excluded", ""];
const WORDS: &[&str] = &[
    "needle",
    "Needle",
    "NEEDLE",
    "haystack",
    "fn main() {",
    "}",
    "let x = 1;",
    "TODO: later",
    "error[E0308]",
    "naïve",
    "a.b",
    "a+b",
    "\"quoted\"",
    "foo(bar)",
    "the quick brown fox",
    "0123456789",
    "Straße",
    "tab\there",
    "x",
    "  ",
];
const PATTERNS: &[&str] = &[
    "*.log",
    "/out",
    "build/",
    "*.tmp   ",
    "!keep*",
    "**/gen",
    "docs/**/*.md",
    "[bc]/",
    "# a comment",
    "foo[0-9].*",
    "!*.md",
    "*.o",
    "/src/*.rs",
    "node_modules/",
    "?.txt",
    "target",
    "!/target",
    "util/**",
    "**/vendor/*",
    "data*.json",
    "\\!odd",
    "src/**/mod[0-9]*.rs",
    "{x,y}.c",
    "with space/",
    "*.",
    "",
];

/// Creates this number of files below the folder, which exists and is empty.
pub(crate) fn grow(root: &Path, files: usize) {
    let mut numbers = Numbers(20_000);
    let folders = folders(root, files / 14, &mut numbers);
    for number in 0..files {
        let folder = &folders[numbers.below(folders.len())];
        let stem = numbers.one_of(STEMS);
        let path = folder.join(format!("{stem}{number}{}", numbers.one_of(EXTENSIONS)));
        fs::write(&path, content(&mut numbers)).unwrap();
        let changed = UNIX_EPOCH + Duration::from_secs(1_700_000_000 + numbers.below(50_000) as u64);
        fs::File::options().write(true).open(&path).unwrap().set_modified(changed).unwrap();
        if number % 250 == 0 {
            link(root, folder, &path, number, &mut numbers);
        }
    }
    odd_names(root);
    fs::create_dir_all(root.join(".git/info")).unwrap();
    fs::write(root.join(".git/info/exclude"), "*.excluded\n!keep*\n").unwrap();
    fs::write(root.join(".git/config"), "needle\n").unwrap();
}

/// Folders with ignore files in some; those of ripgrep's own kind are all below `rg`.
fn folders(root: &Path, count: usize, numbers: &mut Numbers) -> Vec<PathBuf> {
    let mut folders = vec![root.to_path_buf(), root.join("rg")];
    fs::create_dir(root.join("rg")).unwrap();
    for number in 0..count {
        let above = folders[numbers.below(folders.len())].clone();
        let depth = above.strip_prefix(root).unwrap().components().count();
        let above = if depth < 7 { above } else { root.to_path_buf() };
        let name = numbers.one_of(FOLDERS);
        let folder = above.join(if above.join(name).exists() { format!("{name}{number}") } else { name.to_owned() });
        fs::create_dir(&folder).unwrap();
        let is_ripgreps = folder.starts_with(root.join("rg"));
        let files = [(".gitignore", 12), (".ignore", 40), (".rgignore", if is_ripgreps { 10 } else { 0 })];
        for (name, every) in files {
            if every > 0 && numbers.below(every) == 0 {
                fs::write(folder.join(name), ignore_file(numbers)).unwrap();
            }
        }
        folders.push(folder);
    }
    fs::write(root.join(".gitignore"), "*.tmp\n/target\nnode_modules/\n").unwrap();
    fs::write(root.join("rg/.rgignore"), "*.py\n").unwrap();
    folders
}

fn ignore_file(numbers: &mut Numbers) -> String {
    let line_break = if numbers.below(4) == 0 { "\r\n" } else { "\n" };
    let count = 1 + numbers.below(4);
    (0..count).map(|_| numbers.one_of(PATTERNS).to_owned() + line_break).collect()
}

fn content(numbers: &mut Numbers) -> Vec<u8> {
    let kind = numbers.below(100);
    let lines = match kind {
        0 => 3000,
        _ => numbers.below(60),
    };
    let line_break = if (70..78).contains(&kind) { "\r\n" } else { "\n" };
    let mut text = String::new();
    for _ in 0..lines {
        for _ in 0..numbers.below(5) {
            text.push_str(numbers.one_of(WORDS));
            text.push(' ');
        }
        text.push_str(line_break);
    }
    let wide = |mark: &[u8], bytes: fn(u16) -> [u8; 2]| {
        mark.iter().copied().chain(text.encode_utf16().flat_map(bytes)).collect()
    };
    match kind {
        78..81 => [b"\x7fELF\0", text.as_bytes()].concat(),
        81..83 => [text.as_bytes(), b"\0needle\n"].concat(),
        83 => [text.as_bytes(), "filler\n".repeat(15_000).as_bytes(), b"\0needle\n"].concat(),
        84..86 => wide(b"\xff\xfe", u16::to_le_bytes),
        86 => wide(b"\xfe\xff", u16::to_be_bytes),
        87..90 => text.chars().map(|c| u8::try_from(u32::from(c)).unwrap_or(b'?')).collect(),
        90..93 => Vec::new(),
        93 => format!("{}needle{}", "y".repeat(30_000), "z".repeat(30_000)).into_bytes(),
        94 => text.trim_end().as_bytes().to_vec(),
        95 => "\n".repeat(20).into_bytes(),
        _ => text.into_bytes(),
    }
}

/// Creates a link in the folder: to a file, a folder, outside, to one of its own parents, or to nothing.
fn link(root: &Path, folder: &Path, file: &Path, number: usize, numbers: &mut Numbers) {
    let target = match numbers.below(6) {
        0 | 1 => file.to_path_buf(),
        2 => root.join("rg"),
        3 => "/etc/hostname".into(),
        4 => "..".into(),
        _ => "nowhere".into(),
    };
    symlink(target, folder.join(format!("link{number}"))).unwrap();
}

fn odd_names(root: &Path) {
    let folder = root.join("odd");
    fs::create_dir(&folder).unwrap();
    for name in
        ["with space.txt", "new\nline.txt", "-dash.txt", "quote\".txt", "{a}.txt", "a*.txt", "b\\.txt", "ümlaut.md"]
    {
        fs::write(folder.join(name), "needle here\n").unwrap();
    }
    fs::write(folder.join(OsString::from_vec(b"\xff\xfe.txt".to_vec())), "needle here\n").unwrap();
}
