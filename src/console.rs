//! Progress on stderr: a bar on a terminal, plain lines elsewhere.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal, Write};
use train::run::{Event, Observer};

/// Prints what a run tells.
#[derive(Default)]
pub(crate) struct Console {
    bar: Option<ProgressBar>,
}

impl Console {
    /// Prints a line, above the bar if there is one.
    pub(crate) fn say(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.println(line),
            // Nobody is left to tell when stderr is closed; the log has it all.
            None => drop(writeln!(std::io::stderr(), "{line}")),
        }
    }

    fn begin(&mut self, done: u64, iters: u64) {
        if !std::io::stderr().is_terminal() {
            return;
        }
        let bar = ProgressBar::with_draw_target(Some(iters), ProgressDrawTarget::stderr());
        // No colour, so there is nothing that NO_COLOR would switch off.
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos}/{len}  {eta} left  {wide_msg}") {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_position(done);
        self.bar = Some(bar);
    }
}

impl Observer for Console {
    fn event(&mut self, event: &Event<'_>) {
        let line = event.line();
        if let (Some(bar), Event::Step { row, report }) = (&self.bar, event) {
            bar.set_position(row.step);
            if let Some(p) = report {
                let t = &p.times;
                bar.set_message(format!(
                    "loss {:.3}  {:.0} tokens/s  {:.0} ms/step: device {:.0}, cpu {:.0}, staging {:.0}, waiting {:.0}",
                    p.loss, p.tokens_per_second, t.ms, t.device_ms, t.cpu_ms, t.staging_ms, t.waiting_ms
                ));
            }
            if !row.skipped {
                return;
            }
        }
        if let Some(line) = line {
            self.say(&line);
        }
        if let Event::Begin { done, iters } = event {
            self.begin(*done, *iters);
        }
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
