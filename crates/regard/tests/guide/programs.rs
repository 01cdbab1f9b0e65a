//! The guide's Rust programs, each run as it stands there.

/// One module and one test for each program of `docs/guide/rust`, and all of their texts.
macro_rules! programs {
    ($($name:ident)*) => {
        $(mod $name {
            include!(concat!("../../../../docs/guide/rust/", stringify!($name), ".rs"));

            #[test]
            fn runs_as_the_guide_shows_it() {
                main().unwrap();
            }
        })*

        /// The names and texts of the programs.
        pub(crate) fn all() -> Vec<(&'static str, &'static str)> {
            vec![$((
                stringify!($name),
                include_str!(concat!("../../../../docs/guide/rust/", stringify!($name), ".rs")),
            )),*]
        }
    };
}

programs! { focus lookup }
