//! The server over real sockets: every page, and what it answers to requests that make no sense.

use super::{NAME, ServerDescription, ServerSpec, Storage, catalogue, serve};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::channel;
use tokio::sync::oneshot;

/// A shop in this process, which closes when dropped.
pub(crate) struct Open {
    pub(crate) at: SocketAddr,
    end: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Open {
    pub(crate) fn shop() -> Open {
        let folder = tempfile::tempdir().unwrap();
        let spec = ServerSpec {
            listen: "127.0.0.1:0".parse().unwrap(),
            n_products: 100,
            seed: 1,
            n_workers: 1,
            n_connections: 2,
            n_clients: 10,
            storage: Storage::Sqlite { folder: folder.path().to_path_buf(), is_durable: false },
        };
        let ((say, said), (end, ended)) = (channel(), oneshot::channel());
        let thread = std::thread::spawn(move || {
            serve(&spec, |about| say.send(about.listen.unwrap()).unwrap(), ended).unwrap();
            drop(folder);
        });
        Open { at: said.recv().unwrap(), end: Some(end), thread: Some(thread) }
    }

    /// Status and body.
    fn ask(&self, method: &str, path: &str, body: &str) -> (u16, serde_json::Value) {
        let mut stream = TcpStream::connect_timeout(&self.at, std::time::Duration::from_secs(60)).unwrap();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap_or(serde_json::Value::Null))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        drop(self.end.take());
        self.thread.take().map(std::thread::JoinHandle::join);
    }
}

#[test]
fn every_page_answers() {
    let shop = Open::shop();
    let (status, about) = shop.ask("GET", "/about", "");
    let about: ServerDescription = serde_json::from_value(about).unwrap();
    assert_eq!((status, about.shop.as_str(), about.n_products), (200, NAME, 100));
    assert!(about.is_whole && about.cpu_ns.unwrap() >= about.system_ns.unwrap() && about.storage.contains("SQLite"));
    let (status, list) = shop.ask("GET", "/catalogue/3?page=0", "");
    assert_eq!((status, list["products"].as_array().unwrap().len()), (200, 5));
    let (status, product) = shop.ask("GET", "/product/7", "");
    assert_eq!((status, product["stock"].as_i64()), (200, Some(catalogue::STOCK)));
    let word = product["name"].as_str().unwrap().split(' ').next().unwrap();
    let (status, found) = shop.ask("GET", &format!("/search?q={word}"), "");
    assert!(status == 200 && !found["products"].as_array().unwrap().is_empty());
    let (status, cart) = shop.ask("POST", "/cart/1/add", r#"{"product":7,"n":2}"#);
    assert_eq!((status, cart["lines"][0]["n"].as_i64()), (200, Some(2)));
    shop.ask("POST", "/cart/1/add", r#"{"product":8}"#);
    let (status, cart) = shop.ask("POST", "/cart/1/remove", r#"{"product":8}"#);
    assert_eq!((status, cart["lines"].as_array().unwrap().len()), (200, 1));
    let (status, order) = shop.ask("POST", "/cart/1/checkout", "");
    assert_eq!((status, order["ordered"]["order"].as_i64()), (201, Some(1)));
    assert_eq!(shop.ask("GET", "/cart/1", "").1["lines"], serde_json::json!([]));
}

#[test]
fn what_makes_no_sense_is_refused_and_the_shop_stays_open() {
    let shop = Open::shop();
    for (method, path, body, status) in [
        ("GET", "/product/101", "", 404),
        ("GET", "/product/-1", "", 404),
        ("GET", "/product/x", "", 400),
        ("GET", "/product/99999999999999999999", "", 400),
        ("GET", "/catalogue/20", "", 404),
        ("GET", "/catalogue/1?page=4294967295", "", 200),
        ("GET", "/catalogue/1?page=-1", "", 400),
        ("GET", "/search?q=%22%29OR%28", "", 200),
        ("GET", "/search", "", 400),
        ("GET", "/nowhere", "", 404),
        ("POST", "/product/1", "", 405),
        ("POST", "/cart/1/add", r#"{"product":101}"#, 404),
        ("POST", "/cart/1/add", r#"{"product":1,"n":0}"#, 400),
        ("POST", "/cart/1/add", r#"{"product":1,"n":-5}"#, 400),
        ("POST", "/cart/1/add", "nonsense", 400),
        ("POST", "/cart/1/checkout", "", 409),
    ] {
        assert_eq!(shop.ask(method, path, body).0, status, "{method} {path} {body}");
    }
    assert_eq!(shop.ask("POST", "/cart/1/add", &"x".repeat(5000)).0, 413);
    assert_eq!(shop.ask("GET", "/about", "").0, 200);
}
