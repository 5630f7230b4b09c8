//! What the shop wants of a database, whichever it is; and the SQL that both understand.
//!
//! Statements are written once: integers and text only, `ON CONFLICT`, and parameters numbered in the order in which they
//! first appear, which SQLite then numbers the same way as PostgreSQL. What differs (search, how a transaction begins) is
//! in [`sqlite`](super::sqlite) and [`postgres`](super::postgres).
//!
//! Checkout is one transaction: order, order lines, stock. A product's stock is taken by an update that asks for enough of
//! it, so that it never falls below zero whoever buys at the same time; products are taken in rising order, so that two
//! checkouts cannot wait for each other.

use serde::Serialize;

/// Products on a page of the catalogue or of a search.
pub const PER_PAGE: i64 = 20;

/// A product in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Short {
    pub id: i64,
    pub name: String,
    /// In cents.
    pub price_cents: i64,
    /// Begin of its description.
    pub teaser: String,
}

/// A product on its own page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Product {
    pub id: i64,
    /// Department.
    pub category: i64,
    pub name: String,
    /// A paragraph.
    pub description: String,
    /// In cents.
    pub price_cents: i64,
    /// What is left.
    pub stock: i64,
}

/// A line of a cart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Line {
    pub product: i64,
    /// How many.
    pub n: i64,
    pub name: String,
    /// Of one, in cents.
    pub price_cents: i64,
}

/// What became of a checkout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Checkout {
    /// Bought.
    Ordered {
        /// Number of the order.
        order: i64,
        /// To pay, in cents.
        total_cents: i64,
    },
    /// Nothing in the cart.
    Empty,
    /// Not enough of this product; nothing was bought.
    OutOfStock { product: i64 },
}

/// The database failed: its words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("database: {0}")]
pub struct StoreError(pub String);

/// A connection to the database.
pub trait Store: Send {
    /// A page of a department.
    fn list(&mut self, category: i64, page: i64) -> Result<Vec<Short>, StoreError>;
    fn product(&mut self, id: i64) -> Result<Option<Product>, StoreError>;
    /// Products with all these words (letters and digits only).
    fn search(&mut self, words: &str) -> Result<Vec<Short>, StoreError>;
    /// What a cart holds.
    fn cart(&mut self, cart: i64) -> Result<Vec<Line>, StoreError>;
    /// Puts a product into a cart; false where there is no such product.
    fn add(&mut self, cart: i64, product: i64, n: i64) -> Result<bool, StoreError>;
    /// Takes a product out; false where it was not in.
    fn remove(&mut self, cart: i64, product: i64) -> Result<bool, StoreError>;
    /// Buys all of a cart or nothing.
    fn checkout(&mut self, cart: i64) -> Result<Checkout, StoreError>;
}

/// The tables. Orders count up by themselves; see each database for that column.
pub(super) fn tables(order_id: &str) -> String {
    format!(
        "CREATE TABLE products (id BIGINT PRIMARY KEY, category BIGINT NOT NULL, name TEXT NOT NULL,
             description TEXT NOT NULL, price_cents BIGINT NOT NULL, stock BIGINT NOT NULL CHECK (stock >= 0));
         CREATE TABLE cart_lines (cart BIGINT NOT NULL, product BIGINT NOT NULL, n BIGINT NOT NULL,
             PRIMARY KEY (cart, product));
         CREATE TABLE orders (id {order_id}, cart BIGINT NOT NULL, total_cents BIGINT NOT NULL);
         CREATE TABLE order_lines (order_id BIGINT NOT NULL, product BIGINT NOT NULL, n BIGINT NOT NULL,
             price_cents BIGINT NOT NULL, PRIMARY KEY (order_id, product));
         CREATE INDEX by_category ON products (category, id);"
    )
}

pub(super) const INSERT: &str =
    "INSERT INTO products (id, category, name, description, price_cents, stock) VALUES ($1, $2, $3, $4, $5, $6)";
pub(super) const LIST: &str = "SELECT id, name, price_cents, substr(description, 1, 120) FROM products
    WHERE category = $1 ORDER BY id LIMIT $2 OFFSET $3";
pub(super) const PRODUCT: &str =
    "SELECT id, category, name, description, price_cents, stock FROM products WHERE id = $1";
pub(super) const CART: &str = "SELECT l.product, l.n, p.name, p.price_cents FROM cart_lines l
    JOIN products p ON p.id = l.product WHERE l.cart = $1 ORDER BY l.product";
pub(super) const ADD: &str = "INSERT INTO cart_lines (cart, product, n)
    SELECT CAST($1 AS BIGINT), id, CAST($2 AS BIGINT) FROM products WHERE id = $3
    ON CONFLICT (cart, product) DO UPDATE SET n = cart_lines.n + excluded.n";
pub(super) const REMOVE: &str = "DELETE FROM cart_lines WHERE cart = $1 AND product = $2";
pub(super) const TAKE: &str = "UPDATE products SET stock = stock - $1 WHERE id = $2 AND stock >= $3";
pub(super) const ORDER: &str = "INSERT INTO orders (cart, total_cents) VALUES ($1, $2) RETURNING id";
pub(super) const ORDER_LINE: &str =
    "INSERT INTO order_lines (order_id, product, n, price_cents) VALUES ($1, $2, $3, $4)";
pub(super) const EMPTY: &str = "DELETE FROM cart_lines WHERE cart = $1";

/// What a cart costs; saturating, because prices times numbers came from a client.
pub(super) fn total_cents(lines: &[Line]) -> i64 {
    lines.iter().fold(0, |sum, l| sum.saturating_add(l.price_cents.saturating_mul(l.n)))
}
