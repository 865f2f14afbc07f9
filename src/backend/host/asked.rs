//! Records in tests which linear updates and programs the methods run. Each needs a compiled unit, and a test checks
//! that the list of compiled kernels contains all of these.

use super::Host;
use crate::backend::ScalarProgram;
use crate::scalar::Scalar;
use std::cell::{Cell, RefCell};

/// An update with these numbers of inputs, outputs and products, or a program without an update.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Asked {
    pub(crate) scalar: &'static str,
    pub(crate) update: Option<[usize; 3]>,
    /// The program's words; empty if there is no program.
    pub(crate) code: Vec<u32>,
    /// True if it was called while a recording's body ran.
    pub(crate) recorded: bool,
}

thread_local! {
    static ALL: RefCell<Vec<Asked>> = const { RefCell::new(Vec::new()) };
    static RECORDED: Cell<bool> = const { Cell::new(false) };
}

fn note(asked: Asked) {
    ALL.with_borrow_mut(|all| {
        if !all.contains(&asked) {
            all.push(asked);
        }
    });
}

pub(super) fn updates<T: Scalar>(counts: [usize; 3], then: Option<&ScalarProgram<Host>>) {
    // An update without vectors is only a program, as on a device.
    let update = (counts[0] + counts[1] > 0).then_some(counts);
    let code = then.map_or(Vec::new(), |program| program.code.clone());
    if update.is_some() || !code.is_empty() {
        note(Asked { scalar: T::NAME, update, code, recorded: RECORDED.get() });
    }
}

pub(super) fn runs<T: Scalar>(program: &ScalarProgram<Host>) {
    note(Asked { scalar: T::NAME, update: None, code: program.code.clone(), recorded: RECORDED.get() });
}

/// While this value exists, updates and programs count as recorded.
pub(super) struct Recording;

impl Recording {
    pub(super) fn begins() -> Self {
        RECORDED.set(true);
        Self
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        RECORDED.set(false);
    }
}

/// Returns everything that this thread has recorded since the last call.
pub(crate) fn take() -> Vec<Asked> {
    ALL.take()
}
