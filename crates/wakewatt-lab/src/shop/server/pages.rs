//! The shop's pages: what each request is answered with.
//!
//! JSON of the size of a page's data in ordinary shops: a list of twenty products is 4 to 5 kB, a product 1 to 2 kB. A
//! cart belongs to whoever knows its number. Unknown products are 404, a cart that cannot be bought 409, a database that
//! fails 500 with its words.

use super::pool::Pool;
use super::store::{Checkout, Line, Product, Short, StoreError, total_cents};
use super::{ServerDescription, catalogue};
use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use wakewatt_host::own_usage;

/// More of one product at once is a mistake, not an order.
const MOST_AT_ONCE: i64 = 99;
/// Longer questions are cut.
const MOST_LETTERS: usize = 80;

/// What every page knows.
#[derive(Clone)]
pub(super) struct Shop {
    pub(super) pool: Pool,
    pub(super) about: Arc<ServerDescription>,
}

/// Why there is no page.
enum Refusal {
    NotFound(&'static str),
    Wrong(&'static str),
    Conflict(Checkout),
    Failed(StoreError),
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Refusal {
        Refusal::Failed(error)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let because = |why: String| Json(serde_json::json!({ "error": why }));
        match self {
            Refusal::NotFound(why) => (StatusCode::NOT_FOUND, because(why.into())).into_response(),
            Refusal::Wrong(why) => (StatusCode::BAD_REQUEST, because(why.into())).into_response(),
            Refusal::Conflict(why) => (StatusCode::CONFLICT, Json(why)).into_response(),
            Refusal::Failed(why) => (StatusCode::INTERNAL_SERVER_ERROR, because(why.to_string())).into_response(),
        }
    }
}

pub(super) fn router(shop: Shop) -> Router {
    Router::new()
        .route("/about", get(about))
        .route("/catalogue/{category}", get(list))
        .route("/product/{id}", get(product))
        .route("/search", get(search))
        .route("/cart/{cart}", get(cart))
        .route("/cart/{cart}/add", post(add))
        .route("/cart/{cart}/remove", post(remove))
        .route("/cart/{cart}/checkout", post(checkout))
        .layer(DefaultBodyLimit::max(4096))
        .with_state(shop)
}

async fn about(State(shop): State<Shop>) -> Json<ServerDescription> {
    let (cpu_ns, system_ns) = own_usage::cpu_ns().unzip();
    Json(ServerDescription { cpu_ns, system_ns, ..(*shop.about).clone() })
}

#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    page: u32,
}

#[derive(Serialize)]
struct Listed {
    category: i64,
    page: u32,
    products: Vec<Short>,
}

async fn list(
    State(shop): State<Shop>,
    Path(category): Path<i64>,
    Query(Page { page }): Query<Page>,
) -> Result<Json<Listed>, Refusal> {
    if !(0..catalogue::N_CATEGORIES).contains(&category) {
        return Err(Refusal::NotFound("no such department"));
    }
    let products = shop.pool.ask(move |store| store.list(category, i64::from(page))).await?;
    Ok(Json(Listed { category, page, products }))
}

async fn product(State(shop): State<Shop>, Path(id): Path<i64>) -> Result<Json<Product>, Refusal> {
    let found = shop.pool.ask(move |store| store.product(id)).await?;
    found.map(Json).ok_or(Refusal::NotFound("no such product"))
}

#[derive(Deserialize)]
struct Asked {
    q: String,
}

#[derive(Serialize)]
struct Found {
    words: String,
    products: Vec<Short>,
}

async fn search(State(shop): State<Shop>, Query(Asked { q }): Query<Asked>) -> Result<Json<Found>, Refusal> {
    let words: String =
        q.chars().take(MOST_LETTERS).map(|c| if c.is_alphanumeric() { c } else { ' ' }).collect::<String>();
    let asked = words.clone();
    let products = shop.pool.ask(move |store| store.search(&asked)).await?;
    Ok(Json(Found { words, products }))
}

#[derive(Serialize)]
struct Cart {
    cart: i64,
    total_cents: i64,
    lines: Vec<Line>,
}

async fn shown(shop: &Shop, cart: i64) -> Result<Json<Cart>, Refusal> {
    let lines = shop.pool.ask(move |store| store.cart(cart)).await?;
    Ok(Json(Cart { cart, total_cents: total_cents(&lines), lines }))
}

async fn cart(State(shop): State<Shop>, Path(cart): Path<i64>) -> Result<Json<Cart>, Refusal> {
    shown(&shop, cart).await
}

#[derive(Deserialize)]
struct ProductAsked {
    product: i64,
    #[serde(default = "one")]
    n: i64,
}

fn one() -> i64 {
    1
}

async fn add(
    State(shop): State<Shop>,
    Path(cart): Path<i64>,
    Json(ProductAsked { product, n }): Json<ProductAsked>,
) -> Result<Json<Cart>, Refusal> {
    if !(1..=MOST_AT_ONCE).contains(&n) {
        return Err(Refusal::Wrong("give 1 to 99"));
    }
    match shop.pool.ask(move |store| store.add(cart, product, n)).await? {
        true => shown(&shop, cart).await,
        false => Err(Refusal::NotFound("no such product")),
    }
}

async fn remove(
    State(shop): State<Shop>,
    Path(cart): Path<i64>,
    Json(ProductAsked { product, .. }): Json<ProductAsked>,
) -> Result<Json<Cart>, Refusal> {
    // A product that is not in the cart is what was wanted.
    shop.pool.ask(move |store| store.remove(cart, product)).await?;
    shown(&shop, cart).await
}

async fn checkout(State(shop): State<Shop>, Path(cart): Path<i64>) -> Result<Response, Refusal> {
    match shop.pool.ask(move |store| store.checkout(cart)).await? {
        done @ Checkout::Ordered { .. } => Ok((StatusCode::CREATED, Json(done)).into_response()),
        not => Err(Refusal::Conflict(not)),
    }
}
