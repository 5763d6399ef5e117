//! A bar on stderr for long work, and the user's wish to stop handed to the stages.

use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use skinbind::progress::Stage;

use super::Context;

/// Steps of the bar. It is redrawn only where it moves on by one.
const STEPS: f64 = 200.0;

/// A progress bar, shown only on a terminal.
pub struct Bar<'a> {
    context: &'a Context,
    bar: ProgressBar,
    shown: Mutex<Option<(Stage, u64)>>,
}

impl<'a> Bar<'a> {
    /// A bar; `quiet` for none.
    pub fn new(context: &'a Context, quiet: bool) -> Self {
        // On anything but a terminal indicatif draws nothing by itself.
        let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(Some(STEPS as u64), target);
        if let Ok(style) = ProgressStyle::with_template("{msg:10} [{bar:40}] {percent:>3}% {elapsed}") {
            bar.set_style(style.progress_chars("=> "));
        }
        Self { context, bar, shown: Mutex::new(None) }
    }

    /// Takes note of how far a stage is; says whether to go on.
    pub fn update(&self, stage: Stage, fraction: f64) -> ControlFlow<()> {
        if self.context.cancel.load(Ordering::Relaxed) {
            return ControlFlow::Break(());
        }
        let now = (stage, (fraction.clamp(0.0, 1.0) * STEPS) as u64);
        // Another thread that is drawing will do: nobody waits for the bar.
        if let Ok(mut shown) = self.shown.try_lock()
            && *shown != Some(now)
        {
            if shown.is_none_or(|(before, _)| before != stage) {
                self.bar.set_message(stage.name());
                self.bar.enable_steady_tick(Duration::from_millis(200));
            }
            self.bar.set_position(now.1);
            *shown = Some(now);
        }
        ControlFlow::Continue(())
    }
}

impl Drop for Bar<'_> {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
