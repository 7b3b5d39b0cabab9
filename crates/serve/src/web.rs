//! The web page: static files. They need no token; the page asks for one if the API refuses it.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use ring::digest::{SHA256, digest};

/// Page that names the other files.
const INDEX: (&str, &[u8]) = ("text/html; charset=utf-8", include_bytes!("../web/dist/index.html"));

/// Files below `/assets`: name, content type, content.
const ASSETS: [(&str, &str, &[u8]); 3] = [
    ("wirestorm.js", "text/javascript; charset=utf-8", include_bytes!("../web/dist/wirestorm.js")),
    ("wirestorm.css", "text/css; charset=utf-8", include_bytes!("../web/dist/wirestorm.css")),
    ("icon.svg", "image/svg+xml", include_bytes!("../web/dist/icon.svg")),
];

/// The files with what their responses need.
struct Page {
    index: File,
    assets: Vec<(&'static str, File)>,
    policy: HeaderValue,
}

struct File {
    content_type: &'static str,
    content: &'static [u8],
    /// Digest of the content: browsers ask each time, and get the file only after a change.
    etag: String,
}

/// Returns the router of the page.
pub(crate) fn router() -> Router {
    let file = |content_type, content| File { content_type, content, etag: etag(content) };
    let page = Page {
        index: file(INDEX.0, INDEX.1),
        assets: ASSETS.iter().map(|&(name, kind, content)| (name, file(kind, content))).collect(),
        policy: policy(),
    };
    Router::new()
        .route("/", get(index))
        .route("/assets/{file}", get(asset))
        .with_state(Arc::new(page))
}

async fn index(State(page): State<Arc<Page>>, headers: HeaderMap) -> Response {
    page.answer(&page.index, &headers)
}

async fn asset(
    State(page): State<Arc<Page>>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Response {
    match page.assets.iter().find(|(known, _)| *known == name) {
        Some((_, file)) => page.answer(file, &headers),
        None => (StatusCode::NOT_FOUND, "no such file\n").into_response(),
    }
}

impl Page {
    fn answer(&self, file: &File, headers: &HeaderMap) -> Response {
        let known = headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok());
        let is_known = known.is_some_and(|known| {
            known.split(',').any(|tag| tag.trim().trim_start_matches("W/") == file.etag)
        });
        let mut response = match is_known {
            true => StatusCode::NOT_MODIFIED.into_response(),
            false => {
                let kind = [(header::CONTENT_TYPE, file.content_type)];
                (kind, Bytes::from_static(file.content)).into_response()
            }
        };
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_SECURITY_POLICY, self.policy.clone());
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        if let Ok(etag) = HeaderValue::from_str(&file.etag) {
            headers.insert(header::ETAG, etag);
        }
        response
    }
}

/// Returns the Content-Security-Policy. The page opens reports in sandboxed frames, which inherit it:
/// so it also has the hashes of their one script and style. Nothing else inline runs.
fn policy() -> HeaderValue {
    let [script, style] = wirestorm_report::content_hashes();
    let policy = format!(
        "default-src 'none'; script-src 'self' '{script}'; style-src 'self' '{style}'; \
         img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'"
    );
    // Base64 has printable characters only.
    HeaderValue::from_str(&policy).unwrap_or(HeaderValue::from_static("default-src 'none'"))
}

fn etag(content: &[u8]) -> String {
    use std::fmt::Write;
    let mut text = String::from("\"");
    for byte in &digest(&SHA256, content).as_ref()[..16] {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn index_names_the_assets() {
        let index = std::str::from_utf8(INDEX.1).unwrap();
        for (name, _, content) in ASSETS {
            assert!(index.contains(&format!("\"/assets/{name}\"")), "{name}");
            assert!(!content.is_empty(), "{name}");
        }
    }

    #[test]
    fn policy_allows_no_other_inline_script() {
        let policy = policy();
        let policy = policy.to_str().unwrap();
        assert!(policy.contains("script-src 'self' 'sha256-"), "{policy}");
        assert!(policy.contains("style-src 'self' 'sha256-"), "{policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
    }
}
