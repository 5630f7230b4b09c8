//! Takes the terminal and gives it back, whatever happens: dropped, panicked or signalled.

use anyhow::{Context, Result};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{DisableMouseCapture, EnableMouseCapture};
use ratatui::crossterm::{cursor, execute, terminal};
use std::io::{IsTerminal, Stdout};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The terminal, taken.
pub(super) struct Screen {
    pub(super) terminal: Terminal<CrosstermBackend<Stdout>>,
    tty: Option<OwnedFd>,
}

impl Screen {
    /// Alternate screen, raw mode, no cursor; the mouse only when asked for.
    pub(super) fn take(has_mouse: bool) -> Result<Screen> {
        // A panic message on the alternate screen would vanish with it.
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            give_back();
            before(info);
        }));
        // Keys come from the terminal even where standard input is something else.
        let tty = if std::io::stdin().is_terminal() {
            None
        } else {
            let file = std::fs::File::open("/dev/tty").context("no keyboard: there is no controlling terminal")?;
            Some(OwnedFd::from(file))
        };
        terminal::enable_raw_mode().context("the terminal does not give single keys")?;
        let mut out = std::io::stdout();
        let taken = execute!(out, terminal::EnterAlternateScreen, cursor::Hide)
            .and_then(|()| if has_mouse { execute!(out, EnableMouseCapture) } else { Ok(()) })
            .and_then(|()| Terminal::new(CrosstermBackend::new(std::io::stdout())));
        match taken {
            Ok(terminal) => Ok(Screen { terminal, tty }),
            Err(error) => {
                give_back();
                Err(error).context("the terminal cannot show a screen")
            }
        }
    }

    /// Where keys come from.
    pub(super) fn input(&self) -> BorrowedFd<'_> {
        self.tty.as_ref().map_or(rustix::stdio::stdin(), AsFd::as_fd)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

fn give_back() {
    // Each is harmless where it was not taken. Nothing can be done about a terminal that is gone.
    let _ = execute!(std::io::stdout(), DisableMouseCapture, terminal::LeaveAlternateScreen, cursor::Show);
    let _ = terminal::disable_raw_mode();
}
