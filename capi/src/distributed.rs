//! Solvers whose rows are distributed over the processes of an MPI communicator.

use crate::arrays::Raw;
use crate::engine::{Engine, Given, How, on_host_alone, vectors};
use crate::observer::told;
use crate::options::Settings;
use crate::report::Filed;
use crate::status::{Answer, Fault, RESIDUA_UNSUPPORTED};
use residua_core::ranks::Group;
use residua_core::solver::{Device, RowsSolver, Solvable};
use residua_core::{Error, Host};
use std::ffi::c_void;

/// A solver for this process's rows together with those of the other processes.
pub(crate) struct Distributed<T: Solvable> {
    solver: RowsSolver<T>,
    histories: Vec<Vec<f64>>,
}

impl<T: Solvable> Distributed<T> {
    /// All processes of the communicator with this Fortran number must call this. If the arrays of one process are
    /// invalid, it informs the others.
    ///
    /// # Safety
    /// As for [`Raw::on_host`].
    pub(crate) unsafe fn new(raw: &Raw, comm: i32, settings: &Settings) -> Answer<Self> {
        settings.refuse_function()?;
        if !matches!(settings.device, Device::Auto | Device::Cpu) {
            return Err(Fault::argument(
                "a distributed solver computes on the CPU: set the option device to auto or cpu",
            ));
        }
        let group = Group::from_mpi(comm)?;
        // SAFETY: guaranteed by the caller.
        let own = match unsafe { raw.on_host::<T>() } {
            Ok(arrays) => arrays.to_csr(&Host),
            Err(fault) => Err(Error::InvalidMatrix(fault.text)),
        };
        let solver = settings.builder.build_rows(&group, own)?;
        Ok(Self { solver, histories: Vec::new() })
    }
}

impl<T: Solvable> Engine for Distributed<T> {
    fn shape(&self) -> (usize, usize) {
        (self.solver.own_rows(), self.solver.own_rows())
    }

    unsafe fn update(&mut self, _: *const c_void, _: usize, _: Option<u64>) -> Answer {
        Err(Fault::new(RESIDUA_UNSUPPORTED, "a distributed solver cannot take new values: make a new one"))
    }

    unsafe fn solve(
        &mut self,
        count: usize,
        b: Given,
        x: Given,
        (stream, observer): How,
    ) -> Answer<Vec<Filed>> {
        on_host_alone(stream, "a distributed solver")?;
        // SAFETY: guaranteed by the caller.
        let (b, x) = unsafe { vectors(self.shape(), count, b, x)? };
        let told = self.solver.solve_with(b, x, told(observer))?;
        let (reports, histories): (Vec<_>, Vec<_>) = told.into_iter().unzip();
        self.histories = histories;
        Ok(reports.iter().map(Filed::of_solver).collect())
    }

    fn history(&self, right_hand_side: usize) -> &[f64] {
        self.histories.get(right_hand_side).map_or(&[], |history| history)
    }
}
