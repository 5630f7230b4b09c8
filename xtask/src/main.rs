//! Chores of the house: the lead wires the commands; the browser check is here.
#[cfg(test)]
mod browser;

fn main() {}
