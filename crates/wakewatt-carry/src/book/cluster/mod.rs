//! A rollout's state as objects of the cluster, so that every operator sees it and any of them can go on.
//!
//! Who may write is said by a Lease (`lease.rs`): held by one, renewed while it works, over by itself when it dies. The state is
//! a ConfigMap that is replaced whole against its `resourceVersion`: etcd refuses a write to anything but what was read, so two
//! who both believe that they hold the Lease cannot both write. Who takes over writes the state once as it is: from then on the
//! other's version is old. A reply that was lost leaves open whether a write was done; every write therefore bears a number of
//! its own, and who is refused looks whether the number there is his.
//!
//! An object holds 1 MiB. A state above 900 kB lies in parts (`parts.rs`): written first, under names that the old state does
//! not use, then named by the ConfigMap, then the old ones go. The audit log is a row of ConfigMaps, a new one every 64 kB,
//! because a line is appended by writing its object whole; 256 of them, and then no more is written: nothing is lost in silence.

mod audit;
mod lease;
mod parts;

use super::{Book, BookError, id_of};
use crate::audit::{Key, seal};
use crate::kubernetes::{Api, ApiError, Body, Kubectl, PREFIX, Right, is_name};
use crate::node::NodeName;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::{Duration, Instant, SystemTime};

/// For one write, an API server that is restarted meanwhile included; less than a Lease lasts.
const PATIENCE: Duration = Duration::from_secs(90);

/// Where the objects are.
struct Place {
    api: Api,
    namespace: String,
    /// Of the Lease and the ConfigMap; the others have it in front.
    name: String,
}

impl Place {
    fn new(kubectl: Kubectl, namespace: &str, name: &str) -> Result<Place, BookError> {
        if !is_name(namespace) || !is_name(name) {
            let why = "a rollout and its namespace have names of lower-case letters, digits, '-' and '.'".into();
            return Err(BookError::Broken { place: format!("{namespace:?} {name:?}"), why });
        }
        Ok(Place { api: Api::new(kubectl), namespace: namespace.into(), name: name.into() })
    }

    fn path(&self, kind: Kind, name: &str) -> String {
        let (group, plural) = match kind {
            Kind::ConfigMap => ("api/v1", "configmaps"),
            Kind::Lease => ("apis/coordination.k8s.io/v1", "leases"),
        };
        let slash = if name.is_empty() { "" } else { "/" };
        format!("/{group}/namespaces/{}/{plural}{slash}{name}", self.namespace)
    }

    fn ask(
        &self,
        verb: &'static str,
        kind: Kind,
        name: &str,
        body: Body<'_>,
        until: Instant,
    ) -> Result<Value, ApiError> {
        let resource = match kind {
            Kind::ConfigMap => "configmaps",
            Kind::Lease => "leases.coordination.k8s.io",
        };
        let right = Right { verb, resource, namespace: Some(&self.namespace) };
        let path = self.path(kind, if verb == "create" { "" } else { name });
        self.api.ask(right, &path, body, until)
    }

    fn get(&self, kind: Kind, name: &str) -> Result<Option<Value>, BookError> {
        match self.ask("get", kind, name, Body::None, Instant::now() + PATIENCE) {
            Ok(object) => Ok(Some(object)),
            Err(ApiError::Missing(_)) => Ok(None),
            Err(error) => Err(self.broken(&error)),
        }
    }

    /// Creates it, or replaces the version that was read; the object as it is then.
    fn put(&self, kind: Kind, mut object: Value) -> Result<Value, BookError> {
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_string();
        let number = format!("{:016x}", RandomState::new().build_hasher().finish());
        let key = format!("{PREFIX}/write");
        object["metadata"]["annotations"][&key] = json!(number);
        object["metadata"]["labels"] = json!({
            "app.kubernetes.io/name": "wakewatt", "app.kubernetes.io/managed-by": "wakewatt", "app.kubernetes.io/part-of": self.name,
        });
        let verb = if object["metadata"]["resourceVersion"].is_string() { "update" } else { "create" };
        match self.ask(verb, kind, &name, Body::Object(&object), Instant::now() + PATIENCE) {
            Ok(now) => Ok(now),
            // By ourselves, in a try whose answer was lost?
            Err(ApiError::Conflict(_)) => match self.get(kind, &name)? {
                Some(now) if now["metadata"]["annotations"][&key] == number.as_str() => Ok(now),
                _ => Err(BookError::Changed(self.said())),
            },
            Err(ApiError::Missing(_)) if verb == "update" => Err(BookError::Changed(self.said())),
            Err(error) => Err(self.broken(&error)),
        }
    }

    fn remove(&self, name: &str) -> Result<(), BookError> {
        match self.ask("delete", Kind::ConfigMap, name, Body::None, Instant::now() + PATIENCE) {
            Ok(_) | Err(ApiError::Missing(_)) => Ok(()),
            Err(error) => Err(self.broken(&error)),
        }
    }

    fn said(&self) -> String {
        format!("configmap {}/{}", self.namespace, self.name)
    }

    fn broken(&self, error: &ApiError) -> BookError {
        BookError::Broken { place: self.said(), why: error.to_string() }
    }

    fn config_map(&self, name: &str, data: Value) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": self.namespace}, "data": data})
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    ConfigMap,
    Lease,
}

/// The book; held while open.
pub struct ClusterBook {
    place: Place,
    lease: lease::Held,
    /// The ConfigMap as it was read or written last; null where there is none yet.
    head: Value,
    audit: audit::Log,
    key: Option<Key>,
    /// Nothing was written yet: what is there may be another rollout's.
    is_first: bool,
}

impl ClusterBook {
    /// Takes the Lease, or says who has it. `who` is shown to others: a user and a machine. With a key lines of the log are
    /// signed.
    pub fn open(
        kubectl: Kubectl,
        namespace: &str,
        name: &str,
        who: &str,
        key: Option<Key>,
    ) -> Result<ClusterBook, BookError> {
        let place = Place::new(kubectl, namespace, name)?;
        let lease = lease::Held::take(&place, who, SystemTime::now())?;
        let taken = ClusterBook::read_all(&place, lease.has_taken_over);
        match taken {
            Ok((head, audit)) => Ok(ClusterBook { place, lease, head, audit, key, is_first: true }),
            Err(error) => {
                lease.let_go(&place);
                Err(error)
            }
        }
    }

    /// What is in it, held by whomever; nothing is taken.
    pub fn look(kubectl: Kubectl, namespace: &str, name: &str) -> Result<Option<Vec<u8>>, BookError> {
        let place = Place::new(kubectl, namespace, name)?;
        let head = place.get(Kind::ConfigMap, &place.name)?;
        head.map(|head| parts::read(&place, &head)).transpose()
    }

    /// Another rollout's state goes aside under its own name before it is written over; the audit log goes on.
    fn put_aside(&self, state: &[u8]) -> Result<(), BookError> {
        if self.head.is_null() {
            return Ok(());
        }
        let old = parts::read(&self.place, &self.head)?;
        match (id_of(&old), id_of(state)) {
            (Some(id), new) if Some(&id) != new.as_ref() => {
                let fit = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
                let aside = format!("{}-{}", self.place.name, id.chars().map(fit).collect::<String>());
                let found = self.place.get(Kind::ConfigMap, &aside)?.unwrap_or_default();
                parts::write(&self.place, &aside, &found, &old).map(drop)
            }
            _ => Ok(()),
        }
    }

    fn read_all(place: &Place, has_taken_over: bool) -> Result<(Value, audit::Log), BookError> {
        let mut head = place.get(Kind::ConfigMap, &place.name)?.unwrap_or_default();
        if has_taken_over && !head.is_null() {
            // As it is, with a new version: whoever held it before can write no more.
            head = place.put(Kind::ConfigMap, head)?;
        }
        Ok((head, audit::Log::find(place)?))
    }
}

impl Book for ClusterBook {
    fn place(&self) -> String {
        self.place.said()
    }

    fn read(&mut self) -> Result<Option<Vec<u8>>, BookError> {
        if self.head.is_null() { Ok(None) } else { parts::read(&self.place, &self.head).map(Some) }
    }

    fn write(&mut self, state: &[u8]) -> Result<(), BookError> {
        self.lease.renew(&self.place)?;
        if std::mem::take(&mut self.is_first) {
            self.put_aside(state)?;
        }
        self.head = parts::write(&self.place, &self.place.name, &self.head, state)?;
        Ok(())
    }

    fn audit(&mut self, line: &str) -> Result<(), BookError> {
        self.lease.check(&self.place)?;
        let line = seal(line, self.audit.last_line().map(str::as_bytes), self.key.as_ref());
        self.audit.append(&self.place, &line)
    }

    fn annotate(&mut self, node: &NodeName, marks: &BTreeMap<String, String>) -> Result<(), BookError> {
        self.lease.check(&self.place)?;
        let own = |(key, value): (&String, &String)| {
            let key = if key.contains('/') { key.clone() } else { format!("{PREFIX}/{key}") };
            (key, if value.is_empty() { Value::Null } else { json!(value) })
        };
        let annotations: serde_json::Map<String, Value> = marks.iter().map(own).collect();
        let right = Right { verb: "patch", resource: "nodes", namespace: None };
        let patch = json!({"metadata": {"annotations": annotations}});
        let path = format!("/api/v1/nodes/{node}");
        match self.place.api.ask(right, &path, Body::Merge(&patch), Instant::now() + PATIENCE) {
            // A node that is gone has nothing left to be seen at.
            Ok(_) | Err(ApiError::Missing(_)) => Ok(()),
            Err(error) => Err(BookError::Broken { place: format!("node {node}"), why: error.to_string() }),
        }
    }

    fn renew_every_s(&self) -> Option<u64> {
        Some(lease::LASTS_S / 8)
    }

    fn renew(&mut self) -> Result<(), BookError> {
        self.lease.renew(&self.place)
    }
}

impl Drop for ClusterBook {
    fn drop(&mut self) {
        self.lease.let_go(&self.place);
    }
}

#[cfg(test)]
mod tests;
