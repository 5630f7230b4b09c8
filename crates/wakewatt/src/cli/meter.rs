//! Which power meters to read: the options that every command with watts shares.

use clap::Args;
use std::path::PathBuf;
use wakewatt_core::cost::{PerKwh, Rates};

/// What watts cost.
#[derive(Clone, Debug, Default, Args)]
pub struct RateArgs {
    /// Also what the measured watts cost: 0.30/kWh, 0.30EUR/kWh. Nothing is priced that no meter measured
    #[arg(long, value_name = "AMOUNT/kWh", value_parser = str::parse::<PerKwh>)]
    pub price: Option<PerKwh>,
    /// And what they emit: 350g/kWh
    #[arg(long, value_name = "GRAMS/kWh", value_parser = PerKwh::emission)]
    pub co2: Option<PerKwh>,
}

impl RateArgs {
    /// As core takes them.
    pub fn rates(&self) -> Rates {
        Rates { price: self.price.clone(), emission: self.co2.clone() }
    }
}

/// Meters.
#[derive(Debug, Default, Args)]
pub struct MeterArgs {
    /// Only these meters; the first that works is quoted
    #[arg(long, value_name = "NAME", value_parser = meter_parser())]
    pub meter: Vec<String>,
    /// A command that prints watts, once per call or one number per line (W, mW, kW); it sees PATH, HOME, language and
    /// terminal of the environment, nothing else
    #[arg(long, value_name = "CMD")]
    pub meter_cmd: Option<String>,
    /// A BMC to ask, such as `https://bmc.example`
    #[arg(long, value_name = "URL")]
    pub redfish: Vec<String>,
    /// Its user; the password comes from --redfish-password-file or WAKEWATT_REDFISH_PASSWORD
    #[arg(long, value_name = "NAME", requires = "redfish")]
    pub redfish_user: Option<String>,
    /// A file of your own (mode 600) whose first line is the password
    #[arg(long, value_name = "FILE", requires = "redfish_user")]
    pub redfish_password_file: Option<PathBuf>,
    /// Send that password to an http:// URL too: whoever is on the way can read it
    #[arg(long, requires = "redfish_user")]
    pub plain_http_password: bool,
    /// A Prometheus to ask, such as `http://prometheus.example:9090`
    #[arg(long, value_name = "URL", requires = "query")]
    pub prometheus: Option<String>,
    /// PromQL that gives this machine's watts
    #[arg(long, value_name = "PROMQL", requires = "prometheus")]
    pub query: Option<String>,
    /// Believe the authorities in this PEM file instead of the distribution's
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Believe any certificate: whoever stands between can read the password
    #[arg(long, conflicts_with = "ca")]
    pub insecure: bool,
    #[command(flatten)]
    pub rates: RateArgs,
}

fn meter_parser() -> clap::builder::PossibleValuesParser {
    clap::builder::PossibleValuesParser::new(wakewatt_host::power::METERS.iter().map(|kind| kind.name))
}
