"""Windows of Hugging Face's models: handed on as windows where that is exactly the mask, and equal to eager everywhere."""

import contextlib
import copy
import itertools

import pytest
import torch

transformers = pytest.importorskip("transformers")

import regard.transformers  # noqa: E402
from regard import _band  # noqa: E402
from small_models import spread  # noqa: E402
from transformers import masking_utils  # noqa: E402

regard.transformers.register()

SMALL = {
    "vocab_size": 50, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 128, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": None,
}  # fmt: skip
BOTH = {"layer_types": ["sliding_attention", "full_attention"]}
#: By the name of a causal model: what its configuration needs besides.
FAMILIES = {
    "Mistral": {},
    "Mixtral": {"num_local_experts": 2, "num_experts_per_tok": 1},
    "Gemma2": {"head_dim": 8, **BOTH},
    "Gemma3": {"head_dim": 8, **BOTH},
    "GptOss": {"head_dim": 8, "num_local_experts": 2, "num_experts_per_tok": 1, **BOTH},
    "Phi3": {},
    "Qwen2": {"use_sliding_window": True, "max_window_layers": 1, **BOTH},
    "Qwen3": {"use_sliding_window": True, "max_window_layers": 1, "head_dim": 8, **BOTH},
    "Cohere2": BOTH,
    "Starcoder2": {},
    "Olmo3": BOTH,
    "Ministral": {"head_dim": 8, **BOTH},
}
LENGTH = 9
PADDINGS = ["none", "right", "left", "holes"]


def made(family, window):
    config = "Gemma3TextConfig" if family == "Gemma3" else f"{family}Config"
    config = getattr(transformers, config)(**SMALL, sliding_window=window, **FAMILIES[family])
    kind = getattr(transformers, f"{family}ForCausalLM")
    torch.manual_seed(1)
    models = [kind._from_config(copy.deepcopy(config), attn_implementation=name) for name in ("eager", "regard")]
    spread(models[0])
    models[1].load_state_dict(models[0].state_dict())
    return models


def given(padding):
    ids = torch.randint(2, 50, (2, LENGTH), generator=torch.Generator().manual_seed(3))
    mask = torch.ones(2, LENGTH, dtype=torch.int64)
    if padding == "right":
        mask[1, 6:] = 0
    if padding == "left":
        mask[1, :3] = 0
    if padding == "holes":
        mask[1, :2], mask[0, 4:6] = 0, 0
    return {"input_ids": ids, **({} if padding == "none" else {"attention_mask": mask})}


@contextlib.contextmanager
def calls(monkeypatch):
    """The options of each call of the operator."""
    seen = []

    def recorded(q, k, v, **options):
        seen.append((q.shape[2], options))
        return regard.attention(q, k, v, **options)

    with monkeypatch.context() as patch:
        patch.setattr(regard.transformers, "attention", recorded)
        yield seen


def check_no_pairs(seen, window):
    """Nothing that was handed on has an entry for each pair, and a window that matters is one."""
    assert seen
    for queries, options in seen:
        mask = options["attn_mask"]
        assert mask is None or queries == 1 or mask.shape[-2] == 1, mask.shape
    assert any("window" in options for _, options in seen)
    wide = {options["window"] for _, options in seen if "window" in options}
    assert wide == {(window - 1, 0)}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_window_is_handed_on_and_gives_eager_s_logits_and_gradients(family, monkeypatch):
    count = 0
    few = ("none", "holes")
    for window, train, padding in [*((4, True, one) for one in PADDINGS), *itertools.product((1, 30), (False,), few)]:
        models = made(family, window)
        options = given(padding)
        real = options.get("attention_mask", torch.ones(2, LENGTH)).bool()
        found = []
        with calls(monkeypatch) as seen:
            for model in models:
                model.train(train)
                logits = model(**options).logits[real]
                grads = []
                if train:
                    names, parameters = zip(*[(n, p) for n, p in model.named_parameters() if p.requires_grad])
                    grads = torch.autograd.grad(logits.square().mean(), parameters, allow_unused=True)
                found.append((logits, grads))
        check_no_pairs(seen, window)
        (expected, theirs), (logits, mine) = found
        torch.testing.assert_close(logits, expected, rtol=1e-4, atol=1e-4)
        for a, b in zip(mine, theirs):
            assert (a is None) == (b is None)
            if a is not None:
                torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4 * max(1.0, b.abs().max().item()))
        count += 1
    assert count == 8


@pytest.mark.parametrize("family", FAMILIES)
def test_generation_with_a_window_gives_eager_s_tokens_with_every_cache(family, monkeypatch):
    count = 0
    cases = list(itertools.product((3, 30), ("none", "left"), ("dynamic", "static")))
    # One family in three goes through them all, the others where most can go wrong.
    for window, padding, cache in cases if list(FAMILIES).index(family) % 3 == 0 else cases[2:4]:
        eager, ours = (model.eval() for model in made(family, window))
        options = {**given(padding), "max_new_tokens": 5, "do_sample": False, "cache_implementation": cache}
        options |= {"return_dict_in_generate": True, "output_logits": True, "disable_compile": True}
        with calls(monkeypatch) as seen:
            mine, expected = ours.generate(**options), eager.generate(**options)
        torch.testing.assert_close(torch.stack(mine.logits), torch.stack(expected.logits), rtol=1e-4, atol=1e-4)
        assert torch.equal(mine.sequences, expected.sequences) and len(mine.logits) == 5
        for queries, call in seen:
            assert call["attn_mask"] is None or call["attn_mask"].shape[-2] == 1
        count += 1
    assert count in (2, 8)


def test_a_prompt_in_pieces_sees_through_the_window_what_it_sees_at_once():
    for family, window, at in itertools.product(("Mistral", "Gemma2", "GptOss"), (3, 30), (1, 4, 7)):
        eager, ours = (model.eval() for model in made(family, window))
        ids = given("none")["input_ids"]
        with torch.no_grad():
            expected = eager(ids).logits
            cache = transformers.DynamicCache(config=ours.config)
            parts = [ours(part, past_key_values=cache).logits for part in (ids[:, :at], ids[:, at:])]
        torch.testing.assert_close(torch.cat(parts, 1), expected, rtol=1e-4, atol=1e-4)


def test_packed_sequences_see_what_eager_sees():
    for family in ("Mistral", "Gemma2", "GptOss"):
        eager, ours = (model.eval() for model in made(family, 3))
        ids = given("none")["input_ids"][:1]
        places = torch.tensor([[0, 1, 2, 3, 4, 0, 1, 2, 3]])
        with torch.no_grad():
            mine, expected = (model(ids, position_ids=places, use_cache=False).logits for model in (ours, eager))
        torch.testing.assert_close(mine, expected, rtol=1e-4, atol=1e-4)


FUNCTIONS = {
    "causal": masking_utils.causal_mask_function,
    "everything": masking_utils.bidirectional_mask_function,
    "window 1": masking_utils.sliding_window_causal_mask_function(1),
    "window 3": masking_utils.sliding_window_causal_mask_function(3),
    "window 90": masking_utils.sliding_window_causal_mask_function(90),
    "both sides 2": masking_utils.sliding_window_bidirectional_mask_function(2),
}


def test_a_band_is_the_mask_that_transformers_writes_out_and_its_options_are_that_mask():
    count = 0
    generator = torch.Generator().manual_seed(1)
    for name, function in FUNCTIONS.items():
        for nq, nk, q_offset, kv_offset in itertools.product((1, 2, 7), (1, 5, 7), (0, 1, 3, 8), (0, 2)):
            for padding in (None, nk + kv_offset - 1, nk + kv_offset, nk + kv_offset + 2):
                if padding == 0:
                    continue
                mask = None if padding is None else torch.rand(2, padding, generator=generator) > 0.3
                options = {
                    "batch_size": 2, "q_length": nq, "kv_length": nk, "q_offset": q_offset, "kv_offset": kv_offset,
                    "mask_function": function, "attention_mask": mask,
                }  # fmt: skip
                band = _band.of_model(**options)
                expected = masking_utils.sdpa_mask(**options, allow_is_causal_skip=False)
                asked = band.options()
                x = [torch.randn(2, 2, n, 4, generator=generator) for n in (nq, nk, nk)]
                mine = regard.attention(*x, **asked)
                torch.testing.assert_close(mine, regard.attention(*x, attn_mask=expected), msg=lambda text, n=name: f"{n}: {text}")
                assert torch.equal(band & True, expected) and band.shape == expected.shape
                count += 1
    assert count == 6 * 3 * 3 * 4 * 2 * 4 - 6 * 3 * 4


def test_a_mask_function_that_is_no_band_is_written_out():
    over = masking_utils.sliding_window_overlay(3)
    for function in (
        over,
        masking_utils.or_masks(over, masking_utils.causal_mask_function),
        masking_utils.and_masks(over, masking_utils.causal_mask_function, masking_utils.causal_mask_function),
        masking_utils.and_masks(masking_utils.causal_mask_function, over),
        masking_utils.chunked_causal_mask_function(2, torch.zeros(1, dtype=torch.int64)),
        lambda b, h, q, k: k <= q,
    ):
        assert _band.of_model(1, 3, 3, mask_function=function) is None
    assert _band.of_model(1, 3, 3, use_vmap=True) is None


def test_a_band_that_was_changed_or_read_is_an_ordinary_mask():
    q, k = torch.randn(2, 1, 2, 4, 8).unbind()
    for change in ("in place", "view", "copy"):
        band = _band.of_model(1, 4, 4)
        if change == "in place":
            band[..., 0] = False
        elif change == "view":
            band.select(3, 0).logical_and_(torch.tensor(False))
        else:
            band = copy.deepcopy(band)
            band[..., 0] = False
        options, mask = regard.transformers._pairs(band, q, k)
        expected = torch.ones(4, 4).tril().bool()
        expected[:, 0] = False
        assert not options and torch.equal(mask, expected[None, None]), change


def test_layers_that_are_compiled_one_by_one_take_a_band(monkeypatch):
    eager, ours = (model.eval() for model in made("Mistral", 3))
    for layer in ours.model.layers:
        layer.compile(backend="aot_eager")
    options = given("left")
    with torch.no_grad():
        real = options["attention_mask"].bool()
        torch.testing.assert_close(ours(**options).logits[real], eager(**options).logits[real], rtol=1e-4, atol=1e-4)
