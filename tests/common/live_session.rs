//! A session that records its own events, as the dashboard's history does, and keeps its model at given moments.

use std::io::Write;

use kordon::{
    model::Model,
    recording::RecordingWriter,
    run::{Session, record::write_keyframe_if_due, replay::look_after},
};
use kordon_time::{Span, Timestamp};

/// Runs a session until `ends` and records the messages of its watches. Returns the model just before each of
/// `moments`, which have to be sorted.
pub async fn record_live<W: Write>(
    session: Session,
    mut writer: RecordingWriter<W>,
    moments: impl IntoIterator<Item = Timestamp>,
    ends: Timestamp,
) -> Vec<(Timestamp, Model)> {
    let Session { mut model, mut links, clock, .. } = session;
    let mut moments = moments.into_iter().take_while(|moment| *moment < ends).peekable();
    let mut look = look_after(clock.now());
    let mut known = Vec::new();
    while clock.now() < ends {
        let due = model.poll_timeout();
        let moment = moments.peek().copied().unwrap_or(ends);
        tokio::select! {
            // `biased` polls the branches of `select!` from top to bottom. If several events are due at the same
            // moment, the model is copied first.
            biased;
            () = clock.sleep_until(moment) => {
                let before = clock.now() - Span::from_nanos(1);
                pass_time(&mut model, &mut look, before);
                if moments.next().is_some() {
                    known.push((before, model.clone()));
                }
            }
            event = links.feeds.recv() => {
                let (event, now) = (event.expect("the watches run"), clock.now());
                writer.event(&event, now).expect("it can be written");
                pass_time(&mut model, &mut look, now);
                model.on_watch_event(event, now);
                write_keyframe_if_due(&mut writer, &model, now).expect("it can be written");
            }
            outcome = links.outcomes.recv() => {
                let (id, outcome) = outcome.expect("the executor runs");
                model.on_outcome(id, outcome, clock.now());
            }
            permit = links.effects.reserve(), if model.effects.has_next() => {
                permit.expect("the executor runs").send(model.effects.take_next().expect("there is one"));
            }
            () = clock.sleep_until(due.map_or(look, |due| due.min(look))) => {
                pass_time(&mut model, &mut look, clock.now());
            }
        }
    }
    writer.finish(clock.now()).expect("it can be written");
    known
}

/// Does all work due until `now`, as a dashboard does. Refreshes the views at the same times as a replay.
pub fn pass_time(model: &mut Model, look: &mut Timestamp, now: Timestamp) {
    while *look <= now {
        model.pass_time(*look);
        model.refresh_nodes(*look);
        *look = look_after(*look);
    }
    model.pass_time(now);
}
