//! What one entry of a script says.

use std::time::Duration;

use steadfast::ErrorClass;

use super::fields::Fields;
use super::model::{Act, Answer, OperationError, Reply, Respond};
use super::read::Reader;

/// The least time between two bytes that drip.
const FASTEST: Duration = Duration::from_millis(1);

/// An upstream's reply. `None`: it has a mistake, which was noted.
pub(super) fn reply(reader: &mut Reader<'_, '_, '_>, fields: &Fields) -> Option<Reply> {
    let act = only_one(reader, fields, &["status", "hang", "refuse", "reset"])?;
    let parts = ["headers", "body", "cut", "drip"];
    if act != "status" {
        for (name, at) in fields.names().filter(|(name, _)| parts.contains(name)) {
            reader.says(at, &fields.path_of(name), format!("goes with `status`, and not with `{act}`"));
        }
    }
    if act == "refuse"
        && let Some(at) = fields.place("route")
    {
        let message = "a connection is refused before anybody knows which request it is for";
        reader.says(at, &fields.path_of("route"), message);
    }
    let act = match act {
        "hang" => Act::Hang,
        "refuse" => Act::Refuse,
        "reset" => Act::Reset { read: fields.value::<String>("reset")? == "after" },
        _ => Act::Respond(respond(reader, fields)?),
    };
    Some(Reply { route: fields.value("route"), times: times(fields), after: after(fields), act })
}

fn respond(reader: &mut Reader<'_, '_, '_>, fields: &Fields) -> Option<Respond> {
    let body = fields.value::<String>("body").unwrap_or_default().into_bytes();
    let cut = fields.value::<u64>("cut").map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
    if let (Some(bytes), Some(at)) = (cut, fields.place("cut"))
        && bytes >= body.len()
    {
        let message = format!("expected less than the {} bytes of the body; found {bytes}", body.len());
        reader.says(at, &fields.path_of("cut"), message);
    }
    let drip: Option<Duration> = fields.value("drip");
    if let (Some(at), true) = (fields.place("drip"), fields.has("cut") || fields.has("body")) {
        reader.says(at, &fields.path_of("drip"), "a body that drips has no `body` and no `cut`");
    }
    if let (Some(at), Some(every)) = (fields.place("drip"), drip)
        && every < FASTEST
    {
        // Each byte is an event, and there is no end of them.
        reader.says(at, &fields.path_of("drip"), "expected a duration of at least 1ms");
    }
    Some(Respond {
        status: u16::try_from(fields.value::<u64>("status")?).ok()?,
        headers: fields.value("headers").unwrap_or_default(),
        body,
        cut,
        drip,
    })
}

/// What a guard's operation does.
pub(super) fn answer(reader: &mut Reader<'_, '_, '_>, fields: &Fields) -> Option<Answer> {
    let brings = only_one(reader, fields, &["value", "error", "hang"])?;
    let retry_after: Option<Duration> = fields.value("retry_after");
    let error: Option<String> = fields.value("error");
    let asks = matches!(error.as_deref(), Some("transient" | "throttled"));
    if let (Some(at), false) = (fields.place("retry_after"), asks) {
        let message = "goes with `error = \"transient\"` or `error = \"throttled\"`";
        reader.says(at, &fields.path_of("retry_after"), message);
    }
    let brings = match brings {
        "hang" => None,
        "value" => Some(Ok(fields.value::<String>("value")?)),
        _ => Some(Err(OperationError { class: class(&error?, retry_after) })),
    };
    Some(Answer { times: times(fields), after: after(fields), brings })
}

fn class(word: &str, retry_after: Option<Duration>) -> ErrorClass {
    match word {
        "transient" => ErrorClass::Transient { retry_after },
        "throttled" => ErrorClass::Throttled { retry_after },
        "permanent" => ErrorClass::Permanent,
        "refused" => ErrorClass::Refused,
        _ => ErrorClass::Failure,
    }
}

fn times(fields: &Fields) -> u32 {
    fields.value::<u64>("times").and_then(|times| u32::try_from(times).ok()).unwrap_or(1)
}

fn after(fields: &Fields) -> Duration {
    fields.value("after").unwrap_or_default()
}

/// The one key of these that is there. `None`: there is none, or there are several, which was noted.
pub(super) fn only_one(
    reader: &mut Reader<'_, '_, '_>,
    fields: &Fields,
    keys: &[&'static str],
) -> Option<&'static str> {
    let found: Vec<(&'static str, usize)> = fields.names().filter(|(name, _)| keys.contains(name)).collect();
    let list = || keys.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
    match found[..] {
        [(one, _)] => Some(one),
        [] => {
            reader.says(fields.at, &fields.path, format!("expected one of {}", list()));
            None
        }
        [(first, _), (second, at), ..] => {
            let path = fields.path_of(second);
            reader.says(at, &path, format!("expected only one of {}; `{first}` is there already", list()));
            None
        }
    }
}
