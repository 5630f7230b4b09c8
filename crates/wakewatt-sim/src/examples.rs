//! Server files that come with the program: a plain one to begin with, and the cases of `docs/methods/simulate.md`.

/// A shipped file.
#[derive(Clone, Copy, Debug)]
pub struct Example {
    /// Its name.
    pub name: &'static str,
    /// What it shows.
    pub about: &'static str,
    /// The file.
    pub text: &'static str,
}

const fn of(name: &'static str, about: &'static str, text: &'static str) -> Example {
    Example { name, about, text }
}

/// All of them.
pub const EXAMPLES: &[Example] = &[
    of("plain", "one server, commented field by field", include_str!("../servers/plain.toml")),
    of(
        "k0-kubernetes",
        "a worker node with deep sleep and low clocks: 191 against 85 ms",
        include_str!("../servers/k0-kubernetes.toml"),
    ),
    of("k2-ping", "ping one way 0.04 ms, the other way 0.12 ms", include_str!("../servers/k2-ping.toml")),
    of("k3-fio", "random reads of 32 KiB, 30 us slower with deep sleep", include_str!("../servers/k3-fio.toml")),
    of(
        "k4-governors",
        "graduated load under five governors, default and tuned",
        include_str!("../servers/k4-governors.toml"),
    ),
    of("k4-shop", "an online shop at 1000 clients under the same governors", include_str!("../servers/k4-shop.toml")),
    of("k4-consolidation", "ten percent load, spread and packed", include_str!("../servers/k4-consolidation.toml")),
    of("skx-package", "idle power of a Skylake package by idle state", include_str!("../servers/skx-package.toml")),
    of("slo-limits", "which idle limit keeps a latency goal at which load", include_str!("../servers/slo-limits.toml")),
    of("change", "settings changed in the middle of the run", include_str!("../servers/change.toml")),
];

/// By its name.
pub fn example(name: &str) -> Option<&'static Example> {
    EXAMPLES.iter().find(|e| e.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::Server;

    #[test]
    fn every_example_is_a_server_under_each_of_its_settings() {
        for example in EXAMPLES {
            let server = Server::parse(example.text).unwrap_or_else(|e| panic!("{}: {e}", example.name));
            assert_eq!(server.name, example.name);
            assert!(server.about.len() > 50, "{}: say what is assumed", example.name);
            for setting in &server.setting {
                server.under(setting).unwrap_or_else(|e| panic!("{}, {}: {e}", example.name, setting.name));
            }
        }
        assert!(example("k9").is_none());
    }
}
