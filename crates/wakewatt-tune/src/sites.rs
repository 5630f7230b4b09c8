//! The sites of a host by their path, when it is known which file was written and not which place that is.

use crate::knob::{Host, Knob, Site};
use crate::knobs;
use std::collections::BTreeMap;

/// Sites found by their path, each knob asked once: asking means reading a file per CPU.
#[derive(Default)]
pub struct SitesByPath {
    known: BTreeMap<&'static str, BTreeMap<String, Site>>,
}

impl SitesByPath {
    /// The knob of a setting, and its site at this path.
    pub fn find(&mut self, host: &Host<'_>, name: &str, path: &str) -> Option<(&'static dyn Knob, &Site)> {
        let knob = knobs::find(name)?;
        let sites = self.known.entry(knob.about().id).or_insert_with(|| {
            let sites = knob.sites(host).unwrap_or_default();
            sites.into_iter().map(|site| (site.path.clone(), site)).collect()
        });
        sites.get(path).map(|site| (knob, site))
    }
}
