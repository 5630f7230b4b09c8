//! Against a name server on loopback that answers, cuts, lies, refuses and is silent.

use super::dns::tests::answer;
use super::*;
use simple_dns::{Packet, QTYPE, RCODE, TYPE};
use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::sync::{Arc, Mutex};

/// What a server does with a question: (over TCP?, name, kind, question) to the datagrams or bytes to send.
type Does = fn(bool, &str, TYPE, &[u8]) -> Vec<Vec<u8>>;

struct Served {
    resolver: Resolver,
    /// "udp A name", in the order of asking.
    log: Arc<Mutex<Vec<String>>>,
    _folder: tempfile::TempDir,
}

impl Served {
    fn by(does: Does, options: &str, hosts: &str) -> Served {
        let (udp, tcp, port) = (0..100)
            .find_map(|_| {
                let udp = UdpSocket::bind("127.0.0.1:0").ok()?;
                let port = udp.local_addr().ok()?.port();
                Some((udp, TcpListener::bind(("127.0.0.1", port)).ok()?, port))
            })
            .unwrap();
        let log = Arc::new(Mutex::new(Vec::new()));
        let noted = |log: &Mutex<Vec<String>>, over: &str, question: &[u8]| {
            let packet = Packet::parse(question).unwrap();
            let q = &packet.questions[0];
            let QTYPE::TYPE(kind) = q.qtype else { panic!("{:?}", q.qtype) };
            log.lock().unwrap().push(format!("{over} {kind:?} {}", q.qname));
            (q.qname.to_string(), kind)
        };
        let (of_udp, of_tcp) = (Arc::clone(&log), Arc::clone(&log));
        std::thread::spawn(move || {
            let mut bytes = [0; 512];
            while let Ok((n, from)) = udp.recv_from(&mut bytes) {
                let (name, kind) = noted(&of_udp, "udp", &bytes[..n]);
                for datagram in does(false, &name, kind, &bytes[..n]) {
                    udp.send_to(&datagram, from).unwrap();
                }
            }
        });
        std::thread::spawn(move || {
            for mut stream in tcp.incoming().flatten() {
                let mut length = [0; 2];
                stream.read_exact(&mut length).unwrap();
                let mut question = vec![0; u16::from_be_bytes(length).into()];
                stream.read_exact(&mut question).unwrap();
                let (name, kind) = noted(&of_tcp, "tcp", &question);
                for message in does(true, &name, kind, &question) {
                    let length = u16::try_from(message.len()).unwrap().to_be_bytes();
                    stream.write_all(&[&length[..], &message].concat()).unwrap();
                }
            }
        });
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("hosts"), hosts).unwrap();
        std::fs::write(folder.path().join("resolv.conf"), format!("nameserver 127.0.0.1\n{options}\n")).unwrap();
        let resolver = Resolver {
            hosts: folder.path().join("hosts"),
            config: folder.path().join("resolv.conf"),
            port,
            deadline: Duration::from_secs(60),
            patience_for_more: Duration::from_secs(60),
        };
        Served { resolver, log, _folder: folder }
    }

    fn find(&self, host: &str) -> Result<Vec<String>, ResolveError> {
        self.resolver.addresses(host, 80).map(|all| all.iter().map(ToString::to_string).collect())
    }

    fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }
}

/// 127.0.0.1 and ::1 for `db.example`; nothing else exists.
fn honest(_: bool, name: &str, kind: TYPE, question: &[u8]) -> Vec<Vec<u8>> {
    let value = if kind == TYPE::A { "127.0.0.2" } else { "::1" };
    vec![match name {
        "db.example" => answer(question, &[(name, value)], RCODE::NoError),
        "only4.example" if kind == TYPE::A => answer(question, &[(name, value)], RCODE::NoError),
        "only4.example" => answer(question, &[], RCODE::NoError),
        _ => answer(question, &[], RCODE::NameError),
    }]
}

#[test]
fn numbers_localhost_and_hosts_ask_nobody() {
    let served =
        Served::by(honest, "", "# own\n192.0.2.9 Box box.local # the box\n2001:db8::9 box\n10.0.0.1 localhost\n");
    for (host, found) in [
        ("192.0.2.1", vec!["192.0.2.1:80"]),
        ("::1", vec!["[::1]:80"]),
        ("[2001:db8::1]", vec!["[2001:db8::1]:80"]),
        ("fe80::1%1", vec!["[fe80::1%1]:80"]),
        ("fe80::1%lo", vec!["[fe80::1%1]:80"]),
        ("localhost", vec!["127.0.0.1:80", "[::1]:80"]),
        ("a.LocalHost.", vec!["127.0.0.1:80", "[::1]:80"]),
        ("box.local", vec!["192.0.2.9:80"]),
    ] {
        assert_eq!(served.find(host).unwrap(), found, "{host}");
    }
    let mut both = served.find("BOX").unwrap();
    both.sort();
    assert_eq!(both, ["192.0.2.9:80", "[2001:db8::9]:80"]);
    assert!(served.log().is_empty(), "{:?}", served.log());
}

#[test]
fn a_name_is_asked_for_below_each_search_domain() {
    let served = Served::by(honest, "search no.example example", "");
    let mut found = served.find("DB").unwrap();
    found.sort();
    assert_eq!(found, ["127.0.0.2:80", "[::1]:80"]);
    let names: Vec<String> = served.log();
    assert_eq!(names, ["udp A db.no.example", "udp AAAA db.no.example", "udp A db.example", "udp AAAA db.example"]);
    assert_eq!(served.find("only4.example").unwrap(), ["127.0.0.2:80"]);
    let why = served.find("nosuch").unwrap_err();
    assert!(matches!(why, ResolveError::Unknown { .. }), "{why}");
    assert!(why.to_string().contains("127.0.0.1") && why.to_string().contains("resolv.conf"), "{why}");
    assert!(matches!(served.find("db.example.no."), Err(ResolveError::Unknown { .. })));
}

#[test]
fn an_answer_that_was_cut_is_asked_for_over_tcp() {
    let does: Does = |is_tcp, name, kind, question| {
        let mut message = honest(is_tcp, name, kind, question).remove(0);
        if !is_tcp {
            message[2] |= 2; // TC
            message.truncate(14); // in the middle of the question
        }
        vec![message]
    };
    let served = Served::by(does, "", "");
    assert_eq!(served.find("db.example").unwrap().len(), 2);
    let over: Vec<String> = served.log().iter().map(|l| l[..3].to_string()).collect();
    assert_eq!(over, ["udp", "tcp", "udp", "tcp"]);
    let only_tcp = Served::by(does, "options use-vc", "");
    assert_eq!(only_tcp.find("db.example").unwrap().len(), 2);
    assert!(only_tcp.log().iter().all(|l| l.starts_with("tcp")));
}

#[test]
fn forged_answers_are_passed_over() {
    let does: Does = |is_tcp, name, kind, question| {
        let good = honest(is_tcp, name, kind, question).remove(0);
        let evil = |spoil: fn(&mut Vec<u8>)| {
            let mut forged =
                answer(question, &[(name, if kind == TYPE::A { "203.0.113.6" } else { "::6" })], RCODE::NoError);
            spoil(&mut forged);
            forged
        };
        // Another number, another question, no answer at all, garbage; then the right one.
        vec![evil(|m| m[0] ^= 1), evil(|m| m[13] ^= 1), evil(|m| m[2] &= 0x7f), vec![0; 3], good]
    };
    let mut found = Served::by(does, "", "").find("db.example").unwrap();
    found.sort();
    assert_eq!(found, ["127.0.0.2:80", "[::1]:80"]);
}

#[test]
fn a_server_that_fails_ends_the_search_and_says_so() {
    let refuses: Does = |_, _, _, question| vec![answer(question, &[], RCODE::ServerFailure)];
    let served = Served::by(refuses, "search a.example b.example\noptions attempts:2", "");
    let why = served.find("db").unwrap_err();
    assert!(matches!(&why, ResolveError::NoAnswer { why, .. } if why.contains("ServerFailure")), "{why}");
    assert_eq!(served.log(), ["udp A db.a.example", "udp A db.a.example"], "twice, and no other name");

    let silent: Does = |_, _, _, _| Vec::new();
    let served = Served::by(silent, "options timeout:1 attempts:1", "");
    let why = served.find("db.example").unwrap_err();
    assert!(matches!(&why, ResolveError::NoAnswer { why, .. } if why.contains("in time")), "{why}");

    let mut hurried = Served::by(silent, "options timeout:30 attempts:5", "");
    hurried.resolver.deadline = Duration::from_millis(200);
    let start = Instant::now();
    assert!(matches!(hurried.find("db.example"), Err(ResolveError::NoAnswer { .. })));
    assert!(start.elapsed() < Duration::from_secs(25), "{:?}", start.elapsed());
}

#[test]
fn a_question_for_more_that_fails_or_is_dropped_takes_nothing_away() {
    let refuses: Does = |is_tcp, name, kind, question| match kind {
        TYPE::A => honest(is_tcp, name, kind, question),
        _ => vec![answer(question, &[], RCODE::ServerFailure)],
    };
    let served = Served::by(refuses, "", "");
    assert_eq!(served.find("db.example").unwrap(), ["127.0.0.2:80"]);
    let drops: Does = |is_tcp, name, kind, question| match kind {
        TYPE::A => honest(is_tcp, name, kind, question),
        _ => Vec::new(),
    };
    // Waiting for it as for the first would use up the deadline.
    let mut served = Served::by(drops, "options timeout:30 attempts:5", "");
    served.resolver.patience_for_more = Duration::from_millis(100);
    let start = Instant::now();
    assert_eq!(served.find("db.example").unwrap(), ["127.0.0.2:80"]);
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
}

#[test]
fn aliases_across_answers_end() {
    let next: Does = |_, name, _, question| {
        let n: u32 = name.trim_start_matches('n').trim_end_matches(".example").parse().unwrap_or(0);
        vec![answer(question, &[(name, &format!("n{}.example", n + 1))], RCODE::NoError)]
    };
    let served = Served::by(next, "", "");
    let why = served.find("n0.example").unwrap_err();
    assert!(matches!(&why, ResolveError::NoAnswer { why, .. } if why.contains("alias")), "{why}");
    assert!(served.log().len() <= 8, "{:?}", served.log());
}

#[test]
fn what_is_no_name_is_not_asked_for() {
    let served = Served::by(honest, "", "");
    let long = ["a".repeat(63), "b".repeat(63), "c".repeat(63), "d".repeat(63)].join(".");
    for host in
        ["", ".", "a..b", "a b", "a/b", "bücher.example", "127.1", "0x7f.1.2.300", "300.1.1.1", &long, "::g", "[a"]
    {
        assert!(matches!(served.find(host), Err(ResolveError::NoName { .. })), "{host}: {:?}", served.find(host));
    }
    assert!(matches!(served.find("fe80::1%nosuch0"), Err(ResolveError::NoInterface { .. })));
    for text in ["host", "host:", "host:x", "host:70000", "::1", "1:2:3"] {
        assert!(matches!(host_and_port(text), Err(ResolveError::NoPort { .. })), "{text}");
    }
    assert_eq!(host_and_port("[::1]:7").unwrap(), ["[::1]:7".parse().unwrap()]);
    assert_eq!(host_and_port("localhost:7").unwrap()[0], "127.0.0.1:7".parse().unwrap());
    assert!(served.log().is_empty());
}
