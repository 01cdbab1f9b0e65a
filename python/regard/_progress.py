"""What is seen of long work: a bar in a notebook or a terminal, lines elsewhere."""

from __future__ import annotations

import html
import math
import signal
import sys
import threading
import time
import warnings
from types import FrameType, TracebackType
from typing import Any

# How often a bar is drawn anew, in seconds.
_PACE = 0.2


def _in_notebook() -> bool:
    shell = sys.modules.get("IPython") and sys.modules["IPython"].get_ipython()
    return type(shell).__name__ == "ZMQInteractiveShell"


def measure(value: Any) -> str:
    """A number in four digits."""
    return f"{value:.4g}" if isinstance(value, float) and math.isfinite(value) else str(value)


def _count(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


class Notebook:
    """A bar and the lines above it, as one output of a cell that changes."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._handle: Any = None
        self._drawn = 0.0

    def _draw(self, bar: str) -> None:
        from IPython.display import HTML, display

        lines = "\n".join(html.escape(line) for line in self._lines)
        drawn = HTML(f"<pre>{lines}</pre>{bar}")
        self._drawn = time.monotonic()
        if self._handle is None:
            self._handle = display(drawn, display_id=True)
        else:
            self._handle.update(drawn)

    def line(self, text: str) -> None:
        self._lines.append(text)
        self._draw("")

    def bar(self, text: str, done: int, of: int) -> None:
        if time.monotonic() - self._drawn >= _PACE:
            self._draw(f'<progress value="{done}" max="{max(of, 1)}"></progress> {html.escape(text)}')

    def clear(self) -> None:
        if self._handle is not None:
            self._draw("")


class Terminal:
    """A bar in the last line of a terminal; lines alone where standard error is none."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._drawn = 0.0
        self._width = 0

    def line(self, text: str) -> None:
        self.clear()
        print(text, file=sys.stderr, flush=True)

    def bar(self, text: str, done: int, of: int) -> None:
        if not self._is_terminal or time.monotonic() - self._drawn < _PACE:
            return
        self._drawn = time.monotonic()
        full = 30 * min(done, of) // max(of, 1)
        drawn = f"{'█' * full}{'░' * (30 - full)} {done}/{of} {text}"
        print("\r" + drawn.ljust(self._width), end="", file=sys.stderr, flush=True)
        self._width = len(drawn)

    def clear(self) -> None:
        if self._width:
            print("\r" + " " * self._width + "\r", end="", file=sys.stderr, flush=True)
            self._width = 0


class Listener:
    """Told of long work by the native half; shows it. While it lives the first Ctrl-C only asks to stop, and the
    second interrupts as always."""

    def __init__(self, progress: bool) -> None:
        self.interrupted = False
        self.folder: str | None = None
        self._shown: Notebook | Terminal | None = None
        if progress:
            self._shown = Notebook() if _in_notebook() else Terminal()
        self._before: Any = None
        self._listens = False
        self._plan = (0, 0)
        self._measure = ""

    def __enter__(self) -> Listener:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.getsignal(signal.SIGINT)
            # Where Ctrl-C means something else to this program, it goes on meaning that.
            if self._before is signal.default_int_handler:
                signal.signal(signal.SIGINT, self._ask)
                self._listens = True
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._listens:
            signal.signal(signal.SIGINT, self._before)
        if self._shown is not None:
            self._shown.clear()

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self.interrupted:
            raise KeyboardInterrupt
        self.interrupted = True

    def line(self, text: str) -> None:
        if self._shown is not None:
            self._shown.line(text)

    # What the native half calls.

    def place(self, folder: str) -> None:
        self.folder = folder

    def note(self, text: str) -> None:
        # What is said of data or options is said without a bar, too.
        if self._shown is None:
            warnings.warn(text, stacklevel=4)
        self.line(text)

    def begin(self, epochs: int, done: int, batches: int, batch: int, parameters: int) -> None:
        self._plan = (epochs, batches)
        parts = (_count(epochs, "epoch", "epochs"), _count(batches, "batch", "batches"))
        self.line(f"{_count(parameters, 'parameter', 'parameters')}; {parts[0]} of {parts[1]}")
        if done or batch:
            self.line(f"resumed after epoch {done} and {_count(batch, 'batch', 'batches')}")

    def batch(self, epoch: int, batch: int, batches: int, examples: int, loss: float, rate: float) -> None:
        if self._shown is not None:
            self._shown.bar(f"epoch {epoch} of {self._plan[0]}, loss {loss:.4f}{self._measure}", batch, batches)

    def phase(self, phase: str, done: int, of: int) -> None:
        if self._shown is not None:
            self._shown.bar(phase, done, of)

    def epoch(self, row: str) -> bool:
        """Whether to go on."""
        return True
