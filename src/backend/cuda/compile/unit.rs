//! The unit of compilation: one kernel file for one choice of types.

use super::{Target, programs};
use crate::backend::cuda::tuning;
use std::hash::{Hash, Hasher};

/// A kernel file with the types and variants for which it is compiled. These determine its tuning constants (`tuning`).
#[derive(Debug, Clone, Copy, Eq)]
pub struct Unit {
    source: &'static str,
    types: [(&'static str, &'static str); 6],
    class: u32,
}

impl PartialEq for Unit {
    /// Unused elements of `types` are neither compared nor hashed. Both run at every launch, and to compare two empty
    /// strings, whose addresses are in no page, took 0.2 us on an Intel host.
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source && self.class == other.class && self.types().eq(other.types())
    }
}

impl Hash for Unit {
    /// Skips unused elements of `types`.
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.source.hash(state);
        self.types().for_each(|(_, value)| value.hash(state));
        self.class.hash(state);
    }
}

impl Unit {
    /// Returns a unit of the file `source` without types.
    pub const fn new(source: &'static str) -> Self {
        Unit { source, types: [("", ""); 6], class: 0 }
    }

    /// Defines the macro `name` as a type ([`Element::NAME`](crate::scalar::Element::NAME)) or a variant. `_` is
    /// ignored.
    #[must_use]
    pub const fn with(mut self, name: &'static str, element: &'static str) -> Self {
        if name.len() == 1 && name.as_bytes()[0] == b'_' {
            return self;
        }
        let mut free = 0;
        while !self.types[free].0.is_empty() {
            free += 1;
        }
        self.types[free] = (name, element);
        self
    }

    /// Sets the class of the problem. The launching code and `tuning` define its meaning.
    #[must_use]
    pub const fn class(mut self, class: u32) -> Self {
        self.class = class;
        self
    }

    /// Returns the name of the file.
    pub fn source(&self) -> &'static str {
        self.source
    }

    /// Returns the class of the problem's size or shape.
    pub fn size_class(&self) -> u32 {
        self.class
    }

    /// Returns the types as (macro, name).
    pub fn types(&self) -> impl Iterator<Item = (&'static str, &'static str)> + '_ {
        self.types.iter().copied().filter(|(name, _)| !name.is_empty())
    }

    /// Returns the type or variant for the macro `name`. All units of a file define the same macros.
    pub(in crate::backend::cuda) fn type_of(&self, name: &str) -> &'static str {
        match self.types().find(|(of, _)| *of == name) {
            Some((_, element)) => element,
            None => unreachable!("{} names no {name}", self.describe()),
        }
    }

    /// Returns the number of bytes of the type for `SCALAR`.
    pub(in crate::backend::cuda) fn scalar_bytes(&self) -> usize {
        match self.type_of("SCALAR") {
            "f32" => 4,
            "c64" => 16,
            _ => 8,
        }
    }

    /// Returns a text such as `vector.cu T=f64`, for messages and lists.
    pub fn describe(&self) -> String {
        let mut text = self.source.to_string();
        for (name, element) in self.types() {
            text += &format!(" {name}={element}");
        }
        // The program's text is part of the description, because its number differs between processes.
        match programs::of(self) {
            Some(program) => text += &format!(" PROGRAM={program}"),
            None if self.class > 0 => text += &format!(" class {}", self.class),
            None => (),
        }
        text
    }

    pub(super) fn options(&self, target: &Target) -> Vec<String> {
        let mut options = vec![
            format!("--gpu-architecture={}", target.name),
            "--std=c++17".into(),
            "--device-as-default-execution-space".into(),
        ];
        if tuning::rounds_as_written(self) {
            options.push("--fmad=false".into());
        }
        options.extend(self.types().map(|(name, element)| format!("--define-macro={name}={element}")));
        options.extend(
            tuning::constants(self).into_iter().map(|(name, value)| format!("--define-macro={name}={value}")),
        );
        options.extend(programs::of(self).map(|text| format!("--define-macro=PROGRAM={text}")));
        options
    }
}
