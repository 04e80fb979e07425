//! One request to the outside, with every host that it would reach judged before.

use crate::{
    http::client::{HttpClient, Request},
    sandbox::egress::{
        connector::{Connector, Network},
        host::HostPatterns,
    },
    web::reach_error::ReachError,
};
use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use std::{sync::Arc, time::Instant};
use tokio::time::timeout_at;
use toolstead_domain::tool_failure::ToolFailure;
use url::Url;

/// Says whether a host (lower case, without port) may be reached, before anything of a request to it is done.
pub type Judge<'a> = &'a (dyn Fn(&str) -> Result<(), ToolFailure> + Sync);

/// Makes requests. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Reach {
    pages: HttpClient,
    configured: HttpClient,
}

/// Who named the address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamedBy {
    /// A model, a page, a server: only public addresses, and what `[web] allow_private_hosts` opens.
    Anybody,
    /// A person's own configuration: this machine and private networks as well.
    Configuration,
}

/// Redirects that are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redirects {
    /// None: the answer is the redirect itself.
    None,
    /// So many, to the same host alone; another one is told in [`Answer::leads_to`].
    SameHost(u32),
}

/// Whether the request may be made again where it failed in passing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Again {
    /// Never: it may have had an effect.
    Never,
    /// On 408, 429, 5xx and broken connections, five times at most.
    Reading,
}

/// One request.
#[derive(Debug)]
pub struct Asked<'a> {
    /// The method.
    pub method: Method,
    /// The address.
    pub url: &'a Url,
    /// Headers beside those of every request.
    pub headers: HeaderMap,
    /// The body; empty for none.
    pub body: Bytes,
    /// Who named the address.
    pub named_by: NamedBy,
    /// Redirects that are followed.
    pub redirects: Redirects,
    /// Whether it may be made again.
    pub again: Again,
    /// Bytes of the body after decompression; of a longer one so much is kept.
    pub body_bytes: usize,
    /// The end of it all, with pauses and redirects.
    pub deadline: Instant,
}

/// What came back.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The address that answered.
    pub url: Url,
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, unpacked.
    pub body: Bytes,
    /// The body was longer.
    pub is_cut: bool,
    /// The place that a redirect names which was not followed.
    pub leads_to: Option<Url>,
}

impl Reach {
    /// Reaches public addresses, and for the hosts in `private` those of private networks as well.
    pub fn new(network: Arc<dyn Network>, private: HostPatterns) -> Self {
        Self {
            pages: HttpClient::new(Connector::new(network.clone(), private)),
            configured: HttpClient::new(Connector::to_configured_hosts(network)),
        }
    }

    /// As [`new`](Self::new), and believes servers that this certificate (DER) vouches for, and no others.
    #[cfg(any(test, feature = "testing"))]
    pub fn trusting(network: Arc<dyn Network>, private: HostPatterns, certificate: &[u8]) -> Self {
        Self {
            pages: HttpClient::trusting(Connector::new(network.clone(), private), certificate),
            configured: HttpClient::trusting(Connector::to_configured_hosts(network), certificate),
        }
    }

    /// Makes the request.
    ///
    /// # Errors
    /// [`ReachError`]; what it says is fit for a model.
    pub async fn send(&self, asked: Asked<'_>, judge: Judge<'_>) -> Result<Answer, ReachError> {
        let host = asked.url.host_str().ok_or_else(|| ReachError::Address(asked.url.to_string()))?;
        judge(host).map_err(ReachError::Refused)?;
        let client = match asked.named_by {
            NamedBy::Anybody => &self.pages,
            NamedBy::Configuration => &self.configured,
        };
        let endpoint = client.endpoint(asked.url).map_err(ReachError::of)?;
        let mut headers = endpoint.headers();
        headers.extend(asked.headers);
        let sending = async {
            let request = Request { method: asked.method, headers, body: asked.body };
            let mut response = endpoint.send(request).await?;
            let mut body = Vec::new();
            let mut is_cut = false;
            while let Some(piece) = response.chunk().await? {
                let room = asked.body_bytes.saturating_sub(body.len());
                body.extend_from_slice(&piece[..piece.len().min(room)]);
                if piece.len() > room {
                    is_cut = true;
                    break;
                }
            }
            Ok(Answer {
                url: asked.url.clone(),
                status: response.status(),
                headers: response.headers().clone(),
                body: body.into(),
                is_cut,
                leads_to: None,
            })
        };
        let sent = timeout_at(asked.deadline.into(), sending).await.map_err(|_| ReachError::TimedOut)?;
        sent.map_err(ReachError::of)
    }
}
