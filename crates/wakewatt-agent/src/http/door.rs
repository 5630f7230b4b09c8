//! Where askers come in: by TCP, or by a socket in the file system, where its mode says who may.

use std::io;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

/// A listener.
#[derive(Debug)]
pub enum Door {
    /// For whoever can reach the address.
    Tcp(std::net::TcpListener),
    /// For whom the file's mode lets.
    Unix(std::os::unix::net::UnixListener),
}

/// Who came.
pub(super) enum Came {
    /// By TCP.
    Far(TcpStream),
    /// By the file.
    Near(UnixStream),
}

/// One that waits.
pub(super) enum Open {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Door {
    pub(super) fn open(self) -> io::Result<Open> {
        Ok(match self {
            Door::Tcp(listener) => {
                listener.set_nonblocking(true)?;
                Open::Tcp(TcpListener::from_std(listener)?)
            }
            Door::Unix(listener) => {
                listener.set_nonblocking(true)?;
                Open::Unix(UnixListener::from_std(listener)?)
            }
        })
    }
}

impl Open {
    pub(super) async fn accept(&self) -> io::Result<Came> {
        Ok(match self {
            Open::Tcp(listener) => Came::Far(listener.accept().await?.0),
            Open::Unix(listener) => Came::Near(listener.accept().await?.0),
        })
    }
}
