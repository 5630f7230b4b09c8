//! Which kernel's rules: from what a machine says its kernel is to a row of a governor's list.
//!
//! Governors changed within stable series, so `6.1` is not enough; and distributions change kernels without changing that number,
//! so even `5.14.0` is not what it says. `version.rs` reads the words, `vendors.rs` knows whose numbers mean what, and a row
//! says how it is known: held against that kernel's code, inferred from its changelog, or assumed. An assumption is
//! always said.

mod vendors;
mod version;

pub use version::{Kernel, KernelError, Release};

/// How it is known that a release has this form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// Decisions were held against the compiled code of this release or of both neighbours in its series.
    Checked,
    /// From changelogs, or because the releases before and after have it.
    Inferred,
    /// Nobody looked: the nearest that is known.
    Assumed,
}

/// A form from a release on.
#[derive(Clone, Copy, Debug)]
pub struct Row<T> {
    from: (u16, u16, u16),
    /// What it is called in reports.
    pub name: &'static str,
    /// How it is known.
    pub basis: Basis,
    /// The form.
    pub form: T,
}

impl<T> Row<T> {
    /// From this release on.
    pub(crate) const fn new(from: (u16, u16, u16), name: &'static str, basis: Basis, form: T) -> Row<T> {
        Row { from, name, basis, form }
    }

    /// Name and basis.
    pub fn told(&self) -> (&'static str, Basis) {
        (self.name, self.basis)
    }
}

/// The last row not newer than a release; lists begin with 0.0.0.
pub(crate) fn row_of<T: Copy>(rows: &[Row<T>], release: Release) -> Row<T> {
    let wanted = (release.major, release.minor, release.patch);
    let at = rows.partition_point(|row| row.from <= wanted);
    rows[at.max(1) - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_row_not_newer_is_taken() {
        let row = |from, form| Row::new(from, "", Basis::Checked, form);
        let rows = [row((0, 0, 0), 'a'), row((6, 1, 0), 'b'), row((6, 1, 141), 'c')];
        let of = |major, minor, patch| row_of(&rows, Release { major, minor, patch }).form;
        assert_eq!([of(2, 6, 18), of(6, 1, 0), of(6, 1, 140), of(6, 1, 141), of(7, 0, 0)], ['a', 'b', 'b', 'c', 'c']);
    }
}
