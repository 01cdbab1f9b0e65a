"""Models of every folder of `transformers`, built small from their own configurations, and what to feed them."""

import importlib
import inspect
import pkgutil
import re

import torch
from transformers import PretrainedConfig, PreTrainedModel

#: Sizes by the names that configurations give them; the first pattern that matches decides.
SIZES = [
    (r"(^|_)(num_)?(hidden_|encoder_|decoder_|attention_|text_|vision_|prediction_|cross_|transformer_|temporal_|backbone_)*layers$", 2),
    (r"^(n_layers?|num_blocks|depth|n_blocks|num_layers|hidden_layers|num_hidden_groups|encoder_depth|decoder_depth)$", 2),
    (r"(num_key_value_heads|n_kv_heads?|num_kv_heads|num_query_groups|multi_query_group_num|encoder_kv_heads|decoder_kv_heads)$", 2),
    (r"(num_attention_heads|attention_heads|n_heads?|num_heads|num_head|n_head)$", 4),
    (r"^(head_dim|d_kv|kv_channels|attention_head_size|attention_key_size|global_head_dim|v_head_dim|swa_head_dim|swa_v_head_dim)$", 8),
    (r"^qk_(nope|rope)_head_dim$|^index_head_dim$|^rotary_dim$|^qk_head_dim$", 8),
    (r"^(q|kv)_lora_rank$|^o_lora_rank$|^index_n_heads$", 8),
    (r"(intermediate_size|ffn_dim|d_ff|n_inner|inner_dim|feedforward_dim|ffn_hidden_size|mlp_dim|intermediate_dim|feed_forward_proj_size)$", 48),
    (r"^(hidden_size|d_model|n_embd|dim|embed_dim|hidden_dim|emb_dim|model_dim|decoder_hidden_size|encoder_hidden_size|width|d_embed)$", 32),
    (r"(projection_dim|projection_size|embedding_size|embedding_dim|hidden_size|out_hidden_size|conv_dim|output_dim|word_embed_proj_dim)$", 32),
    (r"_vocab_size$|^(vocab_size|text_vocab_size|audio_vocab_size|codebook_size|unit_vocab_size|char_vocab_size|n_vocab|speech_vocab_size)$", 99),
    (r"^(max_position_embeddings|n_positions|n_ctx|max_seq_len|max_sequence_length|max_seq_length|max_source_positions|max_target_positions|seq_length|context_length)$", 64),
    (r"^(num_experts|num_local_experts|n_routed_experts|moe_num_experts|num_routed_experts|n_experts)$", 4),
    (r"^(num_experts_per_tok|num_experts_per_token|moe_topk|moe_k|top_k_experts|experts_per_token|moe_num_active_experts)$", 2),
    (r"^n_shared_experts$|^num_shared_experts$", 1),
    (r"^(n_group|topk_group|num_expert_groups)$", 1),
    (r"^(first_k_dense_replace|num_dense_layers)$", 1),
    (r"^(image_size|img_size|input_size|pretrain_image_size)$", 32),
    (r"^(patch_size|vision_patch_size)$", 8),
    (r"^(num_mel_bins|num_mels|n_mels|feature_size|input_feat_per_channel|audio_channel)$", 16),
    (r"^(num_latents|num_queries|num_query_tokens|query_length)$", 6),
    (r"^(mamba_d_state|ssm_state_size|state_size|mamba_n_heads|mamba_num_heads|linear_num_value_heads|linear_num_key_heads)$", 4),
    (r"^(mamba_head_dim|mamba_d_head|linear_key_head_dim|linear_value_head_dim)$", 16),
    (r"^(sliding_window|attention_window|local_window_size|window)$", 6),
    (r"^(num_codebooks)$", 2),
    (r"^(index_topk|sparse_topk|block_topk|index_block_size|sparse_block_size|sparse_topk_blocks)$", 4),
]  # fmt: skip
OFF = re.compile(r"drop(out|_rate|path|_path|_prob)?|pdrop|layerdrop|mask_time_prob|mask_feature_prob|jitter")
DROPPED = ("layer_types", "mlp_layer_types", "attn_layer_types", "layers_block_type", "block_types", "torch_dtype", "dtype",
           "transformers_version", "model_type", "architectures", "auto_map", "id2label", "label2id", "no_rope_layers")  # fmt: skip
KEPT = re.compile(r"feat_extract|conv_|_conv|adapter_layers|num_stages")
#: Options of models in which only some layers attend.
PERIODS = ("attn_layer_period", "full_attention_interval", "attn_layer_indices", "layers_block_type", "hybrid_layer_ids")
ROPE = ("rope_parameters", "rope_scaling")


def folders():
    return sorted(m.name for m in pkgutil.iter_modules(importlib.import_module("transformers.models").__path__) if m.ispkg)


def smaller(config):
    """The keyword arguments of a smaller configuration of the same kind."""
    try:
        given = config.to_dict()
    except Exception:
        given = dict(vars(config))
    found = {}
    for name, value in given.items():
        if name in DROPPED or name.startswith("_"):
            continue
        try:
            real = getattr(config, name, value)
        except Exception:  # what differs between layers
            real = value
        if isinstance(real, PretrainedConfig):
            found[name] = {**smaller(real), **({"model_type": real.model_type} if real.model_type else {})}
        else:
            size = _size(name, value, given)
            if size is not None:
                found[name] = size
    return found


def _size(name, value, given):
    """A smaller value of an option, or none where it stays."""
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if name in ROPE:
        # Read where positions have three parts, ignored elsewhere.
        return {**value, "mrope_section": [2, 1, 1]} if isinstance(value, dict) and "rope_type" in value else None
    if name.endswith(("token_id", "token_index", "pad_idx", "padding_idx")):
        # Below what is fed, so that nothing is taken for a picture or an end.
        return (0 if "pad" in name else 3) if is_whole and value >= 5 else None
    if OFF.search(name) and isinstance(value, (int, float)) and not isinstance(value, bool):
        return type(value)(0)
    if isinstance(value, (list, tuple)) and value and all(isinstance(x, int) for x in value):
        if name in ("depths", "num_heads", "num_attention_heads"):
            return [1 if name == "depths" else 2] * len(value)
        return [1] if name.endswith("layer_indices") else None
    if name == "head_dim" and ("qk_rope_head_dim" in given or value is None):
        return 8 if value is None and "qk_rope_head_dim" not in given else None
    if name == "num_key_value_heads" and "qk_rope_head_dim" in given:
        return 4 if is_whole else None  # one for each head: they share a latent
    if not is_whole or KEPT.search(name):
        return None
    for pattern, size in SIZES:
        if re.search(pattern, name):
            if size == 2 and "layers" in name and any(period in given for period in PERIODS):
                size = 8  # as many as it takes until one of them attends
            return min(size, value) if value > 0 else None
    return None


def kinds(folder):
    """The configuration and model classes of a folder: the plainest model first, one for each configuration."""
    found = {}
    package = importlib.import_module(f"transformers.models.{folder}")
    modules = [m.name for m in pkgutil.iter_modules(package.__path__) if m.name.startswith("modeling_")]
    for name in modules:
        module = importlib.import_module(f"transformers.models.{folder}.{name}")
        for _, kind in inspect.getmembers(module, inspect.isclass):
            if not issubclass(kind, PreTrainedModel) or kind.__module__ != module.__name__ or kind.config_class is None:
                continue
            if kind.__name__.endswith(("PreTrainedModel", "PretrainedModel")) or kind.forward is torch.nn.Module.forward:
                continue
            found.setdefault(kind.config_class, []).append(kind)
    return {config: sorted(models, key=_rank) for config, models in found.items()}


def _rank(kind):
    name = kind.__name__
    for rank, end in enumerate(("ForConditionalGeneration", "ForCausalLM", "LMHeadModel", "Model", "ForMaskedLM")):
        if name.endswith(end):
            return rank, len(name), name
    return 9, len(name), name


def spread(model):
    """Weights large enough for attention to matter: fresh models attend almost evenly."""
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for name, x in sorted(model.named_parameters()):
            if x.dim() >= 2 and x.is_floating_point():
                fan = x[0].numel()
                scale = 1.0 if "embed" in name and x.dim() == 2 else 1.5 / max(fan, 1) ** 0.5
                x.copy_(torch.randn(x.shape, generator=generator, dtype=torch.float32).to(x) * scale)
    return model


def ids(high, rows, length, seed=2):
    return torch.randint(5, max(high, 6), (rows, length), generator=torch.Generator().manual_seed(seed))


def first(config, names, default):
    for part in (config, *(getattr(config, n, None) for n in getattr(config, "sub_configs", {}) or {})):
        for name in names:
            value = getattr(part, name, None)
            if isinstance(value, int) and not isinstance(value, bool):
                return value
            if isinstance(value, (list, tuple)) and value and isinstance(value[0], int):
                return value[0]
    return default


def inputs(model, padding):
    """Keyword arguments by trial: candidates for what the model may want, plainest first."""
    config = model.config
    wants = inspect.signature(model.forward).parameters
    generator = torch.Generator().manual_seed(3)
    vocabulary = min(first(config, ["vocab_size", "n_vocab", "text_vocab_size"], 99), 99)
    length = 11
    mask = torch.ones(2, length, dtype=torch.int64)
    if padding == "right":
        mask[1, 7:] = 0
    if padding == "left":
        mask[1, :4] = 0
    text = {"input_ids": ids(vocabulary, 2, length), "attention_mask": mask}
    decoder = {"decoder_input_ids": ids(vocabulary, 2, 6, seed=4)}
    size = first(config, ["image_size", "img_size"], 32)
    channels = first(config, ["num_channels", "in_channels", "in_chans"], 3)
    image = {"pixel_values": torch.randn(2, channels, size, size, generator=generator)}
    video = {"pixel_values": torch.randn(2, first(config, ["num_frames"], 4), channels, size, size, generator=generator)}
    mels = first(config, ["num_mel_bins", "feature_size", "input_feat_per_channel", "num_mels", "input_dim"], 16)
    wave = {"input_values": torch.randn(2, 2000, generator=generator)}
    wave_mask = torch.ones(2, 2000, dtype=torch.int64)
    if padding == "right":
        wave_mask[1, 1200:] = 0
    frames = torch.ones(2, 40, dtype=torch.int64)
    if padding == "right":
        frames[1, 24:] = 0
    name = model.main_input_name
    candidates = []
    if "grid_thw" in wants:
        patch = first(config, ["patch_size"], 8) ** 2 * channels * first(config, ["temporal_patch_size"], 1)
        where = next(iter(wants))
        grid = torch.tensor([[1, 4, 4], [1, 4, 4]])
        candidates += [{where: torch.randn(32, patch, generator=generator), "grid_thw": grid}]
    texts = [text, {**text, **decoder}, {**text, **decoder, "attention_mask": mask}]
    if "pixel_values" in wants and "input_ids" in wants:
        candidates += [{**text, **image}, {**image, **decoder}, text]
    if name == "pixel_values":
        candidates += [image, {**image, **decoder}, video]
    if name in ("pixel_values_videos",):
        candidates += [{"pixel_values_videos": video["pixel_values"]}]
    if name == "input_values":
        candidates += [{**wave, "attention_mask": wave_mask}, wave, {**wave, **decoder},
                       {"input_values": torch.randn(2, mels, 40, generator=generator)},
                       {"input_values": torch.randn(2, 1024, mels, generator=generator)},
                       {"input_values": torch.randn(2, 1, 2000, generator=generator)}]  # fmt: skip
    if name == "input_features":
        flat = torch.randn(2, 40, mels, generator=generator)
        tall = torch.randn(2, mels, 2 * first(config, ["max_source_positions"], 64), generator=generator)
        candidates += [{"input_features": flat, "attention_mask": frames}, {"input_features": flat, "attention_mask": frames, **decoder},
                       {"input_features": tall}, {"input_features": tall, **decoder}, {"input_features": flat}]  # fmt: skip
    if "input_ids" in wants:
        candidates += texts
        if "bbox" in wants:
            boxes = torch.randint(0, 20, (2, length, 4), generator=generator).sort(-1).values
            candidates = [{**text, "bbox": boxes}, {**text, "bbox": boxes, **decoder}] + candidates
    if "inputs_embeds" in wants or "hidden_states" in wants:
        width = first(config, ["hidden_size", "d_model"], 32)
        embeds = torch.randn(2, length, width, generator=generator)
        candidates += [{n: embeds, "attention_mask": mask} for n in ("inputs_embeds", "hidden_states") if n in wants]
    if "pixel_values" in wants:
        candidates += [image, video]
    return [{k: x for k, x in c.items() if k in wants or "kwargs" in wants} for c in candidates], mask
