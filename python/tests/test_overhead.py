"""What a call costs besides its work: on tiny tensors, beside PyTorch's own attention."""

import time

import torch
from torch.nn.functional import scaled_dot_product_attention as sdpa

import regard


def cost(call):
    """Seconds of this thread, the best of many rounds: other work on the machine does not count."""
    best = float("inf")
    for _ in range(20):
        start = time.thread_time()
        for _ in range(200):
            call()
        best = min(best, time.thread_time() - start)
    return best


def ratio(ours, theirs):
    """The lowest of three, each measured side by side."""
    ours(), theirs()
    return min(cost(ours) / cost(theirs) for _ in range(3))


def test_a_call_on_tiny_tensors_costs_at_most_three_of_pytorch_s():
    q, k, v = (torch.randn(1, 2, 4, 8) for _ in range(3))
    found = ratio(lambda: regard.attention(q, k, v), lambda: sdpa(q, k, v))
    print(f"without gradient: {found:.2f} × SDPA's cost")
    assert found < 3


def test_forward_and_backward_on_tiny_tensors_cost_at_most_two_of_pytorch_s():
    leaves = [torch.randn(1, 2, 4, 8, requires_grad=True) for _ in range(3)]
    grad = torch.ones(1, 2, 4, 8)

    def both(call):
        return lambda: torch.autograd.grad(call(*leaves), leaves, grad)

    found = ratio(both(regard.attention), both(sdpa))
    print(f"forward and backward: {found:.2f} × SDPA's cost")
    assert found < 2
