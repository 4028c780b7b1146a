//! `GET /orders/{order_id}`: the invoice from billing, with the articles' names from catalog.
//!
//! The two are not equal. Without the invoice there is no answer, so an error of that call is the answer. Without a name there
//! is still an order: what is missing is left out, and the response says so (`X-Degraded: catalog`).

use axum::Json;
use axum::extract::{Path, State};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use steadfast::degraded::{self, Degraded};
use steadfast::encode_segment;

use crate::App;
use crate::answer::Answer;

/// What billing knows.
#[derive(Deserialize)]
struct Invoice {
    article: String,
    total: String,
}

/// What catalog knows.
#[derive(Deserialize)]
struct Article {
    name: String,
}

/// What the caller gets.
#[derive(Serialize)]
pub(crate) struct Order {
    order: u64,
    total: String,
    article: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
}

pub(crate) async fn show(State(app): State<App>, Path(order): Path<u64>) -> Result<Json<Order>, Answer> {
    let response = app.billing.get(&format!("/invoices/{order}")).send().await?;
    if response.status() == StatusCode::NOT_FOUND {
        return Err(Answer::NoSuchOrder);
    }
    let Invoice { article, total } = response.error_for_status()?.json()?;
    let name = name_of(&app, &article).await;
    Ok(Json(Order { order, total, article, name }))
}

/// The article's name, if it can be had in time. Whatever the reason that it cannot: it is noted, and the order goes out
/// without.
async fn name_of(app: &App, article: &str) -> Option<String> {
    // The article comes from elsewhere, and must not become another path. What could be none has no name.
    let article = encode_segment(article).ok()?;
    let response = match app.catalog.get(&format!("/articles/{article}")).send().await {
        Ok(response) => response,
        Err(error) => {
            degraded::note(Degraded::from(&error));
            return None;
        }
    };
    match response.error_for_status() {
        Ok(response) => match response.json::<Article>() {
            Ok(article) => Some(article.name),
            Err(error) => {
                tracing::error!(%error, "catalog does not keep to its contract");
                degraded::note(Degraded::from(&response));
                None
            }
        },
        // An article that catalog does not know has no name; that is nothing to apologise for.
        Err(error) if error.status() == StatusCode::NOT_FOUND => None,
        Err(error) => {
            degraded::note(Degraded::from(&error));
            None
        }
    }
}
