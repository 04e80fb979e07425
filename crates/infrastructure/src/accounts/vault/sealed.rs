//! Encryption of tokens as the bytes of a file. Without I/O, except for random numbers.

use super::{
    key_file::{SealingKey, hex},
    tokens::{TokenLookupKey, Tokens},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use ring::{
    aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce},
    digest::{SHA256, digest},
    rand::{SecureRandom, SystemRandom},
};
use serde::{Deserialize, Serialize};
use toolstead_domain::{Principal, Secret, Timestamp};

const VERSION: u32 = 1;
/// Maximum size of a record, in bytes.
pub(super) const MAX_RECORD_BYTES: u64 = 64 << 10;
/// Maximum size of the tokens in a record, in bytes.
const MAX_TOKEN_BYTES: usize = 32 << 10;
/// Maximum length of a principal, issuer or resource, in bytes.
const MAX_KEY_BYTES: usize = 2 << 10;
/// Length of the digest in a file name, in bytes.
const NAME_BYTES: usize = 16;
const ENDING: &str = ".sealed";

/// Reason why a record cannot be written or read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SealError {
    OtherKey,
    Damaged,
    TooLarge(&'static str),
    /// The system returned no random bytes.
    Random,
}

/// Content of a record's file. Principal, issuer and resource are in plain text, so that records can be listed; they
/// are authenticated along with the tokens.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SealedRecord {
    version: u32,
    key_id: String,
    principal: String,
    issuer: String,
    resource: String,
    nonce: String,
    sealed: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlaintextTokens {
    access_token: String,
    refresh_token: Option<String>,
    /// Microseconds since 1970-01-01T00:00:00Z.
    expires_at: Option<i64>,
    scopes: Vec<String>,
    /// Absent in records of services, so that earlier versions of the program can read them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    registration: Option<String>,
}

/// Returns the file name of a record.
pub(super) fn record_name(key: &TokenLookupKey) -> String {
    format!("{}{ENDING}", hex(&digest(&SHA256, &bound(key)).as_ref()[..NAME_BYTES]))
}

/// Returns `true` if the name is that of a record.
pub(super) fn is_record(name: &str) -> bool {
    let stem = name.strip_suffix(ENDING);
    stem.is_some_and(|stem| stem.len() == 2 * NAME_BYTES && stem.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Returns the associated data that a record is authenticated with. It is unique for each key.
fn bound(key: &TokenLookupKey) -> Vec<u8> {
    let mut bytes = VERSION.to_be_bytes().to_vec();
    for part in [key.principal.id(), &key.issuer, &key.resource] {
        bytes.extend((part.len() as u64).to_be_bytes());
        bytes.extend(part.as_bytes());
    }
    bytes
}

pub(super) fn seal(tokens: &Tokens, key: &TokenLookupKey, sealing: &SealingKey) -> Result<Vec<u8>, SealError> {
    if [key.principal.id(), &key.issuer, &key.resource].iter().any(|part| part.len() > MAX_KEY_BYTES) {
        return Err(SealError::TooLarge("the names of principal, issuer and resource have at most 2 KiB each"));
    }
    let plain = PlaintextTokens {
        access_token: tokens.access_token.expose().into(),
        refresh_token: tokens.refresh_token.as_ref().map(|token| token.expose().into()),
        expires_at: tokens.expires_at.map(|time| time.0),
        scopes: tokens.scopes.clone(),
        registration: tokens.registration.as_ref().map(|registration| registration.expose().into()),
    };
    let mut content = serde_json::to_vec(&plain).map_err(|_| SealError::Damaged)?;
    if content.len() > MAX_TOKEN_BYTES {
        return Err(SealError::TooLarge("they have at most 32 KiB in total"));
    }
    let mut nonce = [0; NONCE_LEN];
    SystemRandom::new().fill(&mut nonce).map_err(|_| SealError::Random)?;
    let aad = Aad::from(bound(key));
    let fresh = Nonce::assume_unique_for_key(nonce);
    sealing.key.seal_in_place_append_tag(fresh, aad, &mut content).map_err(|_| SealError::Damaged)?;
    let record = SealedRecord {
        version: VERSION,
        key_id: sealing.id.clone(),
        principal: key.principal.id().into(),
        issuer: key.issuer.clone(),
        resource: key.resource.clone(),
        nonce: STANDARD.encode(nonce),
        sealed: STANDARD.encode(content),
    };
    serde_json::to_vec(&record).map_err(|_| SealError::Damaged)
}

/// Decrypts a record as that of `key`, regardless of the principal, issuer and resource in the record.
pub(super) fn open(record: &[u8], key: &TokenLookupKey, sealing: &SealingKey) -> Result<Tokens, SealError> {
    let record = parsed(record)?;
    if record.key_id != sealing.id {
        return Err(SealError::OtherKey);
    }
    let bytes = |text: &str| STANDARD.decode(text).map_err(|_| SealError::Damaged);
    let nonce = Nonce::try_assume_unique_for_key(&bytes(&record.nonce)?).map_err(|_| SealError::Damaged)?;
    let mut content = bytes(&record.sealed)?;
    if content.len() > MAX_TOKEN_BYTES + AES_256_GCM.tag_len() {
        return Err(SealError::Damaged);
    }
    let opened = sealing.key.open_in_place(nonce, Aad::from(bound(key)), &mut content);
    let plain: PlaintextTokens =
        serde_json::from_slice(opened.map_err(|_| SealError::Damaged)?).map_err(|_| SealError::Damaged)?;
    Ok(Tokens {
        access_token: Secret::new(plain.access_token),
        refresh_token: plain.refresh_token.map(Secret::new),
        expires_at: plain.expires_at.map(Timestamp),
        scopes: plain.scopes,
        registration: plain.registration.map(Secret::new),
    })
}

/// Returns the key in the record if it belongs to this principal. The record is not authenticated yet.
pub(super) fn key_of(record: &[u8], principal: &Principal) -> Result<Option<TokenLookupKey>, SealError> {
    let SealedRecord { principal: said, issuer, resource, .. } = parsed(record)?;
    Ok((said == principal.id()).then(|| TokenLookupKey { principal: principal.clone(), issuer, resource }))
}

fn parsed(record: &[u8]) -> Result<SealedRecord, SealError> {
    let record: SealedRecord = serde_json::from_slice(record).map_err(|_| SealError::Damaged)?;
    if record.version == VERSION { Ok(record) } else { Err(SealError::Damaged) }
}
