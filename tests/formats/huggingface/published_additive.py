"""Keys of published ``config.json`` files that bear on positions, and a few beside them.

Read on 2026-11-30 in public copies of the hub's files: RoBERTa-base, BLOOM-560m, MT0-small, ViT-MAE-base, Whisper-tiny,
Gemma-3-4b-it, PaliGemma (pi0's copy), DINOv3 ViT-B/16, Qwen2.5-VL-7B, CLIP ViT-L/14 (336) inside LLaVA-1.5. The others
are the models' published dimensions in the files' usual keys, recalled.
"""

from __future__ import annotations

from typing import Any

Config = dict[str, Any]

BERT: Config = {
    "architectures": ["BertForMaskedLM"],
    "hidden_size": 768,
    "max_position_embeddings": 512,
    "model_type": "bert",
    "num_attention_heads": 12,
    "num_hidden_layers": 12,
    "pad_token_id": 0,
    "position_embedding_type": "absolute",
    "vocab_size": 30522,
}
ROBERTA: Config = {
    "hidden_size": 768,
    "max_position_embeddings": 514,
    "model_type": "roberta",
    "num_attention_heads": 12,
    "num_hidden_layers": 12,
    "pad_token_id": 1,
    "position_embedding_type": "absolute",
    "vocab_size": 50265,
}
GPT2: Config = {
    "model_type": "gpt2",
    "n_ctx": 1024,
    "n_embd": 768,
    "n_head": 12,
    "n_layer": 12,
    "n_positions": 1024,
    "task_specific_params": {"text-generation": {"do_sample": True, "max_length": 50}},
}
OPT_350M: Config = {
    "model_type": "opt",
    "hidden_size": 1024,
    "max_position_embeddings": 2048,
    "num_hidden_layers": 24,
    "pad_token_id": 1,
    "word_embed_proj_dim": 512,
}
T5_SMALL: Config = {
    "d_kv": 64,
    "d_model": 512,
    "model_type": "t5",
    "n_positions": 512,
    "num_decoder_layers": 6,
    "num_heads": 8,
    "num_layers": 6,
    "relative_attention_num_buckets": 32,
}
MT0_SMALL: Config = {
    "d_kv": 64,
    "d_model": 512,
    "model_type": "mt5",
    "num_decoder_layers": 8,
    "num_heads": 6,
    "num_layers": 8,
    "relative_attention_max_distance": 128,
    "relative_attention_num_buckets": 32,
}
BLOOM_7B1: Config = {
    "model_type": "bloom",
    "n_embed": 4096,
    "n_layer": 30,
    "num_attention_heads": 32,
    "offset_alibi": 100,
    "slow_but_exact": False,
}
BLOOM_560M: Config = {
    "hidden_size": 1024,
    "model_type": "bloom",
    "n_head": 16,
    "n_layer": 24,
    "offset_alibi": 100,
    "pretraining_tp": 1,
}
WHISPER_TINY: Config = {
    "d_model": 384,
    "decoder_attention_heads": 6,
    "decoder_layers": 4,
    "encoder_attention_heads": 6,
    "encoder_layers": 4,
    "max_source_positions": 1500,
    "max_target_positions": 448,
    "model_type": "whisper",
    "num_hidden_layers": 4,
    "num_mel_bins": 80,
}
VIT_B16: Config = {
    "hidden_size": 768,
    "image_size": 224,
    "model_type": "vit",
    "num_attention_heads": 12,
    "num_hidden_layers": 12,
    "patch_size": 16,
}
VIT_MAE_BASE: Config = {
    **VIT_B16,
    "model_type": "vit_mae",
    "decoder_hidden_size": 512,
    "decoder_num_attention_heads": 16,
    "decoder_num_hidden_layers": 8,
    "mask_ratio": 0.75,
}
DINOV2_BASE: Config = {**VIT_B16, "model_type": "dinov2", "image_size": 518, "patch_size": 14, "use_swiglu_ffn": False}
DINOV3_B16: Config = {
    **VIT_B16,
    "model_type": "dinov3_vit",
    "num_register_tokens": 4,
    "pos_embed_rescale": 2.0,
    "rope_theta": 100.0,
}
SIGLIP_B16: Config = {
    "model_type": "siglip",
    "text_config": {"model_type": "siglip_text_model", "vocab_size": 32000},
    "vision_config": {"model_type": "siglip_vision_model"},
}
QWEN2_VL_7B: Config = {
    "hidden_size": 3584,
    "max_position_embeddings": 32768,
    "max_window_layers": 28,
    "model_type": "qwen2_vl",
    "num_attention_heads": 28,
    "num_hidden_layers": 28,
    "num_key_value_heads": 4,
    "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]},
    "rope_theta": 1000000.0,
    "sliding_window": 32768,
    "use_sliding_window": False,
    "vision_config": {
        "depth": 32,
        "embed_dim": 1280,
        "hidden_size": 3584,
        "in_chans": 3,
        "mlp_ratio": 4,
        "num_heads": 16,
        "patch_size": 14,
        "spatial_merge_size": 2,
        "spatial_patch_size": 14,
        "temporal_patch_size": 2,
    },
}
QWEN2_5_VL_7B: Config = {
    **QWEN2_VL_7B,
    "max_position_embeddings": 128000,
    "model_type": "qwen2_5_vl",
    "vision_config": {
        "depth": 32,
        "fullatt_block_indexes": [7, 15, 23, 31],
        "hidden_size": 1280,
        "model_type": "qwen2_5_vl",
        "num_heads": 16,
        "out_hidden_size": 3584,
        "patch_size": 14,
        "spatial_merge_size": 2,
        "temporal_patch_size": 2,
        "tokens_per_second": 2,
        "window_size": 112,
    },
}
SIGLIP_SO400M: Config = {
    "hidden_size": 1152,
    "image_size": 896,
    "intermediate_size": 4304,
    "model_type": "siglip_vision_model",
    "num_attention_heads": 16,
    "num_hidden_layers": 27,
    "patch_size": 14,
    "vision_use_head": False,
}
GEMMA3_4B: Config = {
    "mm_tokens_per_image": 256,
    "model_type": "gemma3",
    "text_config": {
        "hidden_size": 2560,
        "intermediate_size": 10240,
        "model_type": "gemma3_text",
        "num_hidden_layers": 34,
        "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
        "sliding_window": 1024,
    },
    "vision_config": SIGLIP_SO400M,
}
PALIGEMMA_3B: Config = {
    "hidden_size": 2048,
    "model_type": "paligemma",
    "projection_dim": 2048,
    "text_config": {
        "hidden_size": 2048,
        "intermediate_size": 16384,
        "model_type": "gemma",
        "num_attention_heads": 8,
        "num_hidden_layers": 18,
        "num_image_tokens": 256,
        "num_key_value_heads": 1,
    },
    "vision_config": {k: v for k, v in SIGLIP_SO400M.items() if k != "image_size"},
}
LLAVA_1_5_7B: Config = {
    "model_type": "llava",
    "text_config": {
        "_name_or_path": "lmsys/vicuna-7b-v1.5",
        "max_position_embeddings": 4096,
        "model_type": "llama",
        "rms_norm_eps": 1e-05,
        "vocab_size": 32064,
    },
    "vision_config": {
        "hidden_size": 1024,
        "image_size": 336,
        "intermediate_size": 4096,
        "model_type": "clip_vision_model",
        "num_attention_heads": 16,
        "num_hidden_layers": 24,
        "patch_size": 14,
        "projection_dim": 768,
    },
    "vision_feature_layer": -2,
}
QWEN2_AUDIO_7B: Config = {
    "model_type": "qwen2_audio",
    "audio_config": {"model_type": "qwen2_audio_encoder", "d_model": 1280, "encoder_layers": 32, "num_mel_bins": 128},
    "text_config": {
        "hidden_size": 4096,
        "max_position_embeddings": 8192,
        "model_type": "qwen2",
        "num_attention_heads": 32,
        "num_hidden_layers": 32,
        "rope_theta": 10000,
        "sliding_window": 32768,
        "use_mrope": False,
    },
}
PIXTRAL_12B: Config = {
    "model_type": "llava",
    "text_config": {
        "head_dim": 128,
        "hidden_size": 5120,
        "max_position_embeddings": 1024000,
        "model_type": "mistral",
        "num_attention_heads": 32,
        "num_hidden_layers": 40,
        "rope_theta": 1000000000.0,
        "sliding_window": None,
    },
    "vision_config": {
        "head_dim": 64,
        "hidden_size": 1024,
        "image_size": 1024,
        "model_type": "pixtral",
        "num_attention_heads": 16,
        "num_hidden_layers": 24,
        "patch_size": 16,
        "rope_theta": 10000.0,
    },
}
