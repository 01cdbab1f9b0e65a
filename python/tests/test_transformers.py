"""Hugging Face's models on the operator, from random configurations, offline: equal to eager and to sdpa."""

import copy
import importlib
import linecache
import textwrap

import pytest
import torch

transformers = pytest.importorskip("transformers")

import regard.transformers  # noqa: E402

regard.transformers.register()

SMALL = {"vocab_size": 50, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
OFF = {"attention_dropout": 0.0}


def models():
    t = transformers
    return {
        "bert": (t.BertModel, t.BertConfig(**SMALL, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)),
        "llama with grouped heads": (t.LlamaForCausalLM, t.LlamaConfig(**SMALL, num_key_value_heads=2)),
        "gpt2": (
            t.GPT2LMHeadModel,
            t.GPT2Config(vocab_size=50, n_embd=32, n_layer=2, n_head=4, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0),
        ),
        "t5": (
            t.T5ForConditionalGeneration,
            t.T5Config(vocab_size=50, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, dropout_rate=0.0,
                       relative_attention_num_buckets=8, relative_attention_max_distance=12),
        ),
        "vit": (
            t.ViTModel,
            t.ViTConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, image_size=16,
                        patch_size=4, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0),
        ),
        "mistral with a window": (
            t.MistralForCausalLM,
            t.MistralConfig(**SMALL, num_key_value_heads=2, sliding_window=4),
        ),
    }  # fmt: skip


def made(kind, config, implementation):
    # A copy: the implementation is written into the configuration, which both models would share.
    return kind._from_config(copy.deepcopy(config), attn_implementation=implementation)


def inputs(name):
    generator = torch.Generator().manual_seed(2)
    if name == "vit":
        return {"pixel_values": torch.randn(2, 3, 16, 16, generator=generator)}
    ids = torch.randint(1, 50, (2, 11), generator=generator)
    mask = torch.ones(2, 11, dtype=torch.int64)
    mask[1, 7:] = 0
    given = {"input_ids": ids, "attention_mask": mask}
    if name == "t5":
        given["decoder_input_ids"] = torch.randint(1, 50, (2, 6), generator=generator)
    return given


def result(outputs):
    return outputs.logits if hasattr(outputs, "logits") else outputs.last_hidden_state


def seen(name, x):
    """What is not padding."""
    return x if name in ("vit", "t5") else torch.cat([x[0], x[1, :7]])


@pytest.mark.parametrize("padded", [True, False])
@pytest.mark.parametrize("name", list(models()))
def test_forward_and_gradients_equal_pytorch_s_attention_in_float64(name, padded):
    kind, config = models()[name]
    given = inputs(name)
    if not padded:
        given.pop("attention_mask", None)
    torch.manual_seed(1)
    # Not eager, which takes some models' softmax in float32.
    theirs = made(kind, config, "sdpa").double().train()
    ours = made(kind, config, "regard").double().train()
    ours.load_state_dict(theirs.state_dict())
    given = {key: x.double() if x.is_floating_point() else x for key, x in given.items()}
    found = []
    for model in (theirs, ours):
        out = result(model(**given))
        out = seen(name, out) if padded else out
        names, parameters = zip(*[(n, p) for n, p in model.named_parameters() if p.requires_grad])
        found.append((out, names, torch.autograd.grad(out.square().sum(), parameters, allow_unused=True)))
    torch.testing.assert_close(found[1][0], found[0][0], rtol=1e-8, atol=1e-8)
    for parameter, theirs, mine in zip(found[0][1], found[0][2], found[1][2]):
        if theirs is None:
            assert mine is None, parameter
        else:
            torch.testing.assert_close(mine, theirs, rtol=1e-7, atol=1e-7, msg=lambda text, p=parameter: f"{p}: {text}")


@pytest.mark.parametrize("name", list(models()))
def test_attentions_are_returned_by_the_fast_kernels(name):
    kind, config = models()[name]
    given = inputs(name)
    torch.manual_seed(1)
    eager = made(kind, config, "eager").eval()
    ours = made(kind, config, "regard_weights").eval()
    ours.load_state_dict(eager.state_dict())
    field = "encoder_attentions" if name == "t5" else "attentions"
    with torch.no_grad():
        theirs, mine = (getattr(m(**given, output_attentions=True), field) for m in (eager, ours))
    assert len(mine) == len(theirs) > 0
    for a, b in zip(mine, theirs):
        if name not in ("vit", "t5"):
            a, b = (torch.cat([x[0], x[1, :, :7]], 1) for x in (a, b))
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["llama with grouped heads", "gpt2", "mistral with a window"])
def test_generation_with_a_cache_equals_eager(name):
    kind, config = models()[name]
    torch.manual_seed(1)
    eager = made(kind, config, "eager").eval()
    ours = made(kind, config, "regard").eval()
    ours.load_state_dict(eager.state_dict())
    ids = inputs(name)["input_ids"][:1]
    options = {"max_new_tokens": 8, "do_sample": False, "pad_token_id": 0}
    assert torch.equal(ours.generate(ids, **options), eager.generate(ids, **options))


def test_what_the_operator_does_not_know_is_refused_by_name():
    x = torch.zeros(1, 2, 3, 4)
    for name in ("block_indices", "cu_seq_lens_q", "head_mask"):
        with pytest.raises(regard.transformers.Refused, match=name):
            regard.transformers._forward(None, x, x, x, None, **{name: torch.zeros(2)})


OWN_CODE = {
    "BloomModel": ("BloomConfig", {"hidden_size": 32, "n_layer": 1, "n_head": 4, "vocab_size": 50}),
    "CodeGenModel": ("CodeGenConfig", {"n_embd": 32, "n_layer": 1, "n_head": 4, "rotary_dim": 4, "vocab_size": 50}),
    "FalconModel": ("FalconConfig", {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4, "vocab_size": 50}),
    "GPTJModel": ("GPTJConfig", {"n_embd": 32, "n_layer": 1, "n_head": 4, "rotary_dim": 4, "vocab_size": 50}),
    "MPNetModel": ("MPNetConfig", SMALL),
    "RemBertModel": ("RemBertConfig", SMALL),
    "MegatronBertModel": ("MegatronBertConfig", SMALL),
    "RoFormerModel": ("RoFormerConfig", SMALL),
    "SqueezeBertModel": ("SqueezeBertConfig", {**SMALL, "embedding_size": 32}),
}


@pytest.mark.parametrize("name", OWN_CODE)
def test_a_model_with_attention_code_of_its_own_is_refused_by_name_when_it_is_loaded(name):
    config, options = OWN_CODE[name]
    with pytest.raises(regard.transformers.Refused, match=f"{name}.*'eager'"):
        made(getattr(transformers, name), getattr(transformers, config)(**options), "regard")
    made(getattr(transformers, name), getattr(transformers, config)(**options), "eager")


def test_registering_twice_checks_once():
    before = transformers.PreTrainedModel.get_correct_attn_implementation
    regard.transformers.register()
    assert transformers.PreTrainedModel.get_correct_attn_implementation is before


@pytest.mark.parametrize("kind", ["Gemma2", "GptOss"])
def test_capped_scores_and_attention_sinks_equal_eager_and_give_its_weights(kind):
    options = {**SMALL, "num_key_value_heads": 2, "head_dim": 8}
    if kind == "GptOss":
        options |= {"num_local_experts": 2, "num_experts_per_tok": 1}
    else:
        options |= {"attn_logit_softcapping": 0.7}
    config = getattr(transformers, f"{kind}Config")(**options)
    model = getattr(transformers, f"{kind}ForCausalLM")
    torch.manual_seed(1)
    eager = made(model, config, "eager").eval()
    with torch.no_grad():
        for x in eager.parameters():
            x.normal_(std=0.3)
    ours = made(model, config, "regard_weights").eval()
    ours.load_state_dict(eager.state_dict())
    given = inputs("llama with grouped heads")
    theirs, mine = (m(**given, output_attentions=True) for m in (eager, ours))
    torch.testing.assert_close(seen("", mine.logits), seen("", theirs.logits), rtol=1e-4, atol=1e-4)
    for a, b in zip(mine.attentions, theirs.attentions):
        torch.testing.assert_close(*(torch.cat([x[0], x[1, :, :7]], 1) for x in (a, b)), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kept", [1, 3])
def test_layers_that_are_given_the_last_queries_alone_see_what_eager_sees(kept):
    kind = getattr(transformers, "Gemma4ForCausalLM", None)
    if kind is None:
        pytest.skip("this transformers has no Gemma 4")
    config = transformers.Gemma4TextConfig(
        **SMALL | {"num_hidden_layers": 4}, num_key_value_heads=2, head_dim=8, global_head_dim=8, num_kv_shared_layers=2,
        vocab_size_per_layer_input=50, hidden_size_per_layer_input=8, sliding_window=4,
        layer_types=["sliding_attention", "full_attention", "sliding_attention", "full_attention"],
    )  # fmt: skip
    torch.manual_seed(1)
    eager = made(kind, config, "eager").eval()
    ours = made(kind, config, "regard").eval()
    ours.load_state_dict(eager.state_dict())
    ids = inputs("")["input_ids"]
    theirs, mine = (m(input_ids=ids, logits_to_keep=kept).logits for m in (eager, ours))
    torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["BloomModel", "GPTJModel"])
def test_a_user_s_subclass_of_a_refused_model_is_refused(name):
    config, options = OWN_CODE[name]
    mine = type("Mine", (getattr(transformers, name),), {"__module__": __name__})
    with pytest.raises(regard.transformers.Refused, match="Mine computes attention by code of its own"):
        made(mine, getattr(transformers, config)(**options), "regard")


def test_a_user_s_subclass_of_a_served_model_gives_what_the_model_gives():
    kind, config = models()["llama with grouped heads"]
    mine = type("Mine", (kind,), {"__module__": __name__})
    torch.manual_seed(1)
    eager = made(kind, config, "eager").eval()
    ours = made(mine, config, "regard").eval()
    ours.load_state_dict(eager.state_dict())
    given = inputs("")
    torch.testing.assert_close(seen("", ours(**given).logits), seen("", eager(**given).logits), rtol=1e-4, atol=1e-5)


OWN_ATTENTION = textwrap.dedent("""
    from torch import nn
    from transformers import LlamaConfig, LlamaModel, PreTrainedModel

    class OwnAttention(nn.Module):
        def forward(self, q, k, v, mask):
            return (q @ k.mT + mask).softmax(-1) @ v

    class Mine(LlamaModel):
        pass

    class Alone(PreTrainedModel):
        config_class = LlamaConfig
""")


@pytest.mark.parametrize("readable", [True, False])
@pytest.mark.parametrize("name", ["Mine", "Alone"])
def test_a_model_whose_own_file_attends_or_cannot_be_read_is_refused(name, readable, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    module = f"models_of_{name}_{readable}"
    file = tmp_path / f"{module}.py"
    file.write_text(OWN_ATTENTION if readable else OWN_ATTENTION.replace("OwnAttention", "Other"))
    kind = getattr(importlib.import_module(module), name)
    if not readable:
        file.unlink()
        linecache.clearcache()
    with pytest.raises(regard.transformers.Refused, match="code of its own" if readable else "cannot be read"):
        made(kind, transformers.LlamaConfig(**SMALL), "regard")


def test_an_implementation_that_is_set_after_loading_is_refused_when_the_model_is_called():
    config, options = OWN_CODE["BloomModel"]
    model = transformers.BloomModel(getattr(transformers, config)(**options))
    model.config._attn_implementation = "regard"
    with pytest.raises(regard.transformers.Refused, match="code of its own"):
        model(torch.ones(1, 3, dtype=torch.int64))
    mine = type("Mine", (transformers.BloomModel,), {"__module__": __name__})
    model = mine(getattr(transformers, config)(**options))
    model.config._attn_implementation = "regard"
    with pytest.raises(regard.transformers.Refused, match="code of its own"):
        model(torch.ones(1, 3, dtype=torch.int64))
    kind, config = models()["llama with grouped heads"]
    served = made(kind, config, "eager").eval()
    expected = served(inputs("")["input_ids"]).logits
    served.config._attn_implementation = "regard"
    torch.testing.assert_close(served(inputs("")["input_ids"]).logits, expected, rtol=1e-4, atol=1e-5)
