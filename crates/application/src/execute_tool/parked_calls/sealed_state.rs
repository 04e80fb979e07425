//! The `requestState` with which a client resumes a parked call (MCP 2026-07-28).

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};
use std::{array, time::Duration};
use tokio::time::Instant;
use toolstead_domain::CallId;
use uuid::Uuid;

/// SHA-256 digest.
pub(super) type Digest = [u8; 32];

/// Length of a state without its seal, in bytes.
const STATE: usize = 16 + 4 + 8 + 32 + 32;
/// Length of a seal, in bytes.
const SEAL: usize = 32;

/// Reference to one round of one call. It contains nothing that is secret from its client, so it is authenticated and
/// not encrypted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RequestStateContent {
    pub(super) call: CallId,
    pub(super) round: u32,
    /// Time until which the call waits.
    pub(super) until: Instant,
    /// Digest of principal and session.
    pub(super) owner: Digest,
    /// Digest of tool and arguments as sent.
    pub(super) request: Digest,
}

/// Key that authenticates states. It is generated at start, so states of an earlier process are rejected.
pub(super) struct RequestStateKey {
    /// One block of HMAC-SHA256.
    key: [u8; 64],
    /// Reference point of the times in states.
    start: Instant,
}

impl RequestStateKey {
    pub(super) fn new() -> Self {
        // 488 bits of the system's randomness.
        let secret: [[u8; 16]; 4] = array::from_fn(|_| *Uuid::new_v4().as_bytes());
        let mut key = [0; 64];
        key.copy_from_slice(secret.as_flattened());
        Self { key, start: Instant::now() }
    }

    pub(super) fn seal(&self, state: &RequestStateContent) -> String {
        let until = u64::try_from(state.until.duration_since(self.start).as_millis()).unwrap_or(u64::MAX);
        let mut bytes = Vec::with_capacity(STATE + SEAL);
        bytes.extend_from_slice(state.call.0.as_bytes());
        bytes.extend_from_slice(&state.round.to_be_bytes());
        bytes.extend_from_slice(&until.to_be_bytes());
        bytes.extend_from_slice(&state.owner);
        bytes.extend_from_slice(&state.request);
        let seal = sign(&self.key, &bytes);
        bytes.extend_from_slice(&seal);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Returns the state; `None` if it is malformed or its seal does not match. A state whose time has passed is
    /// returned.
    pub(super) fn open(&self, text: &str) -> Option<RequestStateContent> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (state, seal) = bytes.split_at_checked(STATE)?;
        // Comparing digests of the two seals reveals nothing about the seal by its timing.
        if sign(&self.key, seal) != sign(&self.key, &sign(&self.key, state)) {
            return None;
        }
        let (call, rest) = state.split_first_chunk::<16>()?;
        let (round, rest) = rest.split_first_chunk::<4>()?;
        let (until, rest) = rest.split_first_chunk::<8>()?;
        let (owner, rest) = rest.split_first_chunk::<32>()?;
        let request = rest.first_chunk::<32>()?;
        Some(RequestStateContent {
            call: CallId(Uuid::from_bytes(*call)),
            round: u32::from_be_bytes(*round),
            until: self.start.checked_add(Duration::from_millis(u64::from_be_bytes(*until)))?,
            owner: *owner,
            request: *request,
        })
    }
}

/// Returns the HMAC-SHA256 of the text (RFC 2104).
fn sign(key: &[u8; 64], text: &[u8]) -> Digest {
    let inner = Sha256::new().chain_update(key.map(|byte| byte ^ 0x36)).chain_update(text).finalize();
    Sha256::new().chain_update(key.map(|byte| byte ^ 0x5c)).chain_update(inner).finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_seal_is_hmac_sha256() {
        // RFC 4231, test case 1.
        let mut key = [0; 64];
        key[..20].fill(0x0b);
        let text: String = sign(&key, b"Hi There").iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(text, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    }

    fn state(seal: &RequestStateKey) -> RequestStateContent {
        let until = seal.start + Duration::from_millis(300_000);
        RequestStateContent { call: CallId(Uuid::now_v7()), round: 3, until, owner: [1; 32], request: [2; 32] }
    }

    #[test]
    fn a_sealed_state_opens_unchanged_and_only_with_the_seal_that_created_it() {
        let (seal, other) = (RequestStateKey::new(), RequestStateKey::new());
        let state = state(&seal);
        let text = seal.seal(&state);
        assert_eq!(seal.open(&text), Some(state));
        assert_eq!(other.open(&text), None, "another start has another key");
        assert_eq!((seal.open(""), seal.open("toolstead"), seal.open(&format!("{text}AA"))), (None, None, None));
    }

    proptest! {
        #[test]
        fn a_sealed_state_with_any_changed_byte_is_rejected(at in 0..(STATE + SEAL), by in 1..=255_u8) {
            let seal = RequestStateKey::new();
            let mut bytes = URL_SAFE_NO_PAD.decode(seal.seal(&state(&seal))).unwrap();
            bytes[at] ^= by;
            prop_assert_eq!(seal.open(&URL_SAFE_NO_PAD.encode(bytes)), None);
        }
    }
}
