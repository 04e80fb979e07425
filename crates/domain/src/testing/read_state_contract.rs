//! Contract of every store of known file versions.

use crate::{content_digest::ContentDigest, ports::read_state::ReadState, principal::Principal};
use std::{
    ffi::OsString,
    os::unix::ffi::OsStringExt,
    path::{Path, PathBuf},
};

const A: ContentDigest = ContentDigest([1; 32]);
const B: ContentDigest = ContentDigest([2; 32]);

/// Checks each guarantee of [`ReadState`], except its limits, on an empty store.
///
/// # Panics
/// If a guarantee is violated; the message names it.
pub async fn read_state_contract(seen: &dyn ReadState) {
    let (me, path) = (Principal::local(), Path::new("/w/a"));
    assert_eq!(seen.known(&me, "s", path).await.unwrap(), None, "nothing is known at first");
    seen.forget(&me, "s", path).await.unwrap();

    seen.record_version(&me, "s", path, A).await.unwrap();
    assert_eq!(seen.known(&me, "s", path).await.unwrap(), Some(A));
    seen.record_version(&me, "s", path, B).await.unwrap();
    assert_eq!(seen.known(&me, "s", path).await.unwrap(), Some(B), "the last sight counts");

    assert_eq!(seen.known(&me, "t", path).await.unwrap(), None, "another session has not read it");
    assert_eq!(seen.known(&Principal::token("t"), "s", path).await.unwrap(), None, "nor has somebody else");
    assert_eq!(seen.known(&me, "s", Path::new("/w/b")).await.unwrap(), None, "nor is it another file");

    let odd: PathBuf = OsString::from_vec(b"/w/\xff\n".to_vec()).into();
    seen.record_version(&me, "s", &odd, A).await.unwrap();
    assert_eq!(seen.known(&me, "s", &odd).await.unwrap(), Some(A), "a path is any bytes");

    seen.forget(&me, "s", path).await.unwrap();
    assert_eq!(seen.known(&me, "s", path).await.unwrap(), None, "what is forgotten was never read");
    assert_eq!(seen.known(&me, "s", &odd).await.unwrap(), Some(A));
}
