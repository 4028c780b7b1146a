//! The programs themselves. Their `main` is not called here.

#![allow(dead_code, reason = "a test needs what a program does, not how it starts")]

#[path = "../../examples/ai_api.rs"]
pub(crate) mod ai_api;
#[path = "../../examples/database_query.rs"]
pub(crate) mod database_query;
#[path = "../../examples/resilient_client.rs"]
pub(crate) mod resilient_client;
#[path = "../../examples/send_mail.rs"]
pub(crate) mod send_mail;
#[path = "../../examples/tariffs.rs"]
pub(crate) mod tariffs;
#[path = "../../examples/webhook_delivery.rs"]
pub(crate) mod webhook_delivery;
