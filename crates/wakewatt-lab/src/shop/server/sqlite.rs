//! The shop's own database: SQLite inside the server's process, in files that vanish with it.
//!
//! The files are removed from their folder as soon as every connection has opened them; the kernel keeps them until the
//! process ends, however it ends. SQLite opens the database and its log once per connection and never again by name, so
//! it does not notice. Until then a lock on the folder says that somebody is at it; a folder without one was left by a
//! process that was killed, and the next shop removes it. They lie on a disk, not in memory, unless asked for: what a commit costs is part of a shop.
//!
//! Write-ahead log, several readers, one writer at a time. Writers wait for each other on a lock of ours: SQLite itself
//! would poll with sleeps of 1 to 100 ms, which would be measured as latency. `durable` syncs the log at each commit
//! (synchronous=FULL); otherwise a power failure may lose the last orders, never the order of things (NORMAL).

use super::catalogue::{self, STOCK};
use super::home;
use super::store::{self, Checkout, Line, PER_PAGE, Product, Short, Store, StoreError, total_cents};
use rusqlite::{Connection, OptionalExtension, Row, TransactionBehavior, params};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

const SEARCH: &str = "SELECT p.id, p.name, p.price_cents, substr(p.description, 1, 120) FROM words w
    JOIN products p ON p.id = w.rowid WHERE words MATCH $1 LIMIT $2";

/// One connection.
#[derive(Debug)]
pub struct Sqlite {
    connection: Connection,
    writer: Arc<Mutex<()>>,
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> StoreError {
        StoreError(error.to_string())
    }
}

/// Makes and fills a database in this folder, and opens so many connections to it.
pub fn open(
    folder: &Path,
    is_durable: bool,
    n_products: u32,
    seed: u64,
    n_connections: usize,
) -> Result<Vec<Sqlite>, StoreError> {
    let fail = |e: std::io::Error| StoreError(format!("{}: {e}; name another folder with --in", folder.display()));
    let home = home::make(folder).map_err(fail)?;
    let opened = open_in(&home.path().join("shop.db"), is_durable, n_products, seed, n_connections);
    // Whether it worked or not: from here on no name leads to the files.
    home.remove().map_err(fail)?;
    opened
}

fn open_in(
    file: &Path,
    is_durable: bool,
    n_products: u32,
    seed: u64,
    n_connections: usize,
) -> Result<Vec<Sqlite>, StoreError> {
    let writer = Arc::new(Mutex::new(()));
    let mut all = Vec::with_capacity(n_connections.max(1));
    for at in 0..n_connections.max(1) {
        let mut connection = Connection::open(file)?;
        connection.busy_timeout(Duration::from_secs(5))?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", if is_durable { "FULL" } else { "NORMAL" })?;
        connection.set_prepared_statement_cache_capacity(32);
        if at == 0 {
            fill(&mut connection, n_products, seed)?;
        }
        // The first read opens the log; afterwards no name is needed.
        connection.query_row("SELECT count(*) FROM products", [], |_| Ok(()))?;
        all.push(Sqlite { connection, writer: Arc::clone(&writer) });
    }
    Ok(all)
}

fn fill(connection: &mut Connection, n_products: u32, seed: u64) -> Result<(), StoreError> {
    let all = connection.transaction()?;
    all.execute_batch(&store::tables("INTEGER PRIMARY KEY"))?;
    all.execute_batch(
        "CREATE VIRTUAL TABLE words USING fts5(name, description, content='products', content_rowid='id')",
    )?;
    {
        let mut insert = all.prepare(store::INSERT)?;
        for p in catalogue::products(n_products, seed) {
            insert.execute(params![p.id, p.category, p.name, p.description, p.price_cents, STOCK])?;
        }
    }
    all.execute_batch("INSERT INTO words (words) VALUES ('rebuild')")?;
    Ok(all.commit()?)
}

fn short(row: &Row<'_>) -> rusqlite::Result<Short> {
    Ok(Short { id: row.get(0)?, name: row.get(1)?, price_cents: row.get(2)?, teaser: row.get(3)? })
}

fn line(row: &Row<'_>) -> rusqlite::Result<Line> {
    Ok(Line { product: row.get(0)?, n: row.get(1)?, name: row.get(2)?, price_cents: row.get(3)? })
}

fn product(row: &Row<'_>) -> rusqlite::Result<Product> {
    Ok(Product {
        id: row.get(0)?,
        category: row.get(1)?,
        name: row.get(2)?,
        description: row.get(3)?,
        price_cents: row.get(4)?,
        stock: row.get(5)?,
    })
}

/// A lock that guards no data cannot hold broken data.
fn held(writer: &Mutex<()>) -> MutexGuard<'_, ()> {
    writer.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Store for Sqlite {
    fn list(&mut self, category: i64, page: i64) -> Result<Vec<Short>, StoreError> {
        let mut found = self.connection.prepare_cached(store::LIST)?;
        let rows = found.query_map(params![category, PER_PAGE, page.saturating_mul(PER_PAGE)], short)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn product(&mut self, id: i64) -> Result<Option<Product>, StoreError> {
        Ok(self.connection.prepare_cached(store::PRODUCT)?.query_row([id], product).optional()?)
    }

    fn search(&mut self, words: &str) -> Result<Vec<Short>, StoreError> {
        // Quoted, so that AND, OR and NEAR are words like others.
        let quoted: Vec<String> = words.split_whitespace().map(|w| format!("\"{}\"", w.replace('"', ""))).collect();
        if quoted.is_empty() {
            return Ok(Vec::new());
        }
        let mut found = self.connection.prepare_cached(SEARCH)?;
        let rows = found.query_map(params![quoted.join(" "), PER_PAGE], short)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn cart(&mut self, cart: i64) -> Result<Vec<Line>, StoreError> {
        let mut found = self.connection.prepare_cached(store::CART)?;
        let rows = found.query_map([cart], line)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn add(&mut self, cart: i64, product: i64, n: i64) -> Result<bool, StoreError> {
        let _one = held(&self.writer);
        Ok(self.connection.prepare_cached(store::ADD)?.execute([cart, n, product])? > 0)
    }

    fn remove(&mut self, cart: i64, product: i64) -> Result<bool, StoreError> {
        let _one = held(&self.writer);
        Ok(self.connection.prepare_cached(store::REMOVE)?.execute([cart, product])? > 0)
    }

    fn checkout(&mut self, cart: i64) -> Result<Checkout, StoreError> {
        let _one = held(&self.writer);
        // Dropped without a commit, a transaction is rolled back.
        let all = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let lines: Vec<Line> = all.prepare_cached(store::CART)?.query_map([cart], line)?.collect::<Result<_, _>>()?;
        if lines.is_empty() {
            return Ok(Checkout::Empty);
        }
        for l in &lines {
            if all.prepare_cached(store::TAKE)?.execute([l.n, l.product, l.n])? == 0 {
                return Ok(Checkout::OutOfStock { product: l.product });
            }
        }
        let total_cents = total_cents(&lines);
        let order: i64 = all.prepare_cached(store::ORDER)?.query_row([cart, total_cents], |row| row.get(0))?;
        for l in &lines {
            all.prepare_cached(store::ORDER_LINE)?.execute([order, l.product, l.n, l.price_cents])?;
        }
        all.prepare_cached(store::EMPTY)?.execute([cart])?;
        all.commit()?;
        Ok(Checkout::Ordered { order, total_cents })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shop(n_connections: usize) -> Vec<Sqlite> {
        let folder = tempfile::tempdir().unwrap();
        let all = open(folder.path(), false, 200, 1, n_connections).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "no name leads to the files");
        all
    }

    #[test]
    fn lists_finds_and_knows_what_it_does_not_sell() {
        let mut shop = shop(1).remove(0);
        let first = shop.list(3, 0).unwrap();
        assert_eq!(first.iter().map(|p| p.id).collect::<Vec<_>>(), (0..10).map(|k| 3 + 20 * k).collect::<Vec<_>>());
        assert!(shop.list(3, 1).unwrap().is_empty() && shop.list(3, i64::MAX).unwrap().is_empty());
        let made = catalogue::products(200, 1).nth(6).unwrap();
        let seven = shop.product(7).unwrap().unwrap();
        assert_eq!((seven.name, seven.stock), (made.name.clone(), STOCK));
        assert_eq!(shop.product(201).unwrap(), None);
        let word = made.name.split(' ').next().unwrap();
        let found = shop.search(word).unwrap();
        assert!(!found.is_empty());
        for p in found {
            let whole = shop.product(p.id).unwrap().unwrap();
            assert!(format!("{} {}", whole.name, whole.description).contains(word), "{whole:?}");
        }
        for odd in ["", "   ", "\"", "NEAR(", "OR", "*", "zebra"] {
            assert_eq!(shop.search(odd).unwrap(), [], "{odd:?}");
        }
    }

    #[test]
    fn a_checkout_is_all_or_nothing() {
        let mut shop = shop(1).remove(0);
        assert_eq!(shop.checkout(1).unwrap(), Checkout::Empty);
        assert!(!shop.add(1, 999, 1).unwrap());
        assert!(shop.add(1, 5, 1).unwrap() && shop.add(1, 5, 1).unwrap() && shop.add(1, 6, 1).unwrap());
        assert!(shop.remove(1, 6).unwrap() && !shop.remove(1, 6).unwrap());
        assert_eq!(shop.cart(1).unwrap()[0].n, 2);
        let price = shop.product(5).unwrap().unwrap().price_cents;
        assert!(matches!(shop.checkout(1).unwrap(), Checkout::Ordered { total_cents, .. } if total_cents == 2 * price));
        assert_eq!((shop.cart(1).unwrap().len(), shop.product(5).unwrap().unwrap().stock), (0, STOCK - 2));
        // The second line cannot be had: the first is not sold either, and the cart stays.
        assert!(shop.add(2, 5, 1).unwrap() && shop.add(2, 6, STOCK + 1).unwrap());
        assert_eq!(shop.checkout(2).unwrap(), Checkout::OutOfStock { product: 6 });
        assert_eq!((shop.cart(2).unwrap().len(), shop.product(5).unwrap().unwrap().stock), (2, STOCK - 2));
        let orders: i64 = shop.connection.query_row("SELECT count(*) FROM orders", [], |r| r.get(0)).unwrap();
        assert_eq!(orders, 1);
    }

    #[test]
    fn many_buy_the_last_ones_and_stock_is_never_negative() {
        let all = shop(4);
        all[0].connection.execute("UPDATE products SET stock = 50 WHERE id = 9", []).unwrap();
        let buy = |mut shop: Sqlite, buyer: i64| {
            std::thread::spawn(move || {
                let mut n_bought = 0;
                for k in 0..30 {
                    let cart = buyer * 1000 + k;
                    assert!(shop.add(cart, 9, 1).unwrap());
                    match shop.checkout(cart).unwrap() {
                        Checkout::Ordered { .. } => n_bought += 1,
                        other => assert_eq!(other, Checkout::OutOfStock { product: 9 }),
                    }
                }
                (n_bought, shop)
            })
        };
        let threads: Vec<_> = all.into_iter().zip(1..).map(|(shop, buyer)| buy(shop, buyer)).collect();
        let mut ended: Vec<(i64, Sqlite)> = threads.into_iter().map(|t| t.join().unwrap()).collect();
        assert_eq!(ended.iter().map(|(n, _)| n).sum::<i64>(), 50);
        let shop = &mut ended[0].1;
        assert_eq!(shop.product(9).unwrap().unwrap().stock, 0);
        let sold: i64 = shop.connection.query_row("SELECT sum(n) FROM order_lines", [], |r| r.get(0)).unwrap();
        assert_eq!(sold, 50);
    }
}
