//! Credentials without a user: client credentials, token exchange and ID-JAG.

use super::*;
use crate::upstream_auth::settings::{ClientCredentialsSettings, ExchangeSettings, IdJagSettings, SubjectTokenFile};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use std::{fs, os::unix::fs::PermissionsExt, path::Path};
use toolstead_domain::{Credentials, CredentialsError, Secret};

fn client(scopes: &[&str]) -> ClientCredentialsSettings {
    ClientCredentialsSettings {
        client_id: "own".into(),
        client_secret: Secret::new("own-secret"),
        scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
        issuer: None,
    }
}

#[expect(clippy::disallowed_methods, reason = "files of the test")]
fn write_token(path: &Path, token: &str) {
    fs::write(path, token).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

#[tokio::test]
async fn all_principals_share_the_credentials_of_this_program() {
    let bench = Bench::new(UpstreamAuth::ClientCredentials(client(&["notes.read"]))).await;
    let resource = bench.accounts.resource();
    for principal in [Principal::local(), Principal::token("ada")] {
        assert_eq!(token(&bench.accounts.headers(&principal, &resource).await.unwrap()), "access-1", "{principal}");
    }
    let [form] = bench.seen("/token").try_into().unwrap();
    for (name, expected) in [
        ("grant_type", "client_credentials"),
        ("client_id", "own"),
        ("client_secret", "own-secret"),
        ("scope", "notes.read"),
        ("resource", bench.server.url("/mcp").as_str()),
    ] {
        assert_eq!(form.form(name).as_deref(), Some(expected), "{name}");
    }
    bench.pass(3600);
    assert_eq!(token(&bench.accounts.headers(&Principal::local(), &resource).await.unwrap()), "access-2");
}

#[tokio::test]
async fn a_missing_scope_is_requested_once() {
    let bench = Bench::new(UpstreamAuth::ClientCredentials(client(&["notes.read"]))).await;
    let (resource, local) = (bench.accounts.resource(), Principal::local());
    let held = bench.accounts.headers(&local, &resource).await.unwrap();
    let more = bench.accounts.challenged(&local, &resource, &held, &insufficient("notes.write")).await.unwrap();
    assert_eq!(token(&more), "access-2");
    assert_eq!(bench.seen("/token")[1].form("scope").as_deref(), Some("notes.read notes.write"));
    let useless = bench.accounts.challenged(&local, &resource, &more, &insufficient("notes.write")).await;
    assert!(matches!(useless, Err(CredentialsError::Unavailable(_))), "{useless:?}");
    assert_eq!(bench.seen("/token").len(), 2);
}

#[tokio::test]
async fn each_principal_exchanges_its_own_token() {
    let folder = tempfile::tempdir().unwrap();
    write_token(&folder.path().join("token:ada.jwt"), "subject-of-ada\n");
    write_token(&folder.path().join("token:bob.jwt"), "subject-of-bob");
    let bench = Bench::new(UpstreamAuth::Exchange(ExchangeSettings {
        token_url: None,
        client_id: "own".into(),
        client_secret: Some(Secret::new("own secret")),
        subject_token: SubjectTokenFile::in_file(folder.path().join("{principal}.jwt")),
        subject_token_type: "urn:ietf:params:oauth:token-type:jwt".into(),
        audience: Some("notes".into()),
        scopes: vec!["notes.read".into()],
    }))
    .await;
    let resource = bench.accounts.resource();
    for (name, expected) in [("ada", "access-1"), ("bob", "access-2"), ("ada", "access-1")] {
        let headers = bench.accounts.headers(&Principal::token(name), &resource).await.unwrap();
        assert_eq!(token(&headers), expected, "{name}");
    }
    let [ada, bob] = bench.seen("/token").try_into().unwrap();
    assert_eq!(ada.header("authorization"), "Basic b3duOm93bitzZWNyZXQ=");
    for (form, subject) in [(ada, "subject-of-ada"), (bob, "subject-of-bob")] {
        for (name, expected) in [
            ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
            ("subject_token", subject),
            ("subject_token_type", "urn:ietf:params:oauth:token-type:jwt"),
            ("audience", "notes"),
            ("resource", bench.server.url("/mcp").as_str()),
        ] {
            assert_eq!(form.form(name).as_deref(), Some(expected), "{name}");
        }
    }
    let none = bench.accounts.headers(&Principal::token("eve"), &resource).await;
    assert!(matches!(none, Err(CredentialsError::Unavailable(_))), "{none:?}");
}

#[test]
fn a_principal_name_cannot_select_a_token_file_in_another_folder() {
    let file = SubjectTokenFile::in_file("/tokens/{principal}.jwt".into());
    assert_eq!(file.path_for("token:ada").unwrap(), Path::new("/tokens/token:ada.jwt"));
    for principal in ["../ada", "a/b", ".", "", "a b"] {
        assert!(file.path_for(principal).is_err(), "{principal}");
    }
}

#[tokio::test]
async fn an_identity_token_is_exchanged_through_the_identity_provider() {
    let folder = tempfile::tempdir().unwrap();
    write_token(&folder.path().join("id.jwt"), "id.token.of-ada");
    // The assertion names the MCP server and its authorization server, whose port is known only to the request.
    let idp = TestServer::plain(|seen| {
        let issuer = format!("http://{}", seen.header("host"));
        let encode = |part: Value| URL_SAFE_NO_PAD.encode(part.to_string());
        let claims = json!({
            "iss": issuer, "sub": "ada", "aud": seen.form("audience"), "client_id": "own", "jti": "1",
            "iat": 0, "exp": 4_102_444_800_u64, "resource": seen.form("resource"),
        });
        let header = encode(json!({"alg": "RS256", "typ": "oauth-id-jag+jwt"}));
        let assertion = format!("{header}.{}.{}", encode(claims), URL_SAFE_NO_PAD.encode("signature"));
        Reply::json(&json!({
            "issued_token_type": "urn:ietf:params:oauth:token-type:id-jag", "access_token": assertion,
            "token_type": "N_A", "expires_in": 300,
        }))
        .header("Cache-Control", "no-store")
    })
    .await;
    let base = idp.url("/token");
    let bench = Bench::new(UpstreamAuth::IdJag(IdJagSettings {
        idp_issuer: base.origin().ascii_serialization(),
        idp_token_url: base,
        idp_client_id: "at-idp".into(),
        idp_client_secret: None,
        id_token: SubjectTokenFile::in_file(folder.path().join("id.jwt")),
        client: client(&[]),
    }))
    .await;
    // Such a token is never renewed with a refresh token.
    let issued = || Reply::json(&json!({"access_token": "access-1", "token_type": "Bearer", "expires_in": 3600}));
    bench.set(|own| own.token = Some(issued));
    let resource = bench.accounts.resource();
    let headers = bench.accounts.headers(&Principal::token("ada"), &resource).await.unwrap();
    assert_eq!(token(&headers), "access-1");
    let [asked] = idp.requests().try_into().unwrap();
    assert_eq!(asked.form("subject_token").as_deref(), Some("id.token.of-ada"));
    let [redeemed] = bench.seen("/token").try_into().unwrap();
    let grant = redeemed.form("grant_type");
    assert_eq!(grant.as_deref(), Some("urn:ietf:params:oauth:grant-type:jwt-bearer"));
}
