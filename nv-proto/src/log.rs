//! Logging through `defmt`, where the feature is on.

/// What a type is logged as, where its fields are private, long, or of no use in a log.
macro_rules! logged {
    ($type:ty, $this:ident, $text:tt $(, $value:expr)* $(,)?) => {
        #[cfg(feature = "defmt")]
        impl defmt::Format for $type {
            fn format(&self, f: defmt::Formatter<'_>) {
                let $this = self;
                defmt::write!(f, $text $(, $value)*);
            }
        }
    };
}
