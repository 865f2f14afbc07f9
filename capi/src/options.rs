//! Options by name, so that new ones need no new function.

use crate::callback::{Callback, residua_apply};
use crate::handle::{destroy, find, give};
use crate::status::{Answer, Fault, guard, text};
use residua_core::krylov::SolveOptions;
use residua_core::scalar::Symmetry;
use residua_core::solver::{Builder, Device, Method};
use std::ffi::{c_char, c_void};
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Options of a solver.
#[allow(non_camel_case_types, reason = "its name in C")]
pub struct residua_options {
    _opaque: [u8; 0],
}

/// The settings for solvers of a matrix and for matrix-free solvers.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) builder: Builder,
    pub(crate) krylov: SolveOptions,
    pub(crate) method: Method,
    pub(crate) device: Device,
    pub(crate) restart: usize,
    /// The names of options that were set, but are not available for matrix-free solvers.
    pub(crate) needs_matrix: Vec<String>,
    /// A preconditioner of the caller.
    pub(crate) preconditioner: Option<Callback>,
    /// The name of an option that was set, but is not available for solvers of a matrix.
    pub(crate) needs_function: Option<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            builder: Builder::default(),
            krylov: SolveOptions::default(),
            method: Method::Auto,
            device: Device::Auto,
            restart: 30,
            needs_matrix: Vec::new(),
            preconditioner: None,
            needs_function: None,
        }
    }
}

fn read<T: FromStr>(name: &str, value: &str, needed: &str) -> Answer<T> {
    value.parse().map_err(|_| Fault::argument(format!("option {name}: '{value}' is not {needed}")))
}

fn word<T: FromStr<Err = residua_core::Error>>(name: &str, value: &str) -> Answer<T> {
    value.parse().map_err(|error| Fault::argument(format!("option {name}: {error}")))
}

fn number(name: &str, value: &str) -> Answer<f64> {
    let number: f64 = read(name, value, "a number")?;
    if (0.0..f64::INFINITY).contains(&number) {
        return Ok(number);
    }
    Err(Fault::argument(format!("option {name}: {value} is not a finite number of at least 0")))
}

fn count(name: &str, value: &str) -> Answer<usize> {
    let count: usize = read(name, value, "a whole number")?;
    if count == 0 { Err(Fault::argument(format!("option {name} must be at least 1"))) } else { Ok(count) }
}

fn yes(name: &str, value: &str) -> Answer<bool> {
    match value {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err(Fault::argument(format!("option {name}: '{value}' must be yes or no"))),
    }
}

impl Settings {
    /// Returns an error if an option was set that solvers of a matrix do not have.
    pub(crate) fn refuse_function(&self) -> Answer {
        if self.preconditioner.is_some() {
            return Err(Fault::argument(
                "your own preconditioner works only with arrays on the host and in one process",
            ));
        }
        match &self.needs_function {
            Some(name) => {
                let text = format!("option {name} is for matrix-free solvers, but this one has a matrix");
                Err(Fault::argument(text))
            }
            None => Ok(()),
        }
    }

    fn set(&mut self, name: &str, value: &str) -> Answer {
        let b = self.builder.clone();
        let mut of_a_matrix = true;
        self.builder = match name {
            "tolerance" | "absolute_tolerance" | "max_iterations" | "stagnation_window" | "method" => {
                of_a_matrix = false;
                self.both(b, name, value)?
            }
            "restart" => {
                self.restart = count(name, value)?;
                self.needs_function = Some(name.into());
                return Ok(());
            }
            "device" => {
                of_a_matrix = value.starts_with("cuda");
                self.device = word(name, value)?;
                b.device(self.device)
            }
            "time_limit" => b.time_limit(
                Duration::try_from_secs_f64(number(name, value)?)
                    .map_err(|_| Fault::argument(format!("option {name}: {value} seconds are too long")))?,
            ),
            "memory_limit" => b.memory_limit(number(name, value)? as u64),
            "preconditioner" => b.preconditioner(word(name, value)?),
            "precision" => b.precision(word(name, value)?),
            "reorder" => b.reorder(word(name, value)?),
            "format" => b.format(value),
            "right_hand_sides" => b.right_hand_sides(count(name, value)?),
            "updates" => b.updates(yes(name, value)?),
            "condition" => b.condition(yes(name, value)?),
            "symmetry" => b.symmetry(match value {
                "symmetric" => Symmetry::Symmetric,
                "hermitian" => Symmetry::Hermitian,
                _ => {
                    let text = format!("option {name}: '{value}' must be symmetric or hermitian");
                    return Err(Fault::argument(text));
                }
            }),
            "row_wise" => b.row_wise(yes(name, value)?),
            "null_space" => match value {
                "constants" => b.null_space_constants(),
                _ => {
                    let text = format!(
                        "option {name}: '{value}' is not constants; vectors are given by \
                         residua_options_set_null_space"
                    );
                    return Err(Fault::argument(text));
                }
            },
            _ => {
                return Err(Fault::argument(format!(
                    "no option '{name}': choose one of tolerance, absolute_tolerance, max_iterations, \
                     stagnation_window, time_limit, memory_limit, method, restart, preconditioner, precision, \
                     format, device, reorder, right_hand_sides, updates, symmetry, condition, row_wise, null_space"
                )));
            }
        };
        if of_a_matrix {
            self.needs_matrix.push(name.into());
        }
        Ok(())
    }

    /// Sets an option that solvers of both kinds have.
    fn both(&mut self, b: Builder, name: &str, value: &str) -> Answer<Builder> {
        Ok(match name {
            "method" => {
                self.method = word(name, value)?;
                b.method(self.method)
            }
            "max_iterations" | "stagnation_window" => {
                let n = count(name, value)?;
                if name == "max_iterations" {
                    self.krylov = self.krylov.clone().max_iterations(n);
                    b.max_iterations(n)
                } else {
                    self.krylov = self.krylov.clone().stagnation_window(n);
                    b.stagnation_window(n)
                }
            }
            "tolerance" => {
                let t = number(name, value)?;
                self.krylov = self.krylov.clone().tolerance(t);
                b.tolerance(t)
            }
            _ => {
                let t = number(name, value)?;
                self.krylov = self.krylov.clone().absolute_tolerance(t);
                b.absolute_tolerance(t)
            }
        })
    }
}

/// The settings of a handle; the defaults for null.
pub(crate) fn settings(options: *const residua_options) -> Answer<Settings> {
    if options.is_null() {
        return Ok(Settings::default());
    }
    let found = find::<_, Mutex<Settings>>("options", options)?;
    let settings = found.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Ok(settings)
}

/// Changes the settings for matrices, with the option's name for the message.
pub(crate) fn change(
    options: *const residua_options,
    name: &str,
    how: impl FnOnce(Builder) -> Builder,
) -> Answer {
    let found = find::<_, Mutex<Settings>>("options", options)?;
    let mut settings = found.lock().unwrap_or_else(PoisonError::into_inner);
    settings.builder = how(settings.builder.clone());
    settings.needs_matrix.push(name.into());
    Ok(())
}

/// Makes options, all with their default values.
///
/// # Safety
/// `options` is null or can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn residua_options_create(options: *mut *mut residua_options) -> i32 {
    guard(|| {
        if options.is_null() {
            return Err(Fault::null("options"));
        }
        let made = give(Arc::new(Mutex::new(Settings::default())));
        // SAFETY: the pointer is not null, and the caller guarantees room for a handle.
        unsafe { *options = made };
        Ok(())
    })
}

/// Sets an option. Values are written as for the command. Names: tolerance, absolute_tolerance, max_iterations,
/// stagnation_window, time_limit (seconds), memory_limit (bytes), method, restart, preconditioner, precision, format,
/// device, reorder, right_hand_sides, updates (yes, no), symmetry, condition (yes, no), row_wise (yes, no), null_space
/// (constants).
///
/// # Safety
/// `name` and `value` are null or end in a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn residua_options_set(
    options: *mut residua_options,
    name: *const c_char,
    value: *const c_char,
) -> i32 {
    guard(|| {
        // SAFETY: guaranteed by the caller.
        let (name, value) = unsafe { (text("name", name)?, text("value", value)?) };
        let found = find::<_, Mutex<Settings>>("options", options)?;
        found.lock().unwrap_or_else(PoisonError::into_inner).set(name, value)
    })
}

/// Sets a preconditioner of your own: `apply` writes z = M^-1 r; null removes it. A solver that is made with it, from a
/// function or from CSR or coordinates on the host, runs one method on the CPU: cg (M must be symmetric or Hermitian
/// positive definite), minres (likewise), bicgstab or gmres, which auto selects and for which M may change from call to
/// call. It takes the options tolerance, absolute_tolerance, max_iterations, stagnation_window, method, restart and
/// updates. `user` is passed to `apply`, in the thread that solves.
///
/// # Safety
/// `apply` writes n elements and does not unwind; `user` is valid for it as long as a solver made with these options
/// exists.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn residua_options_set_preconditioner(
    options: *mut residua_options,
    apply: residua_apply,
    user: *mut c_void,
) -> i32 {
    guard(|| {
        let found = find::<_, Mutex<Settings>>("options", options)?;
        let mut settings = found.lock().unwrap_or_else(PoisonError::into_inner);
        settings.preconditioner = apply.map(|apply| Callback { apply, user });
        Ok(())
    })
}

/// Destroys options; solvers that were made with them remain valid. Null is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn residua_options_destroy(options: *mut residua_options) -> i32 {
    guard(|| destroy::<_, Mutex<Settings>>("options", options))
}
