//! The process that started the ranks, which is informed when one leaves or fails.

use super::carrier::Carrier;
use super::member::Member;
use super::message::Message;
use super::mpi::Wire;
use std::sync::Arc;

/// The process that started this rank.
pub(super) enum Control {
    /// A process on this machine, connected by a socket.
    Starter(Member),
    /// A launcher of MPI, or the host program.
    Mpi(Arc<dyn Wire>),
}

impl Control {
    /// Returns whether the starting process has received a stop request from the user. Launchers of MPI send signals to
    /// the ranks themselves.
    pub(super) fn interrupted(&self) -> bool {
        match self {
            Control::Starter(member) => member.interrupted(),
            Control::Mpi(_) => false,
        }
    }

    /// Reports that this rank has finished.
    pub(super) fn leave(&self, carrier: &Carrier, status: u8) {
        if let Carrier::Window(window) = carrier {
            window.leave();
        }
        match self {
            Control::Starter(member) => member.tell(&Message::Bye(status)),
            Control::Mpi(wire) => wire.leave(),
        }
    }

    /// Reports that this rank can't go on. Does not return under MPI.
    pub(super) fn fail(&self, carrier: &Carrier, rank: usize, cause: &str) {
        let first = match carrier {
            Carrier::Window(window) => window.fail(rank, cause),
            Carrier::Messages(_) => false,
        };
        match (self, carrier) {
            (Control::Starter(member), _) => member.tell(&Message::Fault(rank, cause.into())),
            (Control::Mpi(wire), Carrier::Messages(_)) => wire.fail(rank, cause),
            // The window shows which rank failed first: only that one prints the error.
            (Control::Mpi(wire), Carrier::Window(_)) if first => wire.abort(Some((rank, cause))),
            (Control::Mpi(wire), Carrier::Window(_)) => wire.abort_later(),
        }
    }
}
