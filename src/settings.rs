//! Options that are set one by one.

/// Implements methods that take options and return them with one field set:
/// `fn name(value: type) => field = expression`.
macro_rules! settings {
    ($options:ty; $(
        $(#[$meta:meta])* $visible:vis fn $name:ident($value:ident: $type:ty) => $field:ident = $to:expr;
    )*) => {
        impl $options {
            $($(#[$meta])*
            #[must_use = "the options are returned, not changed in place"]
            $visible fn $name(mut self, $value: $type) -> Self {
                self.$field = $to;
                self
            })*
        }
    };
}
pub(crate) use settings;
