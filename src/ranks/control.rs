//! Who started the ranks, and hears when one leaves or fails.

use super::carrier::Carrier;
use super::member::Member;
use super::message::Message;
use super::mpi::Wire;
use std::sync::Arc;

/// The starter of this rank.
pub(super) enum Control {
    /// A process of this machine, at the other end of a socket.
    Starter(Member),
    /// A launcher of MPI, or the host program.
    Mpi(Arc<dyn Wire>),
}

impl Control {
    /// Returns whether the starter has heard that the user wishes the work to stop. Launchers of MPI send signals to
    /// the ranks themselves.
    pub(super) fn interrupted(&self) -> bool {
        match self {
            Control::Starter(member) => member.interrupted(),
            Control::Mpi(_) => false,
        }
    }

    /// This rank has done its work.
    pub(super) fn leave(&self, carrier: &Carrier, status: u8) {
        if let Carrier::Window(window) = carrier {
            window.leave();
        }
        match self {
            Control::Starter(member) => member.tell(&Message::Bye(status)),
            Control::Mpi(wire) => wire.leave(),
        }
    }

    /// A rank can't go on. Does not return under MPI.
    pub(super) fn fail(&self, carrier: &Carrier, rank: usize, cause: &str) {
        let first = match carrier {
            Carrier::Window(window) => window.fail(rank, cause),
            Carrier::Messages(_) => false,
        };
        match (self, carrier) {
            (Control::Starter(member), _) => member.tell(&Message::Fault(rank, cause.into())),
            (Control::Mpi(wire), Carrier::Messages(_)) => wire.fail(rank, cause),
            // The window knows which rank was the first: that one tells the user, and no other.
            (Control::Mpi(wire), Carrier::Window(_)) if first => wire.abort(Some((rank, cause))),
            (Control::Mpi(wire), Carrier::Window(_)) => wire.abort_later(),
        }
    }
}
