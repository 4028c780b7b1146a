//! A thousand requests of two users at once: no user's token, cookie, request id, or trace is ever in another's call.

use std::collections::HashSet;
use std::sync::Arc;

use axum::body::Body;
use axum::http::Response;
use futures_util::StreamExt;
use futures_util::stream::iter;

use crate::service::start;
use crate::upstream::Upstream;

const REQUESTS: usize = 1_000;

/// What is one request's, and no other's.
struct Own {
    path: String,
    id: String,
    bearer: String,
    trace: String,
    state: String,
}

impl Own {
    fn of(number: usize) -> Self {
        let user = if number.is_multiple_of(2) { "ann" } else { "bob" };
        Self {
            path: format!("{user}/{number}"),
            id: format!("{user}-{number}"),
            bearer: format!("Bearer {user}-{number}"),
            trace: format!("{:032x}", 1 + number),
            state: format!("{user}={number}"),
        }
    }

    /// Every third of Bob's has nothing to pass on: he must not get Ann's either.
    fn is_bare(number: usize) -> bool {
        number % 6 == 1
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c8_3_no_user_ever_sees_anothers_context() {
    let upstream = Upstream::start(|seen| {
        let cookie = format!("sid={}; Path=/", seen.path);
        Response::builder().header("set-cookie", cookie).body(Body::from(seen.path.clone())).unwrap()
    });
    let upstream = upstream.await;
    let toml = format!(
        "[upstreams.billing]\nbase_url = '{}'\nproxy = false\nforward_authorization = true\nbulkhead_wait = 30\n",
        upstream.url
    );
    let service = Arc::new(start(&toml, &[]).await.unwrap());
    let requests = iter(0..REQUESTS).map(|number| {
        let service = Arc::clone(&service);
        tokio::spawn(async move {
            let own = Own::of(number);
            let parent = format!("00-{}-00000000000000aa-01", own.trace);
            let cookie = format!("session={}", own.id);
            let inherited = [
                ("x-request-id", own.id.as_str()),
                ("authorization", &own.bearer),
                ("traceparent", &parent),
                ("tracestate", &own.state),
                ("cookie", &cookie),
            ];
            let headers = if Own::is_bare(number) { &[][..] } else { &inherited };
            let answer = service.caller.get(&format!("/both/{}", own.path), headers).await;
            assert_eq!(answer.status, 200);
            let id = answer.header("x-request-id").unwrap().to_owned();
            assert!(Own::is_bare(number) || id == own.id);
            assert_eq!(answer.header("set-cookie"), None);
            (own.path, id)
        })
    });
    let ids: Vec<(String, String)> = requests.buffer_unordered(40).map(Result::unwrap).collect().await;
    assert_eq!(ids.iter().map(|(_, id)| id).collect::<HashSet<_>>().len(), REQUESTS);
    let ids: std::collections::HashMap<_, _> = ids.into_iter().collect();
    let seen = upstream.seen();
    assert_eq!(seen.len(), 2 * REQUESTS, "one in the handler's task, one in another");
    let mut spans = HashSet::new();
    for seen in seen {
        let path = seen.path.trim_start_matches('/');
        let number: usize = path.split_once('/').unwrap().1.parse().unwrap();
        let own = Own::of(number);
        assert_eq!(path, own.path);
        assert_eq!(seen.lines("x-request-id"), [ids[path].as_str()]);
        assert!(seen.lines("cookie").is_empty());
        if Own::is_bare(number) {
            for name in ["authorization", "traceparent", "tracestate"] {
                assert!(seen.lines(name).is_empty(), "{name} of somebody else's");
            }
            continue;
        }
        assert_eq!((seen.lines("authorization"), seen.lines("tracestate")), (vec![&*own.bearer], vec![&*own.state]));
        let [parent] = seen.lines("traceparent")[..] else { panic!("not one traceparent") };
        assert_eq!(&parent[3..35], own.trace);
        assert!(spans.insert(parent.to_owned()), "every attempt has a span of its own");
    }
}
