//! The pictures of `draw`: those of `caption`, plainly painted where they are embedded.

use super::config::Config;
use crate::task::held_out::HeldOutOptions;
use crate::task::part::Part;
use crate::task::splits::{self, Splits};
use crate::tasks::captioned::Pictures;
use regard_data::files::Caption;
use regard_data::{Result, toy};

/// The pictures that a configuration names.
pub(super) type Dataset<'a> = Splits<'a, Config>;

impl splits::Dataset for Config {
    type List = Vec<Caption>;
    type Examples = Pictures;

    fn given(&self, part: Part) -> Result<Option<&'static str>> {
        Ok(self.data.given(part))
    }

    fn held_out(&self) -> HeldOutOptions {
        self.data.held_out
    }

    fn list(&self, part: Part) -> Result<Self::List> {
        self.data.list(part)
    }

    fn read(&self, list: Self::List) -> Result<Pictures> {
        self.data.read(&list)
    }

    fn embedded(&self, part: Part) -> Result<Pictures> {
        self.data.embedded(part, toy::plainly_captioned)
    }
}
