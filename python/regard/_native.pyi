from collections.abc import Sequence
from typing import final

_Rows = tuple[int, tuple[int, ...], tuple[int, ...]]
_Block = tuple[int, tuple[int, ...]]
_Place = int | tuple[int, int]
_Call = tuple[int, _Place, "Mechanism", tuple[int, float], _Rows, _Rows, _Rows]
_Inputs = tuple[
    _Block | None,
    Sequence[_Block],
    _Block | None,
    _Block | None,
    _Block | None,
    _Block | None,
    _Block | None,
    _Block | None,
    _Block | None,
    _Block | None,
    "Edges | EdgesAt | None",
]

@final
class Edges:
    def __new__(cls, sizes: tuple[int, int], queries: _Block, keys: _Block, places: _Block, repeated: bool) -> Edges: ...
    def __len__(self) -> int: ...
    @property
    def sizes(self) -> tuple[int, int]: ...
    @property
    def has_repeats(self) -> bool: ...
    def pairs(self, queries: _Block, keys: _Block) -> None: ...

@final
class EdgesAt:
    def __new__(cls, sizes: tuple[int, int], len: int, longest: int, addresses: tuple[int | None, ...]) -> EdgesAt: ...

@final
class Mechanism:
    def __new__(
        cls,
        score: tuple[str, float | str | None],
        normalizer: str,
        causal: bool,
        window: tuple[int, int] | None,
        offset: int | None,
    ) -> Mechanism: ...
    @property
    def parameters(self) -> list[str]: ...

@final
class Run:
    def __new__(cls, threads: int, folder: str, settings: Sequence[str], device: str) -> Run: ...
    @property
    def task(self) -> str: ...
    @property
    def config(self) -> str: ...
    @property
    def notes(self) -> list[str]: ...
    def metrics(self) -> list[str]: ...
    def predict(self, threads: int, inputs: Sequence[str]) -> list[str]: ...
    def attention(self, threads: int, input: str) -> list[tuple[str, bytes]]: ...
    def show(self, threads: int, input: str, scene: str | None) -> tuple[str, str]: ...
    def evaluate(self, threads: int, part: str, listener: object) -> tuple[str, list[str]]: ...
    def shapes(self) -> list[tuple[str, list[int]]]: ...
    def parameter(self, name: str) -> bytes: ...
    def set_parameters(self, given: Sequence[tuple[str, list[int], bytes]]) -> None: ...
    def save_parameters(self, path: str) -> None: ...

def train_run(request: object, listener: object) -> tuple[str, str]: ...
def task_names() -> list[tuple[str, str]]: ...
def task_options(task: str, settings: Sequence[str]) -> str: ...
def forward(
    call: _Call,
    out: _Rows,
    inputs: _Inputs | None = None,
    results: tuple[_Block | None, ...] | None = None,
) -> None: ...
def backward(
    call: _Call,
    grad_out: _Rows,
    left: tuple[_Rows | _Block | None, ...],
    wanted: tuple[_Rows | _Block | None, ...],
    inputs: _Inputs | None = None,
    arriving: tuple[_Block | None, ...] | None = None,
) -> None: ...
def forms(call: _Call, inputs: _Inputs | None = None) -> list[str]: ...
def instruction_set() -> str: ...
def release_memory(threads: int) -> None: ...
def use_openmp(parallel: int, max_threads: int) -> None: ...

__all__ = [
    "Edges",
    "EdgesAt",
    "Mechanism",
    "Run",
    "backward",
    "forms",
    "forward",
    "instruction_set",
    "release_memory",
    "task_names",
    "task_options",
    "train_run",
    "use_openmp",
]
