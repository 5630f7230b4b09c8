//! A BMC that answers now: documents and changes over a session of [`wakewatt_host::bmc`].
//!
//! What a BMC says in an error (`@Message.ExtendedInfo`) is kept twice: ids, on which decisions hang, and words for people,
//! shortened and shown safely.

use crate::link;
use crate::service::{Answer, Change, Document, NoDocument, Service};
use serde_json::Value;
use wakewatt_core::visible;
use wakewatt_host::bmc::{Bmc, BmcAccount, BmcError, BmcReply, Request};

/// Messages of one answer that are kept.
const MAX_MESSAGES: usize = 32;
/// Letters of a BMC's words that are shown.
const MAX_WORDS: usize = 600;

/// A service over the network.
pub struct LiveService {
    bmc: Bmc,
}

impl LiveService {
    /// Logs in.
    pub fn enter(account: &BmcAccount) -> Result<LiveService, BmcError> {
        Ok(LiveService { bmc: Bmc::enter(account)? })
    }

    fn change(
        &mut self,
        method: &str,
        path: &str,
        body: Option<&str>,
        if_match: Option<&str>,
    ) -> Result<Answer, BmcError> {
        let reply = self.bmc.ask(Request { method, path, body, if_match })?;
        let location = reply.location.as_deref().and_then(|text| link::location(self.bmc.base(), text));
        let (message_ids, said) = messages(&parsed(&reply));
        Ok(Answer { status: reply.status, location, message_ids, said })
    }
}

fn parsed(reply: &BmcReply) -> Value {
    serde_json::from_slice(&reply.bytes).unwrap_or_default()
}

/// Ids and words of the messages in an answer.
fn messages(json: &Value) -> (Vec<String>, String) {
    let lists = [&json["error"]["@Message.ExtendedInfo"], &json["@Message.ExtendedInfo"]];
    let all: Vec<&Value> = lists.iter().filter_map(|l| l.as_array()).flatten().take(MAX_MESSAGES).collect();
    let id = |message: &&Value| message["MessageId"].as_str().or(message["MessageID"].as_str()).map(str::to_string);
    let ids = all.iter().filter_map(id).collect();
    let mut words: Vec<&str> = all.iter().filter_map(|message| message["Message"].as_str()).collect();
    if words.is_empty() {
        words.extend(json["error"]["message"].as_str());
    }
    let words: String = words.join(" ").chars().take(MAX_WORDS).collect();
    (ids, visible::line(&words).into_owned())
}

impl Service for LiveService {
    fn get(&mut self, path: &str) -> Result<Document, NoDocument> {
        let mut reply = self.bmc.ask(Request { method: "GET", path, body: None, if_match: None })?;
        // A missing or superfluous slash: followed once, and only within this server.
        if let (301 | 302 | 307 | 308, Some(place)) = (reply.status, &reply.location)
            && let Some(path) = link::location(self.bmc.base(), place)
        {
            reply = self.bmc.ask(Request { method: "GET", path: &path, body: None, if_match: None })?;
        }
        match reply.status {
            200..300 => {}
            404 | 405 | 410 => return Err(NoDocument::Absent(path.into())),
            403 => return Err(NoDocument::Denied(path.into())),
            status => {
                let (_, said) = messages(&parsed(&reply));
                return Err(NoDocument::Status { path: path.into(), status, said });
            }
        }
        let json: Value = serde_json::from_slice(&reply.bytes).map_err(|_| NoDocument::NotJson(path.into()))?;
        let etag = reply.etag.or_else(|| json["@odata.etag"].as_str().map(str::to_string));
        Ok(Document { json, etag })
    }

    fn origin(&self) -> String {
        self.bmc.base().to_string()
    }
}

impl Change for LiveService {
    fn patch(&mut self, path: &str, body: &str, if_match: Option<&str>) -> Result<Answer, BmcError> {
        self.change("PATCH", path, Some(body), if_match)
    }

    fn post(&mut self, path: &str, body: &str) -> Result<Answer, BmcError> {
        self.change("POST", path, Some(body), None)
    }

    fn delete(&mut self, path: &str) -> Result<Answer, BmcError> {
        self.change("DELETE", path, None, None)
    }
}
