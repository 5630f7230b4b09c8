//! What clients ask for: pages by weight, from a TOML file, for wakewatt's own shop (`shop.toml`) and for a user's.
//!
//! ```toml
//! session_pages = 12             # mean length of a session; then {session} is a new number
//!
//! [[page]]
//! name = "search"                # in tables; required, as are path and weight
//! path = "/search?q={word:lamp|chair}"
//! weight = 15                    # share among the pages that are possible now
//!
//! [[page]]
//! name = "buy"
//! method = "POST"                # GET when not given
//! path = "/cart/{session}/checkout"
//! body = '{"product":{popular:1-5000},"n":1}'
//! content_type = "application/json"
//! after = "search"               # possible only once that page was answered in this session
//! ends_session = true
//! weight = 2
//! ```
//!
//! In path and body: `{number:1-500}` is drawn evenly, `{popular:1-500}` skewed (half of the draws from the first eighth),
//! `{word:a|b}` one of them, `{session}` the session's number, `{client}` the client's. Other braces stay as they are, so
//! that JSON needs no escapes. Unknown keys are refused.

use super::template::Template;
use hyper::Method;
use hyper::body::Bytes;
use serde::Deserialize;
use wakewatt_core::stats::random::Random;

/// The mix of wakewatt's own shop; `PRODUCTS` stands for their number.
pub const OWN: &str = include_str!("shop.toml");

/// More would not be a mix any more.
const MOST_PAGES: usize = 64;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default = "twelve")]
    session_pages: f64,
    page: Vec<Written>,
}

fn twelve() -> f64 {
    12.0
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: String,
    #[serde(default = "get")]
    method: String,
    path: String,
    weight: f64,
    #[serde(default)]
    body: String,
    content_type: Option<String>,
    after: Option<String>,
    #[serde(default)]
    ends_session: bool,
}

fn get() -> String {
    "GET".into()
}

/// A mix, ready to draw from.
#[derive(Clone, Debug)]
pub struct Mix {
    session_pages: f64,
    pages: Vec<Page>,
}

#[derive(Clone, Debug)]
struct Page {
    name: String,
    method: Method,
    path: Template,
    weight: f64,
    body: Template,
    content_type: Option<String>,
    after: Option<usize>,
    ends_session: bool,
}

/// One request, ready to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Index of its page.
    pub page: usize,
    /// GET and so on.
    pub method: Method,
    /// Path and query.
    pub path: String,
    /// What is sent along; often nothing.
    pub body: Bytes,
    /// Its type.
    pub content_type: Option<String>,
}

/// Where a client is in its session.
#[derive(Clone, Debug, Default)]
pub struct ShopSession {
    /// Its number.
    pub number: u64,
    /// Pages answered in it, a bit each.
    answered: u64,
    is_over: bool,
}

impl Mix {
    /// Reads a mix; an error says what is wrong and where.
    pub fn parse(text: &str) -> Result<Mix, String> {
        let file: File = toml::from_str(text).map_err(|e| e.to_string())?;
        if file.page.is_empty() || file.page.len() > MOST_PAGES {
            return Err(format!("{} pages; give 1 to {MOST_PAGES} as [[page]]", file.page.len()));
        }
        if !(1.0..=1e6).contains(&file.session_pages) {
            return Err("session_pages: give 1 or more".into());
        }
        let names: Vec<&str> = file.page.iter().map(|p| p.name.as_str()).collect();
        let pages: Vec<Page> = file.page.iter().map(|p| page(p, &names)).collect::<Result<_, _>>()?;
        if !pages.iter().any(|p| p.after.is_none()) {
            return Err("every page is `after` another: none can be the first of a session".into());
        }
        Ok(Mix { session_pages: file.session_pages, pages })
    }

    /// The own shop's mix.
    pub fn own(n_products: u32) -> Mix {
        Mix::parse(&OWN.replace("PRODUCTS", &n_products.max(1).to_string()))
            .unwrap_or_else(|_| unreachable!("shop.toml is tested"))
    }

    /// Only this path, again and again.
    pub fn one_page() -> Mix {
        let page = "[[page]]\nname = \"page\"\npath = \"\"\nweight = 1";
        Mix::parse(page).unwrap_or_else(|_| unreachable!("the text is static"))
    }

    /// Names, in the order of the file.
    pub fn names(&self) -> Vec<String> {
        self.pages.iter().map(|p| p.name.clone()).collect()
    }

    /// Draws the next request; begins a new session (with the number `next` gives) where the last one is over.
    pub fn draw(
        &self,
        random: &mut Random,
        session: &mut ShopSession,
        client: u32,
        next: impl FnOnce() -> u64,
    ) -> Request {
        if session.is_over || session.number == 0 {
            *session = ShopSession { number: next(), ..ShopSession::default() };
        }
        let is_possible = |p: &Page| p.after.is_none_or(|after| session.answered >> after & 1 == 1);
        let possible = || self.pages.iter().enumerate().filter(|(_, p)| is_possible(p));
        let mut left = possible().map(|(_, p)| p.weight).sum::<f64>() * random.unit();
        let mut drawn = 0;
        for (at, page) in possible() {
            drawn = at;
            left -= page.weight;
            if left < 0.0 {
                break;
            }
        }
        let page = &self.pages[drawn];
        let mut fill = |template: &Template| template.fill(random, session.number, client);
        let (path, body) = (fill(&page.path), fill(&page.body));
        Request {
            page: drawn,
            method: page.method.clone(),
            path,
            body: Bytes::from(body),
            content_type: page.content_type.clone(),
        }
    }

    /// Notes that it was answered, and whether the session is over: by its page, or because people leave.
    pub fn note(&self, random: &mut Random, session: &mut ShopSession, page: usize, is_answered: bool) {
        let leaves = random.unit() * self.session_pages < 1.0;
        if let Some(answered) = self.pages.get(page).filter(|_| is_answered) {
            session.answered |= 1 << page;
            session.is_over = answered.ends_session;
        }
        session.is_over |= leaves;
    }
}

fn page(written: &Written, names: &[&str]) -> Result<Page, String> {
    let fail = |why: &str| format!("page \"{}\": {why}", written.name.escape_default());
    let method = Method::from_bytes(written.method.as_bytes()).map_err(|_| fail("method: use GET, POST …"))?;
    if !(written.weight > 0.0 && written.weight.is_finite()) {
        return Err(fail("weight: give more than 0"));
    }
    if !(written.path.is_empty() || written.path.starts_with('/')) || written.path.contains(char::is_whitespace) {
        return Err(fail("path: begin with / and encode spaces as %20"));
    }
    let after = match &written.after {
        Some(name) => Some(names.iter().position(|n| n == name).ok_or_else(|| fail("after: there is no such page"))?),
        None => None,
    };
    Ok(Page {
        name: written.name.clone(),
        method,
        path: Template::parse(&written.path).map_err(|e| fail(&e))?,
        weight: written.weight,
        body: Template::parse(&written.body).map_err(|e| fail(&e))?,
        content_type: written.content_type.clone(),
        after,
        ends_session: written.ends_session,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(mix: &Mix, n: usize) -> Vec<Request> {
        let (mut random, mut session, mut n_sessions) = (Random::new(5), ShopSession::default(), 0);
        (0..n)
            .map(|_| {
                let next = || {
                    n_sessions += 1;
                    n_sessions
                };
                let request = mix.draw(&mut random, &mut session, 3, next);
                mix.note(&mut random, &mut session, request.page, true);
                request
            })
            .collect()
    }

    #[test]
    fn the_own_mix_is_what_its_comment_says() {
        let mix = Mix::own(500);
        let all = drawn(&mix, 50_000);
        let expected = [
            ("catalogue", 25),
            ("search", 15),
            ("product", 34),
            ("add", 17),
            ("cart", 3),
            ("remove", 1),
            ("checkout", 5),
        ];
        for (at, (name, per_cent)) in expected.iter().enumerate() {
            let share = all.iter().filter(|r| r.page == at).count() as f64 / 500.0;
            assert_eq!(mix.names()[at], *name);
            assert!((share - f64::from(*per_cent)).abs() < 1.5, "{name}: {share}");
        }
        let ids: Vec<u64> =
            all.iter().filter_map(|r| r.path.strip_prefix("/product/")).map(|id| id.parse().unwrap()).collect();
        assert!(ids.iter().all(|id| (1..=500).contains(id)));
        let popular = ids.iter().filter(|id| **id <= 500 / 8).count() as f64 / ids.len() as f64;
        assert!((popular - 0.5).abs() < 0.03, "{popular}");
        let add = all.iter().find(|r| r.page == 3).unwrap();
        let body: serde_json::Value = serde_json::from_slice(&add.body).unwrap();
        assert!(body["product"].as_u64().is_some_and(|id| (1..=500).contains(&id)));
    }

    #[test]
    fn a_page_waits_for_the_one_it_comes_after() {
        let mut has_added = std::collections::BTreeSet::new();
        for request in drawn(&Mix::own(10), 5_000) {
            let session = request.path.strip_prefix("/cart/").map(|p| p.split('/').next().unwrap().to_string());
            if let Some(session) = session {
                let is_known = has_added.contains(&session);
                assert!(request.page == 3 || is_known, "{request:?}");
                has_added.insert(session.clone());
                if request.page == 6 {
                    has_added.remove(&session);
                }
            }
        }
    }

    #[test]
    fn wrong_files_say_where() {
        let with = |page: &str| Mix::parse(&format!("[[page]]\nname = \"a\"\n{page}")).unwrap_err();
        for (page, says) in [
            ("path = \"/\"\nweight = 0", "weight"),
            ("path = \"x\"\nweight = 1", "path"),
            ("path = \"/a b\"\nweight = 1", "path"),
            ("path = \"/\"\nweight = 1\nafter = \"b\"", "after"),
            ("path = \"/\"\nweight = 1\nafter = \"a\"", "none can be the first"),
            ("path = \"/{number:9-1}\"\nweight = 1", "range"),
            ("path = \"/\"\nweight = 1\nmethod = \"A B\"", "method"),
            ("path = \"/\"\nweight = 1\nwieght = 1", "wieght"),
        ] {
            assert!(with(page).contains(says), "{page}: {}", with(page));
        }
        assert!(Mix::parse("").is_err() && Mix::parse("page = []").is_err());
        assert_eq!(drawn(&Mix::one_page(), 2)[1].path, "");
    }
}
