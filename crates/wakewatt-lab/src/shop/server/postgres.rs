//! The shop's data in a PostgreSQL server, named by its connection string.
//!
//! Everything lies in a schema of its own, [`SCHEMA`], dropped and made again at each start and dropped at the end. A schema
//! of that name without our comment is somebody else's, and is refused. An advisory lock keeps two shops out of one
//! database. How it is reached, and whether TLS seals it, is [`database`]'s.
//!
//! Not durable means `synchronous_commit = off` for our own connections; the server's settings are its owner's.

use super::catalogue::{self, STOCK};
use super::database::{self, Tls};
use super::store::{self, Checkout, Line, PER_PAGE, Product, Short, Store, StoreError, total_cents};
use postgres::types::ToSql;
use postgres::{Client, Row, Statement};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Where the tables lie.
pub const SCHEMA: &str = "wakewatt_shop";
const COMMENT: &str = "made by wakewatt load shop, which drops it";
/// Any number that nobody else uses: "wakewatt" in ASCII.
const LOCK: i64 = 0x7761_6b65_7761_7474;

const SEARCH: &str = "SELECT id, name, price_cents, substr(description, 1, 120) FROM products
    WHERE to_tsvector('simple', name || ' ' || description) @@ plainto_tsquery('simple', $1) LIMIT $2";
const SEARCH_INDEX: &str =
    "CREATE INDEX by_word ON products USING gin (to_tsvector('simple', name || ' ' || description))";

/// One connection.
pub struct Postgres {
    client: Client,
    statements: BTreeMap<&'static str, Statement>,
}

impl From<postgres::Error> for StoreError {
    fn from(error: postgres::Error) -> StoreError {
        // The server's own words where there are any, else also what lies behind ours (a certificate that is not believed);
        // the connection string is in neither.
        let behind = || {
            let causes = std::iter::successors(std::error::Error::source(&error), |e| e.source());
            causes.fold(error.to_string(), |said, cause| format!("{said}: {cause}"))
        };
        StoreError(error.as_db_error().map_or_else(behind, |db| db.message().to_string()))
    }
}

/// Makes and fills the schema, and opens so many connections. The first holds the lock, and so must live longest.
pub fn open(
    (url, password): (&str, Option<&str>),
    ca: Option<&Path>,
    is_durable: bool,
    n_products: u32,
    seed: u64,
    n_connections: usize,
) -> Result<Vec<Postgres>, StoreError> {
    let mut config = database::config(url, password).map_err(|e| StoreError(e.to_string()))?;
    config.connect_timeout(Duration::from_secs(10)).application_name("wakewatt load shop");
    super::postgres_address::settle(&mut config)?;
    let tls = Tls::new(ca).map_err(StoreError)?;
    let mut all = Vec::with_capacity(n_connections.max(1));
    for at in 0..n_connections.max(1) {
        let mut client = config.connect(tls.clone())?;
        if at == 0 {
            make(&mut client)?;
        }
        client.batch_execute(&format!("SET search_path = {SCHEMA}"))?;
        if !is_durable {
            client.batch_execute("SET synchronous_commit = off")?;
        }
        if at == 0 {
            fill(&mut client, n_products, seed)?;
        }
        all.push(Postgres { client, statements: BTreeMap::new() });
    }
    Ok(all)
}

fn make(client: &mut Client) -> Result<(), StoreError> {
    let is_ours: bool = client.query_one("SELECT pg_try_advisory_lock($1)", &[&LOCK])?.get(0);
    if !is_ours {
        return Err(StoreError("another wakewatt uses this database for a shop; name another database".into()));
    }
    let found = client
        .query_opt("SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = $1", &[&SCHEMA])?;
    if let Some(row) = found {
        let comment: Option<String> = row.get(0);
        if comment.as_deref() != Some(COMMENT) {
            return Err(StoreError(format!(
                "the schema {SCHEMA} exists and is not wakewatt's; rename it or name another database"
            )));
        }
        client.batch_execute(&format!("DROP SCHEMA {SCHEMA} CASCADE"))?;
    }
    client.batch_execute(&format!("CREATE SCHEMA {SCHEMA}; COMMENT ON SCHEMA {SCHEMA} IS '{COMMENT}'"))?;
    Ok(())
}

fn fill(client: &mut Client, n_products: u32, seed: u64) -> Result<(), StoreError> {
    let mut all = client.transaction()?;
    all.batch_execute(&store::tables("BIGSERIAL PRIMARY KEY"))?;
    let insert = all.prepare(store::INSERT)?;
    for p in catalogue::products(n_products, seed) {
        all.execute(&insert, &[&p.id, &p.category, &p.name, &p.description, &p.price_cents, &STOCK])?;
    }
    all.batch_execute(SEARCH_INDEX)?;
    all.commit()?;
    client.batch_execute("ANALYZE products")?;
    Ok(())
}

/// Removes the schema: the last thing a shop does.
pub fn drop_schema(client: &mut Postgres) -> Result<(), StoreError> {
    Ok(client.client.batch_execute(&format!("DROP SCHEMA {SCHEMA} CASCADE"))?)
}

impl Postgres {
    /// Prepared once per connection.
    fn statement(&mut self, sql: &'static str) -> Result<Statement, StoreError> {
        if let Some(known) = self.statements.get(sql) {
            return Ok(known.clone());
        }
        let statement = self.client.prepare(sql)?;
        self.statements.insert(sql, statement.clone());
        Ok(statement)
    }

    fn rows(&mut self, sql: &'static str, with: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, StoreError> {
        let statement = self.statement(sql)?;
        Ok(self.client.query(&statement, with)?)
    }

    fn change(&mut self, sql: &'static str, with: &[&(dyn ToSql + Sync)]) -> Result<u64, StoreError> {
        let statement = self.statement(sql)?;
        Ok(self.client.execute(&statement, with)?)
    }

    fn buy(&mut self, cart: i64) -> Result<Checkout, StoreError> {
        let lines = self.cart(cart)?;
        if lines.is_empty() {
            return Ok(Checkout::Empty);
        }
        for l in &lines {
            if self.change(store::TAKE, &[&l.n, &l.product, &l.n])? == 0 {
                return Ok(Checkout::OutOfStock { product: l.product });
            }
        }
        let total_cents = total_cents(&lines);
        let made = self.rows(store::ORDER, &[&cart, &total_cents])?;
        let order: i64 = made.first().ok_or_else(|| StoreError("an order without a number".into()))?.get(0);
        for l in &lines {
            self.change(store::ORDER_LINE, &[&order, &l.product, &l.n, &l.price_cents])?;
        }
        self.change(store::EMPTY, &[&cart])?;
        Ok(Checkout::Ordered { order, total_cents })
    }
}

fn short(row: &Row) -> Short {
    Short { id: row.get(0), name: row.get(1), price_cents: row.get(2), teaser: row.get(3) }
}

impl Store for Postgres {
    fn list(&mut self, category: i64, page: i64) -> Result<Vec<Short>, StoreError> {
        let skip = page.saturating_mul(PER_PAGE);
        Ok(self.rows(store::LIST, &[&category, &PER_PAGE, &skip])?.iter().map(short).collect())
    }

    fn product(&mut self, id: i64) -> Result<Option<Product>, StoreError> {
        let rows = self.rows(store::PRODUCT, &[&id])?;
        Ok(rows.first().map(|row| Product {
            id: row.get(0),
            category: row.get(1),
            name: row.get(2),
            description: row.get(3),
            price_cents: row.get(4),
            stock: row.get(5),
        }))
    }

    fn search(&mut self, words: &str) -> Result<Vec<Short>, StoreError> {
        Ok(self.rows(SEARCH, &[&words, &PER_PAGE])?.iter().map(short).collect())
    }

    fn cart(&mut self, cart: i64) -> Result<Vec<Line>, StoreError> {
        let line = |row: &Row| Line { product: row.get(0), n: row.get(1), name: row.get(2), price_cents: row.get(3) };
        Ok(self.rows(store::CART, &[&cart])?.iter().map(line).collect())
    }

    fn add(&mut self, cart: i64, product: i64, n: i64) -> Result<bool, StoreError> {
        Ok(self.change(store::ADD, &[&cart, &n, &product])? > 0)
    }

    fn remove(&mut self, cart: i64, product: i64) -> Result<bool, StoreError> {
        Ok(self.change(store::REMOVE, &[&cart, &product])? > 0)
    }

    fn checkout(&mut self, cart: i64) -> Result<Checkout, StoreError> {
        self.client.batch_execute("BEGIN")?;
        let done = self.buy(cart);
        let is_bought = matches!(done, Ok(Checkout::Ordered { .. }));
        self.client.batch_execute(if is_bought { "COMMIT" } else { "ROLLBACK" })?;
        done
    }
}
