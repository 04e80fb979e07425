//! Paths in JSON: a text, or the bytes if they are not UTF-8. The implementation of `serde` fails for such a path, so
//! one file with such a name would keep every program from starting.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::{
    ffi::OsString,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
};

#[derive(Serialize)]
#[serde(untagged)]
enum EncodedPath<'a> {
    Text(&'a str),
    Bytes(&'a [u8]),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum PathTextOrBytes {
    Text(String),
    Bytes(Vec<u8>),
}

impl<'a> From<&'a Path> for EncodedPath<'a> {
    fn from(path: &'a Path) -> Self {
        path.to_str().map_or(Self::Bytes(path.as_os_str().as_bytes()), Self::Text)
    }
}

impl From<PathTextOrBytes> for PathBuf {
    fn from(taken: PathTextOrBytes) -> Self {
        match taken {
            PathTextOrBytes::Text(text) => text.into(),
            PathTextOrBytes::Bytes(bytes) => OsString::from_vec(bytes).into(),
        }
    }
}

pub(super) fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    EncodedPath::from(path).serialize(serializer)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    PathTextOrBytes::deserialize(deserializer).map(Into::into)
}

pub(super) mod several {
    use super::*;

    pub(in super::super) fn serialize<S: Serializer>(paths: &[PathBuf], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(paths.iter().map(|path| EncodedPath::from(path.as_path())))
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<PathBuf>, D::Error> {
        Ok(Vec::<PathTextOrBytes>::deserialize(deserializer)?.into_iter().map(Into::into).collect())
    }
}

pub(super) mod option {
    use super::*;

    pub(in super::super) fn serialize<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
        path.as_deref().map(EncodedPath::from).serialize(serializer)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<PathBuf>, D::Error> {
        Ok(Option::<PathTextOrBytes>::deserialize(deserializer)?.map(Into::into))
    }
}
