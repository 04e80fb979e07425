use super::*;
use crate::egress::connector::{Connector, SystemNetwork};
use std::sync::Arc;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

const KEY: &str = "sk-0123456789";

/// Answers one request with this status and body. Returns the request and the result.
async fn ask(status: &str, body: &str, texts: &[&str]) -> (String, Result<Vec<Vec<f32>>, EmbeddingsError>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}/v1/", listener.local_addr().unwrap());
    let client = HttpClient::new(Connector::to_configured_hosts(Arc::new(SystemNetwork::default())));
    let settings = EmbeddingsSettings { base_url, model: "mini".into(), key: KeySource::Known(Secret::new(KEY)) };
    let model = EmbeddingsModel::new(settings, client).unwrap();
    let served = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        while !is_complete(&request) {
            let mut part = [0; 4096];
            let length = stream.read(&mut part).await.unwrap();
            assert!(length > 0, "the request ends early");
            request.extend_from_slice(&part[..length]);
        }
        let head = format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
        stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
        String::from_utf8(request).unwrap()
    };
    let texts = texts.iter().map(|text| (*text).to_owned()).collect();
    tokio::join!(served, model.embed(texts))
}

fn is_complete(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().unwrap())
    });
    body.len() >= length.unwrap()
}

#[tokio::test]
async fn texts_become_vectors_in_the_order_of_their_index() {
    let body =
        r#"{"object":"list","data":[{"index":1,"embedding":[0,1]},{"index":0,"embedding":[0.5,0]}],"model":"mini"}"#;
    let (request, vectors) = ask("200 OK", body, &["a", "b"]).await;
    assert_eq!(vectors.unwrap(), [vec![0.5, 0.0], vec![0.0, 1.0]]);
    assert!(request.starts_with("POST /v1/embeddings HTTP/1.1\r\n"), "{request}");
    assert!(request.to_lowercase().contains(&format!("authorization: bearer {KEY}")), "{request}");
    assert!(request.ends_with(r#"{"model":"mini","input":["a","b"],"encoding_format":"float"}"#), "{request}");
}

#[tokio::test]
async fn a_refusal_is_reported_without_the_key() {
    let body = format!(r#"{{"error":{{"message":"wrong key {KEY}"}}}}"#);
    let (_, vectors) = ask("401 Unauthorized", &body, &["a"]).await;
    let error = vectors.unwrap_err().to_string();
    assert!(error.starts_with("the model `mini`: ") && error.contains("[redacted]") && !error.contains(KEY), "{error}");
}

#[track_caller]
fn check_rejected(body: &str, count: usize, part: &str) {
    let error = parse(body.as_bytes(), count).unwrap_err();
    assert!(error.contains(part), "{body}: {error}");
}

#[test]
fn hostile_answers_are_rejected() {
    check_rejected("{", 1, "has no vectors");
    check_rejected(r#"{"data":[{"embedding":"AAAA"}]}"#, 1, "has no vectors");
    check_rejected(r#"{"data":[]}"#, 1, "has 0 vectors for 1 texts");
    check_rejected(r#"{"data":[{"embedding":[]}]}"#, 1, "invalid vector");
    check_rejected(r#"{"data":[{"embedding":[1e39]}]}"#, 1, "");
    check_rejected(r#"{"data":[{"index":5,"embedding":[1]}]}"#, 1, "invalid index");
    check_rejected(r#"{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}"#, 2, "invalid index");
    check_rejected(r#"{"data":[{"embedding":[1]},{"embedding":[1,2]}]}"#, 2, "different lengths");
}

#[test]
fn an_address_with_a_password_is_rejected() {
    let client = HttpClient::new(Connector::to_configured_hosts(Arc::new(SystemNetwork::default())));
    let base_url = "http://user:secret@localhost/v1".to_owned();
    let settings = EmbeddingsSettings { base_url, model: "mini".into(), key: KeySource::None };
    let error = EmbeddingsModel::new(settings, client).unwrap_err().to_string();
    assert!(error.contains("contains a user") && !error.contains("secret"), "{error}");
}
