from collections.abc import Sequence

Rows = tuple[int, tuple[int, ...], tuple[int, ...]]
Block = tuple[int, tuple[int, ...]]
Call = tuple[int, int, "Mechanism", tuple[int, float], Rows, Rows, Rows]
Inputs = tuple[
    Block | None,
    Sequence[Block],
    Block | None,
    Block | None,
    Block | None,
    Block | None,
    Block | None,
    Block | None,
    Block | None,
    Block | None,
    "Edges | None",
]

class Edges:
    def __new__(cls, sizes: tuple[int, int], queries: Block, keys: Block, places: Block) -> Edges: ...
    def __len__(self) -> int: ...
    @property
    def sizes(self) -> tuple[int, int]: ...

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

def forward(
    call: Call,
    out: Rows,
    inputs: Inputs | None = None,
    results: tuple[Block | None, ...] | None = None,
) -> None: ...
def backward(
    call: Call,
    grad_out: Rows,
    left: tuple[Rows | Block | None, ...],
    wanted: tuple[Rows | Block | None, ...],
    inputs: Inputs | None = None,
    arriving: tuple[Block | None, ...] | None = None,
) -> None: ...
def instruction_set() -> str: ...
def release_memory(threads: int) -> None: ...
