//! `ServeError`: why a page is not served.
use selvedge::TryCurrentError;
use std::{error::Error, fmt, io, net::SocketAddr};

/// The reason why a page is not served.
///
/// ```
/// use selvedge_top::{Builder, ServeError};
///
/// let runtime = selvedge::Runtime::new()?;
/// let page = Builder::new().runtime(runtime.handle());
/// let error = page.serve("0.0.0.0:0").unwrap_err();
/// assert!(matches!(error, ServeError::NeedsToken(address) if address.port() == 0));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum ServeError {
    /// The address is not a loopback one, so other machines could read the page:
    /// [`Builder::token`](crate::Builder::token) must set a token.
    NeedsToken(SocketAddr),
    /// The token has not 16 to 128 characters, or has one that is not a letter, a digit or one of
    /// `-._~`.
    BadToken,
    /// No runtime was chosen, and this thread is in none.
    NoRuntime(TryCurrentError),
    /// The address has an error or is in use, or the system refuses a thread or a socket.
    Io(io::Error),
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NeedsToken(address) => {
                write!(
                    f,
                    "{address} is not a loopback address, so it needs a token"
                )
            }
            Self::BadToken => f.write_str(
                "a token has 16 to 128 characters, each a letter, a digit or one of `-._~`",
            ),
            Self::NoRuntime(error) => error.fmt(f),
            Self::Io(error) => error.fmt(f),
        }
    }
}

impl Error for ServeError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::NeedsToken(_) | Self::BadToken => None,
            Self::NoRuntime(error) => error.source(),
            Self::Io(error) => error.source(),
        }
    }
}

impl From<io::Error> for ServeError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<TryCurrentError> for ServeError {
    fn from(error: TryCurrentError) -> Self {
        Self::NoRuntime(error)
    }
}

/// So that `main` may return an `io::Result`.
impl From<ServeError> for io::Error {
    fn from(error: ServeError) -> Self {
        match error {
            ServeError::Io(error) => error,
            ServeError::NeedsToken(_) | ServeError::BadToken => {
                io::Error::new(io::ErrorKind::InvalidInput, error)
            }
            ServeError::NoRuntime(_) => io::Error::other(error),
        }
    }
}
