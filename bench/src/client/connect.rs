//! The loop of a row whose requests each have a connection of their own.
use super::{
    load::{Load, Run},
    spec::Address,
};
use std::{
    io::{self, Read, Write},
    net::{Ipv4Addr, TcpStream},
    time::Instant,
};

impl Load {
    /// Connects, sends a byte, awaits it, and closes, again and again. Nothing is lost, as a wait
    /// for the byte has no limit.
    pub(super) fn connect_each(&mut self, run: &mut Run) -> io::Result<usize> {
        let Address::Tcp(mut to) = self.spec.to else {
            return Err(io::Error::other("the address is not one of TCP"));
        };
        while run.took.is_empty() || Instant::now() < run.end {
            // Each connection goes to another loopback address, as a closed connection keeps its
            // pair of address and port for a minute.
            let [low, middle, ..] = self.random.next().to_le_bytes();
            to.set_ip(Ipv4Addr::new(127, 0, middle, low.max(1)).into());
            let begun = Instant::now();
            let mut stream = TcpStream::connect(to)?;
            stream.set_nodelay(true)?;
            stream.write_all(&[7])?;
            stream.read_exact(&mut [0])?;
            drop(stream);
            run.took.push(begun.elapsed().as_nanos() as u64);
        }
        Ok(0)
    }
}
