//! Watts in Redfish documents, by the old schema and the new.
//!
//! Source: DMTF DSP0266 and DSP2046. Old (`Chassis/<id>/Power`): `PowerControl[].PowerConsumedWatts`, the first member
//! being the machine and further ones, where a maker adds them, its parts. New (2020.4 on; some boards have dropped the
//! old one): `Chassis/<id>/EnvironmentMetrics` with `PowerWatts.Reading`, and `PowerSubsystem/PowerSupplies/<id>/Metrics`
//! with `InputPowerWatts.Reading`, which is the wall. Numbers may be null, and are then not there. Links
//! (`@odata.id`) are followed only to paths of the same server ([`path`]): a document must not send us elsewhere.

use super::uw_of_watts;
use crate::samples::energy::Covers;
use serde_json::Value;

/// Where everything begins.
pub const CHASSIS: &str = "/redfish/v1/Chassis";
/// Where sessions are opened.
pub const SESSIONS: &str = "/redfish/v1/SessionService/Sessions";

/// One number of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// For people.
    pub name: String,
    /// What it is about.
    pub covers: Covers,
    /// Contained in another of the same document.
    pub is_part: bool,
    /// Microwatts, or why not.
    pub power_uw: Result<i64, String>,
}

/// The path behind a link, if it is one of this server and nothing but a path.
pub fn path(link: &Value) -> Option<String> {
    let path = link["@odata.id"].as_str()?;
    let is_plain = path.chars().all(|c| c.is_ascii_alphanumeric() || "/-_.~:()'%#".contains(c));
    let is_own = path.starts_with("/redfish/") && !path.contains("..");
    (is_plain && is_own).then(|| path.split('#').next().unwrap_or(path).to_string())
}

/// The members of a collection.
pub fn members(document: &Value) -> Vec<String> {
    document["Members"].as_array().into_iter().flatten().filter_map(path).collect()
}

/// All the watts of a document, whichever of the three it is.
pub fn readings(document: &Value) -> Vec<Reading> {
    let name = |v: &Value, or: &str| v["Name"].as_str().unwrap_or(or).to_string();
    let controls = document["PowerControl"].as_array().into_iter().flatten().enumerate().map(|(at, control)| Reading {
        name: name(control, "PowerControl"),
        covers: if at == 0 { Covers::System } else { Covers::Other },
        is_part: at > 0,
        power_uw: watts(&control["PowerConsumedWatts"], "PowerConsumedWatts"),
    });
    let sensor = |key: &str, covers: Covers| {
        document.get(key).map(|sensor| Reading {
            name: name(document, key),
            covers,
            is_part: false,
            power_uw: watts(&sensor["Reading"], key),
        })
    };
    controls.chain(sensor("PowerWatts", Covers::System)).chain(sensor("InputPowerWatts", Covers::Wall)).collect()
}

fn watts(value: &Value, key: &str) -> Result<i64, String> {
    value.as_f64().ok_or_else(|| format!("the BMC gives no number for {key}")).and_then(uw_of_watts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_old_schema() {
        let power = json!({ "Name": "Power", "PowerControl": [
            { "Name": "System Power Control", "PowerConsumedWatts": 344, "PowerCapacityWatts": 800 },
            { "Name": "CPU", "PowerConsumedWatts": 120.5 },
            { "Name": "Memory", "PowerConsumedWatts": null } ],
            "PowerSupplies": [{ "LastPowerOutputWatts": 325 }] });
        let found = readings(&power);
        assert_eq!(found.len(), 3);
        assert_eq!((found[0].covers, found[0].power_uw.clone()), (Covers::System, Ok(344_000_000)));
        assert!(found[1].is_part && found[2].power_uw.is_err());
    }

    #[test]
    fn the_new_schema() {
        let metrics =
            json!({ "Name": "Chassis environment", "PowerWatts": { "Reading": 374.5, "DataSourceUri": "x" } });
        assert_eq!(readings(&metrics)[0].power_uw, Ok(374_500_000));
        let supply = json!({ "Name": "PSU 1", "InputPowerWatts": { "Reading": 187 } });
        assert_eq!((readings(&supply)[0].covers, readings(&supply)[0].name.as_str()), (Covers::Wall, "PSU 1"));
        assert_eq!(readings(&json!({ "Name": "Thermal" })), []);
        assert_eq!(readings(&json!("garbage")), []);
    }

    #[test]
    fn links_stay_on_this_server() {
        let collection = json!({ "Members": [ { "@odata.id": "/redfish/v1/Chassis/1U" }, { "@odata.id": "http://evil/" },
            { "@odata.id": "//evil/redfish/v1" }, { "@odata.id": "/redfish/../admin" }, { "@odata.id": 7 },
            { "@odata.id": "/redfish/v1/x y\r\nHost: z" } ] });
        assert_eq!(members(&collection), ["/redfish/v1/Chassis/1U"]);
    }
}
