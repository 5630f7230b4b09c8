//! One question at a time to a name server: over UDP, and over TCP when the answer was cut (RFC 1035, RFC 7766).
//!
//! Messages are simple-dns's. An answer counts if it comes from the server that was asked (the socket is connected), carries
//! our number and repeats our question (RFC 5452); any other is passed over, and the wait goes on. The number comes from the
//! kernel's generator, the port is a fresh one of the kernel's choice for every question. Aliases are followed eight deep.
//! There are servers that drop or refuse questions for AAAA: where A gave addresses, these count.

use super::config::Config;
use simple_dns::rdata::RData;
use simple_dns::{CLASS, Name, OPCODE, Packet, PacketFlag, QCLASS, QTYPE, Question, RCODE, TYPE};
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

/// No host of ours needs more.
const MAX_ADDRESSES: usize = 32;
const MAX_ALIASES: u32 = 8;

/// What one answer says of a name.
#[derive(Debug, PartialEq, Eq)]
enum Said {
    Addresses(Vec<IpAddr>),
    /// It is another name for this one, of which the answer has no address.
    Alias(String),
    /// The server knows, and there is none.
    None,
    /// Too long for a datagram.
    Cut,
}

/// Every address of a name; none if the servers say that there is none. An error: nobody could say. Once there are IPv4
/// addresses, others are waited for no longer than `patience_for_more`.
pub(super) fn addresses(
    name: &str,
    config: &Config,
    until: Instant,
    patience_for_more: Duration,
) -> Result<Vec<IpAddr>, String> {
    let mut all = of_kind(name, TYPE::A, config, until)?;
    let until = if all.is_empty() { until } else { until.min(Instant::now() + patience_for_more) };
    match of_kind(name, TYPE::AAAA, config, until) {
        Ok(more) => all.extend(more),
        Err(why) if all.is_empty() => return Err(why),
        Err(_) => {}
    }
    all.truncate(MAX_ADDRESSES);
    Ok(all)
}

fn of_kind(name: &str, kind: TYPE, config: &Config, until: Instant) -> Result<Vec<IpAddr>, String> {
    let mut name = name.to_string();
    for _ in 0..MAX_ALIASES {
        match ask_all(&name, kind, config, until)? {
            Said::Addresses(found) => return Ok(found),
            Said::Alias(next) => name = next,
            Said::None | Said::Cut => return Ok(Vec::new()),
        }
    }
    Err(format!("{name} is an alias of an alias, more than {MAX_ALIASES} deep"))
}

fn ask_all(name: &str, kind: TYPE, config: &Config, until: Instant) -> Result<Said, String> {
    let mut why = String::new();
    for _ in 0..config.n_attempts {
        for server in &config.servers {
            let left = until.saturating_duration_since(Instant::now()).min(config.patience);
            if left.is_zero() {
                return Err(if why.is_empty() { "no time was left to ask".into() } else { why });
            }
            match ask(name, kind, *server, config.is_tcp_only, Instant::now() + left) {
                Ok(said) => return Ok(said),
                Err(failed) => why = format!("name server {}: {failed}", server.ip()),
            }
        }
    }
    Err(why)
}

fn ask(name: &str, kind: TYPE, server: SocketAddr, is_tcp: bool, until: Instant) -> Result<Said, String> {
    let asked = Asked { id: random()?, name, kind };
    let question = asked.bytes()?;
    let words = |e: std::io::Error| match e.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => "did not answer in time".to_string(),
        _ => e.to_string(),
    };
    if !is_tcp {
        match by_datagram(&asked, &question, server, until).map_err(words)?? {
            Said::Cut => {}
            said => return Ok(said),
        }
    }
    match by_stream(&asked, &question, server, until).map_err(words)?? {
        Said::Cut => Err("cut its answer over TCP too".into()),
        said => Ok(said),
    }
}

type Answered = std::io::Result<Result<Said, String>>;

#[allow(clippy::disallowed_methods)] // An address, not a name.
fn by_datagram(asked: &Asked<'_>, question: &[u8], server: SocketAddr, until: Instant) -> Answered {
    let any: IpAddr = if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(server)?;
    socket.send(question)?;
    let mut bytes = [0; 4096];
    loop {
        socket.set_read_timeout(Some(left(until)?))?;
        let n = match socket.recv(&mut bytes) {
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            other => other?,
        };
        if let Some(said) = asked.read(&bytes[..n]) {
            return Ok(said);
        }
    }
}

fn by_stream(asked: &Asked<'_>, question: &[u8], server: SocketAddr, until: Instant) -> Answered {
    let mut stream = TcpStream::connect_timeout(&server, left(until)?)?;
    stream.set_write_timeout(Some(left(until)?))?;
    let length = u16::try_from(question.len()).unwrap_or(u16::MAX).to_be_bytes();
    stream.write_all(&[&length, question].concat())?;
    let mut length = [0; 2];
    read_until(&mut stream, &mut length, until)?;
    let mut bytes = vec![0; u16::from_be_bytes(length).into()];
    read_until(&mut stream, &mut bytes, until)?;
    Ok(asked.read(&bytes).unwrap_or_else(|| Err("answered another question".into())))
}

/// As `read_exact`, but a server that sends a byte at a time gets no more time for that.
fn read_until(stream: &mut TcpStream, bytes: &mut [u8], until: Instant) -> std::io::Result<()> {
    let mut n_done = 0;
    while n_done < bytes.len() {
        stream.set_read_timeout(Some(left(until)?))?;
        match stream.read(&mut bytes[n_done..]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(n) => n_done += n,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

fn left(until: Instant) -> std::io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
}

fn random() -> Result<u16, String> {
    let mut bytes = [0; 2];
    let filled = rustls::crypto::ring::default_provider().secure_random.fill(&mut bytes);
    filled.map(|()| u16::from_ne_bytes(bytes)).map_err(|_| "this kernel gives no random numbers".into())
}

struct Asked<'a> {
    id: u16,
    name: &'a str,
    kind: TYPE,
}

impl Asked<'_> {
    fn bytes(&self) -> Result<Vec<u8>, String> {
        let mut packet = Packet::new_query(self.id);
        packet.set_flags(PacketFlag::RECURSION_DESIRED);
        let name = Name::new(self.name).map_err(|e| e.to_string())?;
        packet.questions.push(Question::new(name, QTYPE::TYPE(self.kind), QCLASS::CLASS(CLASS::IN), false));
        packet.build_bytes_vec().map_err(|e| e.to_string())
    }

    /// None: not an answer to this question.
    fn read(&self, bytes: &[u8]) -> Option<Result<Said, String>> {
        // A cut answer may end anywhere, so its head is looked at first.
        use simple_dns::header_buffer as head;
        if head::id(bytes).ok()? != self.id || !head::has_flags(bytes, PacketFlag::RESPONSE).ok()? {
            return None;
        }
        if head::has_flags(bytes, PacketFlag::TRUNCATION).ok()? {
            return Some(Ok(Said::Cut));
        }
        let packet = Packet::parse(bytes).ok()?;
        let is_ours = |q: &Question<'_>| {
            text(&q.qname) == self.name && q.qtype == QTYPE::TYPE(self.kind) && q.qclass == QCLASS::CLASS(CLASS::IN)
        };
        let [question] = packet.questions.as_slice() else { return None };
        if packet.opcode() != OPCODE::StandardQuery || !is_ours(question) {
            return None;
        }
        Some(match packet.rcode() {
            RCODE::NoError => Ok(self.said(&packet)),
            RCODE::NameError => Ok(Said::None),
            other => Err(format!("refused ({other:?})")),
        })
    }

    /// Aliases are followed inside the answer, then its addresses of that name taken.
    fn said(&self, packet: &Packet<'_>) -> Said {
        let mut name = self.name.to_string();
        for _ in 0..MAX_ALIASES {
            let mut found = Vec::new();
            let mut next = None;
            for record in packet.answers.iter().filter(|r| r.class == CLASS::IN && text(&r.name) == name) {
                match (&record.rdata, self.kind) {
                    (RData::A(a), TYPE::A) => found.push(Ipv4Addr::from(a.address).into()),
                    (RData::AAAA(a), TYPE::AAAA) => found.push(Ipv6Addr::from(a.address).into()),
                    (RData::CNAME(alias), _) => next = Some(text(&alias.0)),
                    _ => {}
                }
            }
            match next {
                _ if !found.is_empty() => return Said::Addresses(found),
                // A name as hostile as the server likes: only what we would ask ourselves is asked.
                Some(next) if super::checked(&next).is_ok() => name = next,
                _ if name == self.name => return Said::None,
                _ => break,
            }
        }
        Said::Alias(name)
    }
}

/// In lower case.
fn text(name: &Name<'_>) -> String {
    let labels: Vec<String> =
        name.as_bytes().map(|label| String::from_utf8_lossy(label).to_ascii_lowercase()).collect();
    labels.join(".")
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use simple_dns::ResourceRecord;
    use simple_dns::rdata::{A, AAAA, CNAME};

    /// The answer to a question, with these records.
    pub(in crate::resolve) fn answer(question: &[u8], records: &[(&str, &str)], rcode: RCODE) -> Vec<u8> {
        let asked = Packet::parse(question).unwrap();
        let mut packet = Packet::new_reply(asked.id());
        *packet.rcode_mut() = rcode;
        packet.questions = asked.questions.clone();
        for (name, value) in records {
            let data = match value.parse() {
                Ok(IpAddr::V4(ip)) => RData::A(A::from(ip)),
                Ok(IpAddr::V6(ip)) => RData::AAAA(AAAA::from(ip)),
                Err(_) => RData::CNAME(CNAME(Name::new(value).unwrap())),
            };
            packet.answers.push(ResourceRecord::new(Name::new(name).unwrap(), CLASS::IN, 60, data));
        }
        packet.build_bytes_vec_compressed().unwrap()
    }

    fn asked(name: &str) -> Asked<'_> {
        Asked { id: 7, name, kind: TYPE::A }
    }

    #[test]
    fn aliases_are_followed_inside_an_answer_and_circles_end() {
        let said = |records: &[(&str, &str)]| {
            asked("a.example").read(&answer(&asked("a.example").bytes().unwrap(), records, RCODE::NoError))
        };
        let ip = "192.0.2.1".parse().unwrap();
        assert_eq!(
            said(&[("A.Example", "b.example"), ("b.example", "192.0.2.1")]),
            Some(Ok(Said::Addresses(vec![ip])))
        );
        assert_eq!(said(&[("other.example", "192.0.2.1")]), Some(Ok(Said::None)), "another name's address");
        assert_eq!(said(&[("a.example", "::1")]), Some(Ok(Said::None)), "another kind of address");
        assert_eq!(said(&[("a.example", "b.example")]), Some(Ok(Said::Alias("b.example".into()))));
        let circle = said(&[("a.example", "b.example"), ("b.example", "a.example")]);
        assert!(matches!(circle, Some(Ok(Said::Alias(_)))), "{circle:?}");
    }

    #[test]
    fn an_answer_to_another_question_is_none() {
        let good = answer(&asked("a.example").bytes().unwrap(), &[("a.example", "192.0.2.1")], RCODE::NoError);
        assert!(asked("a.example").read(&good).is_some());
        assert_eq!(Asked { id: 8, ..asked("a.example") }.read(&good), None, "its number");
        assert_eq!(asked("b.example").read(&good), None, "its name");
        assert_eq!(Asked { kind: TYPE::AAAA, ..asked("a.example") }.read(&good), None, "its kind");
        assert_eq!(asked("a.example").read(&asked("a.example").bytes().unwrap()), None, "a question");
        assert_eq!(asked("a.example").read(&[]), None);
    }

    #[test]
    fn no_bytes_make_it_panic_or_take_long() {
        let records = [("a.example", "b.example"), ("b.example", "192.0.2.1"), ("b.example", "192.0.2.2")];
        let good = answer(&asked("a.example").bytes().unwrap(), &records, RCODE::NoError);
        let mut seed = 1u64;
        let mut next = |below: usize| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) as usize % below
        };
        for _ in 0..20_000 {
            let mut bytes = good.clone();
            for _ in 0..=next(4) {
                let at = 2 + next(bytes.len() - 2);
                bytes[at] = [0, 1, 0x0c, 0x3f, 0xc0, 0xff, next(256).to_le_bytes()[0]][next(7)];
            }
            bytes.truncate(2 + next(bytes.len()));
            let _ = asked("a.example").read(&bytes);
        }
    }
}
