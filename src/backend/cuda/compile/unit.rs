//! What is compiled at a time: one kernel file for one choice of types.

use super::Target;
use crate::backend::cuda::policy;

/// A kernel file and the types it is compiled for. Its tuning constants follow from these (`policy`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Unit {
    source: &'static str,
    types: [(&'static str, &'static str); 3],
    class: u32,
}

impl Unit {
    /// The file `source` without types.
    pub const fn new(source: &'static str) -> Self {
        Unit { source, types: [("", ""); 3], class: 0 }
    }

    /// With `macro` standing for the type of this name ([`Element::NAME`](crate::scalar::Element::NAME)).
    #[must_use]
    pub const fn with(mut self, name: &'static str, element: &'static str) -> Self {
        let mut free = 0;
        while !self.types[free].0.is_empty() {
            free += 1;
        }
        self.types[free] = (name, element);
        self
    }

    /// For problems of this class; what it means is between the launching code and `policy`.
    #[must_use]
    pub const fn class(mut self, class: u32) -> Self {
        self.class = class;
        self
    }

    /// Name of the file.
    pub fn source(&self) -> &'static str {
        self.source
    }

    /// Class of the problem's size or shape.
    pub fn size_class(&self) -> u32 {
        self.class
    }

    /// The types, as (macro, name).
    pub fn types(&self) -> impl Iterator<Item = (&'static str, &'static str)> + '_ {
        self.types.iter().copied().filter(|(name, _)| !name.is_empty())
    }

    /// The type for which `name` stands.
    pub fn type_of(&self, name: &str) -> Option<&'static str> {
        self.types().find(|(of, _)| *of == name).map(|(_, element)| element)
    }

    /// `vector.cu T=f64`, for messages.
    pub fn describe(&self) -> String {
        let mut text = self.source.to_string();
        for (name, element) in self.types() {
            text += &format!(" {name}={element}");
        }
        if self.class > 0 {
            text += &format!(" class {}", self.class);
        }
        text
    }

    pub(super) fn options(&self, target: &Target) -> Vec<String> {
        let mut options = vec![
            format!("--gpu-architecture={}", target.name),
            "--std=c++17".into(),
            "--device-as-default-execution-space".into(),
        ];
        options.extend(self.types().map(|(name, element)| format!("--define-macro={name}={element}")));
        options.extend(
            policy::constants(self).into_iter().map(|(name, value)| format!("--define-macro={name}={value}")),
        );
        options
    }
}
