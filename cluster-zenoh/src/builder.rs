//! The settings of an engine, and their check.
use crate::engine::Zenoh;
use std::{fmt, net::SocketAddr, path::PathBuf, time::Duration};

/// The value that the environment variable `ZENOH_RUNTIME` must have for mutual TLS: one thread
/// reads and writes, and others connect and close.
///
/// Zenoh 1.10 reads and writes one TLS stream on two threads without a lock, of which its
/// [issue 2557](https://github.com/eclipse-zenoh/zenoh/issues/2557) tells: programs end by invalid
/// accesses to memory. On one thread the two cannot meet. To close a connection may block a thread
/// for ten seconds, which must not be that one. Zenoh reads the variable once.
pub const RUNTIME: &str = "(rx: (worker_threads: 1), tx: (handover: rx), net: (worker_threads: 4))";

/// Settings of a [`Zenoh`] engine. See [`Zenoh::builder`].
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it builds"]
pub struct ZenohBuilder {
    cluster: String,
    listen: Vec<String>,
    connect: Vec<String>,
    tls: Option<Tls>,
    is_insecure: bool,
    lease: Duration,
    frame_limit: usize,
}

/// The files of mutual TLS.
#[derive(Clone, Debug)]
struct Tls {
    authority: PathBuf,
    certificate: PathBuf,
    key: PathBuf,
}

/// Why there is no engine with these settings.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigError {
    /// There is neither [`ZenohBuilder::mutual_tls`] nor [`ZenohBuilder::insecure_loopback`].
    Insecure,
    /// There are both.
    TlsOnLoopback,
    /// Without TLS, an endpoint must be `tcp/` and a loopback address with a port.
    NotLoopback(String),
    /// With TLS, an endpoint must be `tls/`, a name or an address, `:` and a port.
    NotTls(String),
    /// With TLS, the environment variable `ZENOH_RUNTIME` must be [`RUNTIME`].
    Runtime,
    /// The name of the cluster is empty, or has other characters than letters, digits, `-` and `_`.
    BadCluster(String),
    /// A path is not UTF-8.
    BadPath(PathBuf),
    /// Zenoh refuses a setting, for this reason.
    Refused(String),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Insecure => {
                f.write_str("neither mutual TLS nor an insecure loopback was asked for")
            }
            Self::TlsOnLoopback => f.write_str("an insecure loopback has no TLS"),
            Self::NotLoopback(endpoint) => write!(
                f,
                "an insecure endpoint must be \"tcp/\" and a loopback address: {endpoint:?}"
            ),
            Self::NotTls(endpoint) => {
                write!(f, "an endpoint must be \"tls/HOST:PORT\": {endpoint:?}")
            }
            Self::Runtime => {
                write!(f, "with TLS, ZENOH_RUNTIME must be set to {RUNTIME:?}")
            }
            Self::BadCluster(name) => {
                write!(f, "a cluster's name has letters, digits, - and _: {name:?}")
            }
            Self::BadPath(path) => write!(f, "the path {} is not UTF-8", path.display()),
            Self::Refused(why) => write!(f, "zenoh refuses a setting: {why}"),
        }
    }
}

impl std::error::Error for ConfigError {}

impl ZenohBuilder {
    pub(crate) fn new() -> Self {
        Self {
            cluster: "cluster".to_owned(),
            listen: Vec::new(),
            connect: Vec::new(),
            tls: None,
            is_insecure: false,
            lease: Duration::from_secs(2),
            frame_limit: 1 << 20,
        }
    }

    /// Sets the name of the cluster: `cluster` by default. Nodes of other clusters are no peers.
    pub fn cluster(mut self, name: impl Into<String>) -> Self {
        self.cluster = name.into();
        self
    }

    /// Takes connections at an endpoint, such as `tls/0.0.0.0:7447`. Without one, this node only
    /// connects to others.
    pub fn listen(mut self, endpoint: impl Into<String>) -> Self {
        self.listen.push(endpoint.into());
        self
    }

    /// Connects to a node, such as `tls/bank-2.example:7447`, and connects again after a loss. Of
    /// two nodes, at least one must connect to the other: nothing is discovered.
    pub fn connect(mut self, endpoint: impl Into<String>) -> Self {
        self.connect.push(endpoint.into());
        self
    }

    /// Uses mutual TLS: each side shows a certificate that this authority has signed, and checks
    /// that of the other. A node that connects also checks that the certificate names the host to
    /// which it connects. The files are PEM.
    pub fn mutual_tls(
        mut self,
        authority: impl Into<PathBuf>,
        certificate: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
    ) -> Self {
        self.tls = Some(Tls {
            authority: authority.into(),
            certificate: certificate.into(),
            key: key.into(),
        });
        self
    }

    /// Uses no encryption, and asks nobody who it is. Endpoints must be `tcp/` and an address of
    /// the loopback then. Each program of this machine may be a node.
    pub fn insecure_loopback(mut self) -> Self {
        self.is_insecure = true;
        self
    }

    /// Sets after which time of silence zenoh closes a connection: 2 seconds by default, at least
    /// 100 milliseconds. It also closes one that takes nothing for half of this time while frames
    /// wait. Set it to the cluster's lease.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease.clamp(
            Duration::from_millis(100),
            Duration::from_secs(24 * 60 * 60),
        );
        self
    }

    /// Sets the most bytes of a frame: a mebibyte by default, as the cluster's. Zenoh drops longer
    /// ones of other nodes before they are whole.
    pub fn frame_limit(mut self, bytes: usize) -> Self {
        self.frame_limit = bytes.clamp(4 << 10, 1 << 30);
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// If they are insecure and [`insecure_loopback`](Self::insecure_loopback) does not say so, an
    /// endpoint is not allowed, zenoh refuses a setting, or TLS would not be safe: see [`RUNTIME`].
    /// Files are read when the node joins.
    pub fn build(self) -> Result<Zenoh, ConfigError> {
        let config = self.config()?;
        let is_safe = || std::env::var("ZENOH_RUNTIME").is_ok_and(|value| value == RUNTIME);
        if self.tls.is_some() && !is_safe() {
            return Err(ConfigError::Runtime);
        }
        Ok(Zenoh::new(config, self.cluster))
    }

    fn check(&self) -> Result<(), ConfigError> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if self.cluster.is_empty() || !self.cluster.bytes().all(is_plain) {
            return Err(ConfigError::BadCluster(self.cluster.clone()));
        }
        let endpoints = || self.listen.iter().chain(&self.connect);
        match (&self.tls, self.is_insecure) {
            (None, false) => Err(ConfigError::Insecure),
            (Some(_), true) => Err(ConfigError::TlsOnLoopback),
            (None, true) => match endpoints().find(|endpoint| !is_loopback(endpoint)) {
                Some(endpoint) => Err(ConfigError::NotLoopback(endpoint.clone())),
                None => Ok(()),
            },
            (Some(_), false) => match endpoints().find(|endpoint| !is_tls(endpoint)) {
                Some(endpoint) => Err(ConfigError::NotTls(endpoint.clone())),
                None => Ok(()),
            },
        }
    }

    fn config(&self) -> Result<zenoh::Config, ConfigError> {
        self.check()?;
        let lease = self.lease.as_millis();
        let mut settings = vec![
            ("mode", "\"peer\"".to_owned()),
            ("listen/endpoints", list(&self.listen)),
            ("connect/endpoints", list(&self.connect)),
            ("connect/timeout_ms", "-1".to_owned()),
            ("connect/exit_on_failure", "false".to_owned()),
            ("connect/retry", RETRY.to_owned()),
            // The nodes of the list alone: zenoh does not connect again to one that it discovered.
            ("scouting/multicast/enabled", "false".to_owned()),
            ("scouting/gossip/enabled", "false".to_owned()),
            ("open/return_conditions/connect_scouted", "false".to_owned()),
            ("open/return_conditions/declares", "false".to_owned()),
            ("adminspace/enabled", "false".to_owned()),
            ("transport/link/tx/lease", lease.to_string()),
            // In microseconds. While zenoh waits for room to one peer, it may keep all others
            // waiting: half of a lease does not end their sessions.
            (
                "transport/link/tx/queue/congestion_control/block/wait_before_close",
                (lease * 500).to_string(),
            ),
            (
                "transport/unicast/open_timeout",
                lease.max(1_000).to_string(),
            ),
            (
                "transport/link/rx/max_message_size",
                (self.frame_limit + SLACK).to_string(),
            ),
        ];
        let protocol = match &self.tls {
            Some(tls) => {
                let authority = text(&tls.authority)?;
                let (certificate, key) = (text(&tls.certificate)?, text(&tls.key)?);
                settings.extend([
                    ("transport/link/tls/root_ca_certificate", authority),
                    ("transport/link/tls/listen_certificate", certificate.clone()),
                    ("transport/link/tls/listen_private_key", key.clone()),
                    ("transport/link/tls/connect_certificate", certificate),
                    ("transport/link/tls/connect_private_key", key),
                    ("transport/link/tls/enable_mtls", "true".to_owned()),
                    (
                        "transport/link/tls/verify_name_on_connect",
                        "true".to_owned(),
                    ),
                ]);
                "[\"tls\"]"
            }
            None => "[\"tcp\"]",
        };
        settings.push(("transport/link/protocols", protocol.to_owned()));
        let mut config = zenoh::Config::default();
        for (key, value) in settings {
            let inserted = config.insert_json5(key, &value);
            inserted.map_err(|why| ConfigError::Refused(format!("{key}: {why}")))?;
        }
        Ok(config)
    }
}

/// How soon zenoh connects again.
const RETRY: &str = "{period_init_ms: 100, period_max_ms: 500, period_increase_factor: 2}";

/// The bytes of a message of zenoh beside a frame. Packets of many frames are shorter than a frame
/// may be, and one frame gets a byte and zenoh's own fields.
const SLACK: usize = 64 << 10;

/// Returns whether an endpoint is plain TCP of a loopback address.
fn is_loopback(endpoint: &str) -> bool {
    let address = endpoint.strip_prefix("tcp/").map(str::parse::<SocketAddr>);
    matches!(address, Some(Ok(address)) if address.ip().is_loopback())
}

/// Returns whether an endpoint is TLS of a host and a port. Zenoh's own settings behind `#` and `?`
/// could turn checks off, so there are none.
fn is_tls(endpoint: &str) -> bool {
    let Some((host, port)) = endpoint
        .strip_prefix("tls/")
        .and_then(|address| address.rsplit_once(':'))
    else {
        return false;
    };
    let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
    !host.is_empty() && host.bytes().all(is_host) && port.parse::<u16>().is_ok()
}

fn list(endpoints: &[String]) -> String {
    let quoted: Vec<_> = endpoints
        .iter()
        .map(|endpoint| format!("{endpoint:?}"))
        .collect();
    format!("[{}]", quoted.join(","))
}

/// Returns a path as a text of JSON.
fn text(path: &PathBuf) -> Result<String, ConfigError> {
    let path = path
        .to_str()
        .ok_or_else(|| ConfigError::BadPath(path.clone()))?;
    Ok(serde_json::Value::from(path).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(builder: ZenohBuilder) -> ConfigError {
        builder.build().unwrap_err()
    }

    #[test]
    fn builder_without_tls_demands_insecure_loopback() {
        let plain = || Zenoh::builder().listen("tcp/127.0.0.1:0");
        assert_eq!(error(plain()), ConfigError::Insecure);
        assert_eq!(error(Zenoh::builder()), ConfigError::Insecure);
        plain().insecure_loopback().build().unwrap();
        let connect = plain().insecure_loopback().connect("tcp/[::1]:7447");
        connect.build().unwrap();
    }

    #[test]
    fn insecure_endpoint_beyond_the_loopback_is_refused() {
        for endpoint in [
            "tcp/0.0.0.0:7447",
            "tcp/10.0.0.1:7447",
            "tcp/localhost:7447",
            "tcp/127.0.0.1:7447#iface=eth0",
            "tcp/127.0.0.1:7447?rel=0",
            "tls/127.0.0.1:7447",
            "udp/127.0.0.1:7447",
            "tcp/[::]:7447",
            "127.0.0.1:7447",
            "",
        ] {
            let refused = ConfigError::NotLoopback(endpoint.to_owned());
            let builder = Zenoh::builder().insecure_loopback();
            assert_eq!(error(builder.clone().listen(endpoint)), refused);
            assert_eq!(error(builder.connect(endpoint)), refused);
        }
    }

    #[test]
    fn endpoint_without_tls_is_refused_beside_tls() {
        let builder = Zenoh::builder().mutual_tls("ca.pem", "node.pem", "node.key");
        for endpoint in [
            "tcp/10.0.0.1:7447",
            "tls/10.0.0.1:7447#enable_mtls=false",
            "tls/10.0.0.1:7447#verify_name_on_connect=false",
            "tls/10.0.0.1",
            "tls/:7447",
            "tls/host:70000",
            "tls/ho\"st:7447",
            "quic/10.0.0.1:7447",
        ] {
            let refused = ConfigError::NotTls(endpoint.to_owned());
            assert_eq!(error(builder.clone().connect(endpoint)), refused);
        }
        // The tests run without it.
        assert_eq!(error(builder.clone()), ConfigError::Runtime);
        for endpoint in [
            "tls/host-1.example:7447",
            "tls/[::1]:7447",
            "tls/10.0.0.1:0",
        ] {
            builder.clone().connect(endpoint).config().unwrap();
        }
        let both = builder.listen("tls/0.0.0.0:7447").insecure_loopback();
        assert_eq!(error(both), ConfigError::TlsOnLoopback);
    }

    #[test]
    fn cluster_name_with_a_slash_or_a_star_is_refused() {
        for name in ["", "a/b", "*", "a b", "$x"] {
            let builder = Zenoh::builder().insecure_loopback().cluster(name);
            assert_eq!(error(builder), ConfigError::BadCluster(name.to_owned()));
        }
    }
}
