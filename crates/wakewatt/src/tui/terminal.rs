//! Takes the terminal and gives it back, whatever happens: dropped, panicked or signalled; and knows when it has gone.
//!
//! A terminal goes when its other end is closed (ssh ends, a window is closed, tmux is killed). Then reads give nothing
//! or EIO, writes EIO, and `poll` says HUP or ERR. Only the last is believed, because a read of nothing is also what a
//! living terminal gives in between. Nothing here may panic on it: what is left to say has no reader.

use super::keys::Decoder;
use super::update::Event;
use anyhow::{Context, Result};
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{DisableMouseCapture, EnableMouseCapture};
use ratatui::crossterm::{cursor, execute, terminal};
use ratatui::layout::Rect;
use ratatui::{Terminal, TerminalOptions, Viewport};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{OptionalActions, SpecialCodeIndex, tcgetattr, tcgetwinsize, tcsetattr};
use std::io::{IsTerminal, Stdout};
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// What a terminal without a size gets: a serial line does not know its own.
const USUAL_SIZE: (u16, u16) = (80, 24);
/// A living terminal gives nothing once in a while, not this many times in a row.
const MOST_EMPTY: usize = 1000;

/// The terminal, taken.
pub(super) struct Screen {
    /// Never dropped: the library's own way to give the cursor back panics when standard error is the terminal that
    /// went. [`give_back`] does it.
    terminal: ManuallyDrop<Terminal<CrosstermBackend<Stdout>>>,
    tty: Option<OwnedFd>,
    decoder: Decoder,
    n_empty: usize,
}

/// What the keyboard said.
#[derive(Debug, PartialEq)]
pub(super) enum Heard {
    /// These keys, perhaps none.
    Keys(Vec<Event>),
    /// There is no terminal any more.
    Gone,
}

/// Columns and rows; none when the terminal does not tell. Asked of standard output and nobody else: no program is
/// started to find out.
pub(super) fn size() -> Option<(u16, u16)> {
    match tcgetwinsize(rustix::stdio::stdout()).ok()? {
        size if size.ws_col == 0 || size.ws_row == 0 => Some(USUAL_SIZE),
        size => Some((size.ws_col, size.ws_row)),
    }
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
        IS_TAKEN.store(true, Ordering::Relaxed);
        let mut out = std::io::stdout();
        let (width, height) = size().unwrap_or(USUAL_SIZE);
        let options = TerminalOptions { viewport: Viewport::Fixed(Rect::new(0, 0, width, height)) };
        let taken = execute!(out, terminal::EnterAlternateScreen, cursor::Hide, clear())
            .and_then(|()| if has_mouse { execute!(out, EnableMouseCapture) } else { Ok(()) })
            .and_then(|()| Terminal::with_options(CrosstermBackend::new(std::io::stdout()), options));
        match taken {
            Ok(terminal) => {
                let screen =
                    Screen { terminal: ManuallyDrop::new(terminal), tty, decoder: Decoder::default(), n_empty: 0 };
                screen.never_wait();
                Ok(screen)
            }
            Err(error) => {
                give_back();
                Err(error).context("the terminal cannot show a screen")
            }
        }
    }

    /// A read gives what there is, also nothing: somebody else may have read the key that `poll` saw. What the mode was
    /// comes back with the rest.
    fn never_wait(&self) {
        if let Ok(mut mode) = tcgetattr(self.input()) {
            mode.special_codes[SpecialCodeIndex::VMIN] = 0;
            mode.special_codes[SpecialCodeIndex::VTIME] = 0;
            let _ = tcsetattr(self.input(), OptionalActions::Now, &mode);
        }
    }

    /// Where keys come from.
    pub(super) fn input(&self) -> BorrowedFd<'_> {
        self.tty.as_ref().map_or(rustix::stdio::stdin(), AsFd::as_fd)
    }

    /// Must be looked again soon whether an Escape was a key?
    pub(super) fn is_waiting(&self) -> bool {
        self.decoder.is_waiting()
    }

    /// What has been pressed, without waiting for it: one look, one read.
    pub(super) fn heard(&mut self) -> Heard {
        let mut bytes = [0u8; 1024];
        let seen = {
            let mut fds = [PollFd::from_borrowed_fd(self.input(), PollFlags::IN)];
            match poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) {
                Ok(_) => fds[0].revents(),
                Err(_) => PollFlags::empty(),
            }
        };
        if seen.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
            return Heard::Gone;
        }
        if !seen.contains(PollFlags::IN) {
            return Heard::Keys(self.decoder.pause());
        }
        match rustix::io::read(self.input(), &mut bytes) {
            Ok(0) => {
                self.n_empty += 1;
                if self.n_empty < MOST_EMPTY { Heard::Keys(Vec::new()) } else { Heard::Gone }
            }
            Ok(n) => {
                self.n_empty = 0;
                Heard::Keys(self.decoder.keys(&bytes[..n]))
            }
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => Heard::Keys(Vec::new()),
            Err(_) => Heard::Gone,
        }
    }

    /// Draws on all of a screen of this size.
    pub(super) fn draw(
        &mut self,
        (width, height): (u16, u16),
        draw: impl FnOnce(&mut ratatui::Frame<'_>),
    ) -> std::io::Result<()> {
        let area = Rect::new(0, 0, width, height);
        if self.terminal.get_frame().area() != area {
            execute!(std::io::stdout(), clear())?;
            self.terminal.resize(area)?;
        }
        self.terminal.draw(draw).map(|_| ())
    }
}

fn clear() -> terminal::Clear {
    terminal::Clear(terminal::ClearType::All)
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// Is the screen ours? Given back twice (a panic, then the drop) it would clear what is not.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

fn give_back() {
    // Nothing can be done about a terminal that is gone.
    if IS_TAKEN.swap(false, Ordering::Relaxed) {
        let mut out = std::io::stdout();
        // Empty and from the top: tmux may keep lines of a screen that was resized, and show them among the shell's.
        let _ = execute!(out, DisableMouseCapture, cursor::MoveTo(0, 0), clear());
        let _ = execute!(out, terminal::LeaveAlternateScreen, cursor::Show);
    }
    // Harmless where it was not taken.
    let _ = terminal::disable_raw_mode();
}
