"""Threads, forks, the GIL, memory: what the package does to the process it lives in."""

import multiprocessing
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import torch

import regard


def run(code, **environment):
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **environment}, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


COUNT = """
import numpy as np, regard
x = np.ones((1, 8, 512, 64), np.float32)
regard.attention(x, x, x)
names = [open(f"/proc/self/task/{t}/comm").read() for t in __import__("os").listdir("/proc/self/task")]
print(regard.get_num_threads(), sum(name.startswith("regard-") for name in names))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted by Linux's means")
def test_threads_obey_the_environment_and_set_num_threads():
    assert run(COUNT, OMP_NUM_THREADS="3") == "3 3"
    assert run(COUNT.replace("x = np", "regard.set_num_threads(2); x = np"), OMP_NUM_THREADS="3") == "2 2"
    assert run("import torch; torch.set_num_threads(4)" + COUNT) == "4 4"
    assert run(COUNT, OMP_NUM_THREADS="1") == "1 0"


OF_TORCH = """
import os, torch, regard, regard._openmp
torch.set_num_threads(3)
x = torch.ones(1, 8, 512, 64)
regard.attention(x, x, x)
names = [open(f"/proc/self/task/{t}/comm").read() for t in os.listdir("/proc/self/task")]
ours = sum(name.startswith("regard-") for name in names)
print(regard.get_num_threads(), ours, regard._openmp.functions_of_torch() > (0, 0))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted by Linux's means")
def test_tensors_are_computed_on_the_threads_of_torch():
    told = run(OF_TORCH)
    if told == "3 3 False":
        pytest.skip("this PyTorch has no OpenMP of GNU's")
    assert told == "3 0 True"  # three threads, none of them ours
    # A team of another size would be made anew at every change between PyTorch's calls and ours.
    assert run(OF_TORCH.replace("x = torch", "regard.set_num_threads(2); x = torch")) == "2 2 True"


AFTER_RELEASE = OF_TORCH.replace("names =", "regard.release_memory(); names =")


@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted by Linux's means")
def test_giving_memory_back_begins_no_threads():
    assert run(AFTER_RELEASE) in ("3 0 True", "3 3 False")


FORKED = """
import os, torch, regard
torch.set_num_threads(2)
x = torch.ones(1, 8, 512, 64)
BEFORE
child = os.fork()
if child == 0:
    # PyTorch's own operators would wait for threads that a child does not have.
    print(float(regard.attention(x, x, x).numpy().sum()), flush=True)
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
@pytest.mark.parametrize("before", ["regard.attention(x, x, x)", "torch.ones(999, 999) @ torch.ones(999, 999); x + x"])
def test_a_forked_child_does_not_wait_for_its_parents_threads(before):
    assert run(FORKED.replace("BEFORE", before)).split() == [str(float(8 * 512 * 64)), "0"]


@pytest.mark.parametrize("normalizer", ["softmax", "entmax15", "sigmoid"])
@pytest.mark.parametrize("graph", [False, True])
def test_any_number_of_threads_gives_the_same_bits(normalizer, graph):
    q, k, v = (torch.randn(2, 4, 300, 32, requires_grad=True) for _ in range(3))
    bias = torch.randn(4, 1, 300, requires_grad=True)
    edges = regard.Edges(torch.randint(300, (2, 9000)), 300) if graph else None
    results = []
    for threads in (1, 2, 3):
        regard.set_num_threads(threads)
        out = regard.attention(q, k, v, attn_mask=bias, normalizer=normalizer, edges=edges, dropout_p=0.1, seed=1)
        results.append((out, *torch.autograd.grad(out.square().sum(), (q, k, v, bias))))
    regard.set_num_threads(None)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other))


def test_numpy_alone_is_enough():
    code = """
import sys
sys.modules["torch"] = None  # as if it were not installed
import numpy as np, regard
x = np.eye(4)
print(regard.attention(x, x, x, normalizer="sparsemax").shape, "torch" in sys.modules and sys.modules["torch"])
"""
    assert run(code) == "(4, 4) None"


def _in_child(queue):
    x = np.ones((1, 8, 512, 64), np.float32)
    queue.put(float(regard.attention(x, x, x).sum()))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_forked_child_computes_with_threads_of_its_own():
    x = np.ones((1, 8, 512, 64), np.float32)
    expected = float(regard.attention(x, x, x).sum())  # the parent's threads are running
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_in_child, args=(queue,))
    child.start()
    assert queue.get(timeout=60) == expected
    child.join(60)
    assert child.exitcode == 0


class Attending(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, n):
        x = torch.full((1, 4, 256, 64), float(n))
        return regard.attention(x, x, x).mean()


def test_workers_of_a_data_loader_attend():
    x = torch.ones(1, 8, 512, 64)
    regard.attention(x, x, x)
    loader = torch.utils.data.DataLoader(Attending(), batch_size=4, num_workers=2, multiprocessing_context="fork")
    seen = torch.cat(list(loader))
    torch.testing.assert_close(seen, torch.arange(8.0))


def test_other_python_threads_run_meanwhile():
    x = np.random.default_rng(0).normal(size=(1, 8, 1500, 64))
    ticks, done = [], threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    other = threading.Thread(target=tick)
    other.start()
    time.sleep(0.05)
    start = time.perf_counter()
    regard.attention(x, x, x)
    end = time.perf_counter()
    done.set()
    other.join()
    inside = [t for t in ticks if start < t < end]
    # Where the GIL is held there is none at all until the call is over.
    assert end - start > 0.02 and len(inside) > 5, (end - start, len(inside))


def test_many_python_threads_call_at_once_and_get_the_same():
    x = torch.randn(1, 4, 200, 32)
    expected = regard.attention(x, x, x)
    wrong = []

    def call():
        for _ in range(20):
            if not torch.equal(regard.attention(x, x, x), expected):
                wrong.append(1)

    threads = [threading.Thread(target=call) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read by Linux's means")
def test_ten_thousand_calls_leak_nothing():
    q, k, v = (torch.randn(1, 2, 16, 16, requires_grad=True) for _ in range(3))
    bias = torch.randn(2, 16, 16, requires_grad=True)
    mask = torch.ones(16, 16, dtype=torch.bool)
    a = np.ones((4, 8))
    index = torch.tensor([[0, 1, 2], [1, 2, 3]])

    def call(n):
        out, aux = regard.attention(q, k, v, attn_mask=bias, return_aux=("weights", "lse"))
        (out.sum() + aux.lse.sum()).backward()
        q.grad = k.grad = v.grad = bias.grad = None
        regard.attention(q, k, v).sum().backward()
        regard.attention(a, a, a, normalizer="sparsemax", scale=n * 1e-6)  # another mechanism each time
        regard.attention(q, k, v, attn_mask=mask, dropout_p=0.1)
        regard.attention(q[0], k[0], v[0], edges=torch.cat([index, index + 1], 1))
        try:
            regard.attention(a, a, a[:2])
        except ValueError:
            pass

    for n in range(300):
        call(n)
    before = resident()
    for n in range(2000):  # five calls and a refusal each: ten thousand
        call(n)
    grown = resident() - before
    assert grown < 2 << 20, f"{grown} bytes more than before"
