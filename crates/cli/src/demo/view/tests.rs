use super::*;
use crate::demo::message::Message;
use crate::demo::snapshot::State;
use crate::demo::snapshot::tests::cluster;

fn text(now: &Snapshot, columns: usize, rows: usize) -> Vec<String> {
    let lines = lines(now, columns, rows);
    lines.iter().map(Line::plain).collect()
}

/// A cluster in the middle of its work.
fn busy(ps: u32, workers: u32) -> Snapshot {
    let mut now = cluster(ps, workers);
    let count = (ps + workers) as usize;
    (0..count).for_each(|number| now.ready(number, Some(1)));
    for step in 0..500 {
        now.pass(Duration::from_millis(20 * step));
        let progress = Message::Progress {
            step,
            loss: 2.3 * (-0.01 * step as f64).exp(),
            steps_per_second: 51.26,
        };
        let worker = ps as usize + step as usize % workers.max(1) as usize;
        now.heard(worker, progress);
        if step % 50 == 0 {
            let accuracy = 1.0 - (-0.02 * step as f64).exp();
            now.heard(ps as usize, Message::Accuracy { step, accuracy });
        }
    }
    for number in 0..30 {
        now.note(Kind::Note, format!("event {number} {}", "long ".repeat(40)));
    }
    now
}

#[test]
fn nothing_is_wider_or_higher_than_the_terminal() {
    for (ps, workers) in [(1, 1), (2, 2), (3, 9), (20, 80), (0, 0)] {
        let now = busy(ps, workers.max(1));
        for columns in [0, 1, 10, 40, 79, 80, 81, 200, 400] {
            for rows in [0, 1, 5, 10, 23, 24, 60] {
                let lines = lines(&now, columns, rows);
                assert!(lines.len() <= rows, "{columns}x{rows}: {}", lines.len());
                for line in lines {
                    assert!(line.width() <= columns, "{columns}x{rows}: {line:?}");
                }
            }
        }
    }
}

#[test]
fn shows_everything_at_80_by_24() {
    let mut now = busy(2, 2);
    let text = text(&now, 80, 24);
    assert_eq!(text.len(), 24);
    let all = text.join("\n");
    for word in [
        "tensorfleet demo",
        "10.0 s",
        "step 499 of 1000",
        "103 steps/s",
        "ps 0      localhost:2222",
        "ps 1      localhost:2223",
        "worker 0  localhost:2224",
        "worker 1  localhost:2225",
        "training     51.3 steps/s",
        "loss 0.0157",
        "test accuracy 99.99 %",
        "100 %",
        "event 29",
    ] {
        assert!(all.contains(word), "'{word}' is not in:\n{all}");
    }
    assert!(all.contains("chief"));
    now.tasks[1].state = State::Killed;
    now.tasks[3].restarts = 1;
    let all = lines(&now, 80, 24);
    let all: Vec<String> = all.iter().map(Line::plain).collect();
    assert!(all[4].contains("killed"), "{all:?}");
    assert!(all[6].contains("restarted×1"), "{all:?}");
}

#[test]
fn shows_all_tasks_of_large_clusters() {
    for (ps, workers) in [(2, 10), (10, 30)] {
        let now = busy(ps, workers);
        let all = text(&now, 80, 24).join(" ") + " ";
        for task in &now.tasks {
            let name = format!("{} ", task.name());
            assert!(all.contains(&name), "{name} is not in:\n{all}");
        }
    }
    let all = text(&busy(50, 150), 80, 24).join("\n");
    assert!(all.contains("more tasks"), "{all}");
}

#[test]
fn begins_before_anything_runs() {
    let all = text(&cluster(1, 1), 80, 24).join("\n");
    assert!(all.contains("starting"), "{all}");
    assert!(all.contains("step 0 of 1000"), "{all}");
}

#[test]
fn newest_events_stay_in_sight() {
    let text = text(&busy(2, 2), 80, 24);
    let last = text.last().unwrap();
    assert!(last.contains("event 29"), "{last}");
}

#[test]
fn times_read_well() {
    assert_eq!(seconds(Duration::from_millis(1250)), "1.2 s");
    assert_eq!(seconds(Duration::from_secs(125)), "2:05 min");
}
