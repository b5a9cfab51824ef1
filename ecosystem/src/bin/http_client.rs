//! GETs all URLs at once, and draws a bar for each on standard error, if that is a terminal.
//!
//! ```sh
//! cargo run --manifest-path ecosystem/Cargo.toml --bin http_client -- http://example.com/
//! ```
//!
//! `--cacert FILE` before the URLs names a PEM file of the authorities for `https:`. The program
//! trusts no other authorities. For each URL it prints the status and the number of bytes.
#[path = "../../../selvedge/examples/cli/mod.rs"]
mod cli;
#[path = "../sources.rs"]
mod sources;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::{StatusCode, Uri, body::Body};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, pem::PemObject},
};
use selvedge_hyper::{Connector, client_builder};
use sources::with_sources;
use std::{error::Error, process::ExitCode, sync::Arc, time::Duration};

type Https = Client<HttpsConnector<Connector>, Empty<Bytes>>;

const HELP: &str = "\
GETs each URL, all at once, and says each status and length.

Usage: http_client [--cacert FILE] URL...

FILE  the authorities for https, in PEM [none]";

fn main() -> ExitCode {
    cli::run(HELP, |mut urls| {
        let mut roots = RootCertStore::empty();
        if urls.first().is_some_and(|first| first == "--cacert") {
            let file = urls.drain(..2.min(urls.len())).nth(1);
            let file = file.ok_or_else(|| cli::Usage("--cacert needs a file".into()))?;
            let named = |error| format!("{file}: {error}");
            for certificate in CertificateDer::pem_file_iter(&file).map_err(named)? {
                roots.add(certificate.map_err(named)?)?;
            }
        }
        cli::at_most(&urls, usize::MAX)?;
        if urls.is_empty() {
            return Err(cli::Usage("which URL?".into()).into());
        }
        run(roots, urls)
    })
}

fn run(roots: RootCertStore, urls: Vec<String>) -> Result<(), Box<dyn Error>> {
    selvedge::Runtime::new()?.block_on(async {
        let client = https(roots)?;
        let bars = MultiProgress::new();
        let mut requests = selvedge::JoinSet::new();
        for url in urls {
            let bar = bars.add(ProgressBar::new(0));
            bar.set_style(ProgressStyle::with_template("{bytes:>10} {bar:40} {msg}")?);
            bar.set_message(url.clone());
            let client = client.clone();
            requests.spawn(async move {
                let done = get(&client, &url, &bar).await;
                bar.finish();
                (url, done)
            });
        }
        let mut failed = 0;
        while let Some(request) = requests.join_next().await {
            let (url, done) = request?;
            bars.suspend(|| match done {
                Ok((status, bytes)) => println!("{} {bytes} {url}", status.as_u16()),
                Err(error) => {
                    eprintln!("{url}: {}", with_sources(&*error));
                    failed += 1;
                }
            });
        }
        match failed {
            0 => Ok(()),
            failed => Err(format!("requests that failed: {failed}").into()),
        }
    })
}

/// Returns hyper-util's client, which connects by hyper-rustls over our connector.
fn https(roots: RootCertStore) -> Result<Https, Box<dyn Error>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let tcp = Connector::new().connect_timeout(Duration::from_secs(10));
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(config)
        .https_or_http()
        .enable_http1()
        .wrap_connector(tcp.enforce_http(false));
    Ok(client_builder().build(connector))
}

/// GETs a URL and drops the body as it comes. Returns the status and the length of the body.
async fn get(
    client: &Https,
    url: &str,
    bar: &ProgressBar,
) -> Result<(StatusCode, u64), Box<dyn Error + Send + Sync>> {
    let response = client.get(url.parse::<Uri>()?).await?;
    let status = response.status();
    let mut body = response.into_body();
    if let Some(length) = body.size_hint().exact() {
        bar.set_length(length);
    }
    let mut bytes = 0;
    while let Some(frame) = body.frame().await {
        if let Some(data) = frame?.data_ref() {
            bytes += data.len() as u64;
            bar.set_position(bytes);
        }
    }
    Ok((status, bytes))
}
