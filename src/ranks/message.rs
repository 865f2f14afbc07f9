//! The messages between a rank and the process that started it, sent through a socket.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;

/// Longer messages are not from residua.
const LONGEST: usize = 1 << 20;

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Message {
    /// A rank begins: its number and its version.
    Hello(usize, String),
    /// All ranks have begun; the file of their window.
    Welcome(String),
    /// A rank has opened the window.
    Ready,
    /// A rank has failed, with the cause.
    Fault(usize, String),
    /// A rank has finished, with its exit status.
    Bye(u8),
    /// The user has asked to stop.
    Interrupt,
}

impl Message {
    /// Sends a message: its kind, a number, the length of its text, and the text.
    pub(super) fn send(&self, mut stream: &UnixStream) -> io::Result<()> {
        let (kind, number, text): (u8, usize, &str) = match self {
            Message::Hello(rank, version) => (0, *rank, version),
            Message::Welcome(path) => (1, 0, path),
            Message::Ready => (2, 0, ""),
            Message::Fault(rank, cause) => (3, *rank, cause),
            Message::Bye(status) => (4, usize::from(*status), ""),
            Message::Interrupt => (5, 0, ""),
        };
        let mut bytes = vec![kind];
        bytes.extend((number as u64).to_le_bytes());
        bytes.extend((text.len() as u64).to_le_bytes());
        bytes.extend(text.as_bytes());
        stream.write_all(&bytes)
    }

    /// Waits for the next message.
    pub(super) fn receive(mut stream: &UnixStream) -> io::Result<Self> {
        let mut head = [0; 17];
        stream.read_exact(&mut head)?;
        let number = |at: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&head[at..at + 8]);
            u64::from_le_bytes(bytes) as usize
        };
        let strange = || io::Error::new(io::ErrorKind::InvalidData, "a message came from another program");
        if number(9) > LONGEST {
            return Err(strange());
        }
        let mut text = vec![0; number(9)];
        stream.read_exact(&mut text)?;
        let text = String::from_utf8_lossy(&text).into_owned();
        Ok(match head[0] {
            0 => Message::Hello(number(1), text),
            1 => Message::Welcome(text),
            2 => Message::Ready,
            3 => Message::Fault(number(1), text),
            4 => Message::Bye(number(1) as u8),
            5 => Message::Interrupt,
            _ => return Err(strange()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_arrive_as_they_were_sent() {
        let (here, there) = UnixStream::pair().unwrap();
        for message in [
            Message::Hello(3, "0.1.0".into()),
            Message::Welcome("/dev/shm/window".into()),
            Message::Ready,
            Message::Fault(2, "ended by signal 9".into()),
            Message::Bye(4),
            Message::Interrupt,
        ] {
            message.send(&here).unwrap();
            assert_eq!(Message::receive(&there).unwrap(), message);
        }
        drop(here);
        assert!(Message::receive(&there).is_err());
    }
}
