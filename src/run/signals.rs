//! Handles SIGINT and SIGTERM while an operation runs.

use std::{io, time::Duration};

use tokio::{
    signal::unix::{SignalKind, signal},
    sync::{mpsc, oneshot},
    time::Instant,
};

use kordon_core::operation::OperatorInput;

/// Time after the first signal within which further signals count as the same request. GNU timeout, for example, sends
/// SIGTERM twice: to the process and to its group.
const SAME_REQUEST: Duration = Duration::from_secs(1);

/// Requests of the operator. The first signal cancels the operation, and the second signal stops the program.
pub struct OperatorRequests {
    pub input: mpsc::Receiver<OperatorInput>,
    pub stop: oneshot::Receiver<()>,
}

/// Listens for signals from now on.
///
/// # Errors
/// The system refuses to register a signal handler.
pub fn listen() -> io::Result<OperatorRequests> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    // The capacity of the channel is one, because a second waiting signal would add nothing.
    let (sender, signals) = mpsc::channel(1);
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if sender.send(()).await.is_err() {
                return;
            }
        }
    });
    Ok(requests(signals))
}

fn requests(mut signals: mpsc::Receiver<()>) -> OperatorRequests {
    // The capacity is one, because only one request is sent here: the second request ends the program.
    let (cancel, input) = mpsc::channel(1);
    let (second, stop) = oneshot::channel();
    tokio::spawn(async move {
        if signals.recv().await.is_none() {
            return;
        }
        let first = Instant::now();
        // Sending the cancellation fails if the operation has just ended.
        let _ = cancel.send(OperatorInput::Cancel).await;
        while first.elapsed() < SAME_REQUEST {
            if signals.recv().await.is_none() {
                return;
            }
        }
        let _ = second.send(());
        // The task keeps the sender of `input` alive, so that the channel stays open.
        cancel.closed().await;
    });
    OperatorRequests { input, stop }
}

#[cfg(test)]
mod tests {
    use tokio::time::{sleep, timeout};

    use super::*;

    /// Returns true if the program stops after signals at these times, in milliseconds.
    async fn stops(times: &[u64]) -> bool {
        let (sender, signals) = mpsc::channel(1);
        let OperatorRequests { mut input, stop } = requests(signals);
        let mut now = 0;
        for time in times {
            sleep(Duration::from_millis(time - now)).await;
            now = *time;
            sender.send(()).await.expect("it listens");
        }
        assert_eq!(input.recv().await, Some(OperatorInput::Cancel));
        timeout(Duration::from_secs(60), stop).await.is_ok_and(|stopped| stopped.is_ok())
    }

    #[tokio::test(start_paused = true)]
    async fn two_signals_at_once_are_one_request() {
        assert!(!stops(&[0]).await);
        assert!(!stops(&[0, 1]).await, "as GNU timeout sends them");
        assert!(stops(&[0, 1500]).await);
        assert!(stops(&[0, 1, 1500]).await);
    }
}
