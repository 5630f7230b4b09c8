//! Where a PostgreSQL server is and as whom to enter, said in full before the client starts.
//!
//! Left to itself the client looks host names up with getaddrinfo, and the user's name with getpwuid, which both load the
//! machine's NSS libraries into this static program (`wakewatt_host::resolve` says why not). An address beside each name,
//! and a user, leave it nothing to look up; the names stay, for certificates.

use super::store::StoreError;
use postgres::Config;
use postgres::config::Host;
use std::net::IpAddr;
use wakewatt_host::resolve;

/// Gives every host of the connection string its address, and names a user.
pub(super) fn settle(config: &mut Config) -> Result<(), StoreError> {
    if config.get_user().is_none() {
        config.user(&user()?);
    }
    if !config.get_hostaddrs().is_empty() {
        return Ok(());
    }
    let hosts = config.get_hosts().to_vec();
    let names: Vec<&String> =
        hosts.iter().filter_map(|h| if let Host::Tcp(name) = h { Some(name) } else { None }).collect();
    if names.iter().all(|name| name.parse::<IpAddr>().is_ok()) {
        return Ok(());
    }
    if names.len() < hosts.len() {
        // One address belongs to each host, and a socket has none.
        return Err(StoreError(
            "a host name beside a socket's folder; write the host's address, or name one of them".into(),
        ));
    }
    for name in names {
        let found = resolve::addresses(name, 0).map_err(|why| StoreError(why.to_string()))?;
        config.hostaddr(found.first().ok_or_else(|| StoreError(format!("no address for {name}")))?.ip());
    }
    Ok(())
}

fn user() -> Result<String, StoreError> {
    let of = |name: &str| std::env::var(name).ok().filter(|user| !user.is_empty());
    of("PGUSER")
        .or_else(|| of("USER"))
        .or_else(|| of("LOGNAME"))
        .ok_or_else(|| StoreError("no user: write postgres://USER@host:5432/database, or set PGUSER".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(url: &str) -> Result<Config, StoreError> {
        let mut config: Config = url.parse().unwrap();
        settle(&mut config).map(|()| config)
    }

    #[test]
    fn nothing_is_left_to_look_up() {
        let named = settled("postgres://me@localhost:5432/shop").unwrap();
        assert_eq!(named.get_hostaddrs(), ["127.0.0.1".parse::<IpAddr>().unwrap()]);
        assert_eq!(named.get_hosts(), [Host::Tcp("localhost".into())], "the name stays");
        assert!(settled("postgres://me@10.0.0.1/shop").unwrap().get_hostaddrs().is_empty(), "a number is one already");
        assert!(settled("host=/run/postgresql user=me").unwrap().get_hostaddrs().is_empty());
        assert!(settled("host=/run/postgresql,localhost user=me").unwrap_err().to_string().contains("socket"));
        assert!(settled("postgres://me@300.1.1.1/shop").unwrap_err().to_string().contains("no host name"));
    }
}
