//! wakewatt-bios shows, plans and changes power settings of firmware, over Redfish.
//!
//! Names and values differ by vendor, model and release, so nothing here knows a machine: the attribute registry that the
//! machine's own BMC serves decides, and the tables of [`concepts`] only say which names to look for. Data flows one way:
//! a [`service`] (a BMC, or a folder that somebody recorded) is walked ([`walk`]) into a [`walk::Machine`]; a [`wish`] is
//! resolved against its [`registry`] into a [`plan`], whose every step says what it needs and why something is refused;
//! [`apply`] keeps the old values in a [`journal`], stages the plan for the next boot and reads it back; [`undo`] stages the
//! old values; [`verify`] compares, after the boot, what the BIOS says with what Linux sees.
//!
//! Nothing here reboots a machine unless it is told to, and nothing is sent anywhere but to the BMC that was named.
#![forbid(unsafe_code)]

pub mod link;
pub mod setting;
pub mod service;
pub mod recorded;
pub mod live;
pub mod registry;
pub mod walk;
pub mod concepts;
pub mod wish;
pub mod plan;
pub mod show;
pub mod journal;
pub mod apply;
pub mod undo;
pub mod verify;
