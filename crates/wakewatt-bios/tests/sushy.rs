//! The flow against an emulator that others wrote: sushy-tools with libvirt's test driver (`pip install sushy-tools`, Debian's
//! python3-libvirt). It applies at once, checks nothing, has no tags and no apply times, and its registry's ids do not match.
#![allow(clippy::unwrap_used)]

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use wakewatt_bios::apply::{Order, apply};
use wakewatt_bios::journal::Journal;
use wakewatt_bios::live::LiveService;
use wakewatt_bios::plan::plan;
use wakewatt_bios::undo::undo;
use wakewatt_bios::verify::{Hold, verify};
use wakewatt_bios::walk::machine;
use wakewatt_bios::wish::Wish;
use wakewatt_host::bmc::BmcAccount;
use wakewatt_testing::{Lacks, skipped};

const NAME: &str = "a_bios_of_sushy_goes_there_and_back";
const PROGRAM: &str = "sushy-emulator";

/// Ends it whatever happens.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(at: SocketAddr) -> Option<Running> {
    let port = at.port().to_string();
    let args = ["--interface", "127.0.0.1", "--port", &port, "--libvirt-uri", "test:///default"];
    let child =
        Command::new(PROGRAM).args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    child.ok().map(Running)
}

#[test]
fn a_bios_of_sushy_goes_there_and_back() {
    let at = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let Some(mut running) = start(at) else {
        return skipped(NAME, Lacks::Program(PROGRAM), "pip install sushy-tools");
    };
    let began = Instant::now();
    while TcpStream::connect_timeout(&at, Duration::from_secs(1)).is_err() {
        if began.elapsed() > Duration::from_secs(30) || running.0.try_wait().unwrap().is_some() {
            return skipped(NAME, Lacks::Here, "sushy-emulator does not run here (it needs python3-libvirt)");
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    let account = BmcAccount { url: format!("http://{at}"), ..BmcAccount::default() };
    let mut service = LiveService::enter(&account).unwrap();
    let found = machine(&mut service, None).unwrap();
    let bios = found.bios.as_ref().unwrap();
    assert!(bios.registry.is_ok(), "found although its ids do not match: {:?}", bios.registry);
    // Its registry calls QuietBoot a Boolean, and its BIOS writes text.
    let wishes = [Wish::parse("bios.turbo=off").unwrap(), Wish::parse("attr:QuietBoot=false").unwrap()];
    let plan = plan(&found, bios, &wishes);
    assert!(plan.refused.is_empty() && plan.needs_reboot, "{plan:?}");
    let folder = tempfile::tempdir().unwrap();
    let order = Order {
        journals: folder.path(),
        wishes: &[],
        made_at: "now",
        is_keeping_going: false,
        is_unvalidated_allowed: false,
        is_waiting_allowed: false,
        reboot: None,
        pause: Duration::from_millis(1),
    };
    let done = apply(&mut service, &found, bios, &plan, order).unwrap();
    assert_eq!((done.staged.is_empty(), done.status), (false, Some(204)));
    let now = machine(&mut service, None).unwrap();
    let journal = Journal::all(folder.path()).0.remove(0);
    let verified = verify(&now, now.bios.as_ref().unwrap(), Some(&journal), None);
    assert!(verified.held.iter().all(|held| held.hold == Hold::Holds), "it applies at once: {:?}", verified.held);
    let mut journal = journal;
    let back = undo(&mut service, &mut journal, false, Duration::from_millis(1)).unwrap();
    assert!(back.is_complete, "{back:?}");
    let after = machine(&mut service, None).unwrap().bios.unwrap();
    assert_eq!(after.current, bios.current);
}
