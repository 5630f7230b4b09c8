//! `wakewatt respond`: the far end of `measure network`. It answers requests of its own format with replies of the same
//! size, and nothing else; by default only on loopback. With `--icmp` it answers nothing: the kernel answers pings, and
//! this watches how.

use crate::cli::RespondArgs;
use crate::exit::{Code, Failure};
use crate::icmp_text::answers_text;
use crate::interrupt::Interrupt;
use crate::output;
use anyhow::Result;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::Duration;
use wakewatt_host::live::Live;
use wakewatt_lab::bench::{self, RespondSpec};

/// What must be known of an address that is every address of this machine.
fn reach(address: SocketAddr) -> Option<&'static str> {
    address.ip().is_unspecified().then_some(
        "note: that is every address of this machine; whoever reaches one is answered, without asking who it is. \
         Name the address that the requester uses: --listen ADDRESS:PORT",
    )
}

pub fn run(args: &RespondArgs) -> Result<Code> {
    let interrupt = Interrupt::listen()?;
    if let Some(ns) = args.for_ns {
        let interrupt = interrupt.clone();
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_nanos(ns));
            interrupt.flag().store(true, Ordering::Relaxed);
        });
    }
    if args.icmp {
        return pings(args.json, &interrupt);
    }
    let spec = RespondSpec { bind: args.listen, ..RespondSpec::loopback(args.cpu) };
    bench::respond(&spec, interrupt.flag(), |responder| {
        let address = responder.address();
        output::remark(&format!("answering on {address} (UDP and TCP) until interrupted"));
        if let Some(word) = reach(address) {
            output::remark(word);
        }
    })
    .map_err(|e| Failure::error(Code::CouldNotMeasure, e.to_string()))?;
    Ok(Code::Fine)
}

/// Watches until interrupted or the time is over, then prints.
fn pings(is_json: bool, interrupt: &Interrupt) -> Result<Code> {
    let answers = bench::observe(interrupt.flag(), &Live::this_machine(), || {
        output::remark("watching the pings this network namespace answers, until interrupted");
    })
    .map_err(|e| Failure::error(Code::CouldNotMeasure, e.to_string()))?;
    if is_json {
        output::print(&output::json("respond", &answers)?)?;
    } else {
        output::print(&answers_text(&answers, output::width()))?;
    }
    Ok(Code::Fine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_is_told_of_and_one_is_not() {
        let is_told = |address: &str| reach(address.parse().unwrap()).is_some();
        assert!(is_told("0.0.0.0:7") && is_told("[::]:7"));
        assert!(!is_told("127.0.0.1:7") && !is_told("192.0.2.1:7") && !is_told("[::1]:7"));
    }
}
