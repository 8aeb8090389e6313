//! [`Crew`]: the keepers of all tasks, and one word for all of them.

use std::time::Duration;

use tokio::process::Command;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::keeper::{Event, Keeper, Order};

/// What a task may take to end after its grace period before it is killed.
const LAST_PATIENCE: Duration = Duration::from_secs(5);

/// The processes of all tasks. They end with it.
pub(crate) struct Crew {
    orders: watch::Sender<Order>,
    events: mpsc::UnboundedReceiver<Event>,
    grace: Duration,
    /// When to lose patience; set once the tasks were told to stop.
    deadline: Option<Instant>,
    /// Aborts the keepers when it is dropped, which kills what they keep.
    _keepers: JoinSet<()>,
}

/// What there is to know about the crew.
pub(crate) enum News {
    /// Of one task.
    Of(Event),
    /// Some tasks did not stop in time.
    Overdue,
    /// All have ended, none comes again.
    AllGone,
}

impl Crew {
    /// Starts a process for each command, the number of which is the task's. `restart` says whether tasks that die
    /// are started again, `grace` how long they may take to stop. Must be called inside a runtime.
    pub(crate) fn start(commands: Vec<Command>, restart: bool, grace: Duration) -> Crew {
        let (orders, _) = watch::channel(Order::Run);
        let (teller, events) = mpsc::unbounded_channel();
        let mut keepers = JoinSet::new();
        for (number, command) in commands.into_iter().enumerate() {
            let keeper = Keeper::new(number, command, restart, teller.clone());
            keepers.spawn(keeper.keep(orders.subscribe()));
        }
        Crew {
            orders,
            events,
            grace,
            deadline: None,
            _keepers: keepers,
        }
    }

    /// Waits for the next news. Nothing is lost if the wait is given up.
    pub(crate) async fn news(&mut self) -> News {
        tokio::select! {
            event = self.events.recv() => event.map_or(News::AllGone, News::Of),
            () = sleep_until(self.deadline) => {
                self.deadline = None;
                News::Overdue
            }
        }
    }

    /// Whether the tasks were told to end.
    pub(crate) fn stopping(&self) -> bool {
        *self.orders.borrow() != Order::Run
    }

    /// Tells the tasks to end in good order.
    pub(crate) fn stop(&mut self) {
        if !self.stopping() {
            self.orders.send_replace(Order::Stop);
            self.deadline = Instant::now().checked_add(self.grace.saturating_add(LAST_PATIENCE));
        }
    }

    /// Ends the tasks at once.
    pub(crate) fn kill(&mut self) {
        self.orders.send_replace(Order::Kill);
        self.deadline = None;
    }
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
