"""Maps model_type to the function that computes the model, and to the model's kind."""
import decoders
import encoders
import experts
import gemmas
import gpts
import hybrids
import recurrent
import step3



def stablelm_epoch(w, c, ids):
    """StableLM by the keys of its first class."""
    keys = {"partial_rotary_factor": c["rope_pct"], "layer_norm_eps": c["norm_eps"]}
    return decoders.stablelm(w, {**c, **keys}, ids)


FAMILIES = {
    "albert": encoders.albert,
    "baichuan": decoders.baichuan,
    "bailing_hybrid": hybrids.bailing_v2_5,
    "bailing_moe": experts.bailing_moe,
    "bailing_moe_linear": hybrids.bailing_moe_linear,
    "bailing_moe_v2": experts.bailing_moe_v2,
    "bailing_moe_v2_5": hybrids.bailing_v2_5,
    "bloom": gpts.bloom,
    "cohere": decoders.cohere,
    "cohere2": decoders.cohere2,
    "deepseek_v2": experts.deepseek_v2,
    "deepseek_v3": experts.deepseek_v3,
    "electra": encoders.electra,
    "exaone": decoders.exaone,
    "falcon": gpts.falcon,
    "gemma2": gemmas.gemma2,
    "gemma3_text": gemmas.gemma3,
    "glm": decoders.glm,
    "glm4": decoders.glm4,
    "gpt2": gpts.gpt2,
    "gpt_bigcode": gpts.gpt_bigcode,
    "gpt_neox": gpts.gpt_neox,
    "gpt_oss": experts.gpt_oss,
    "gptj": gpts.gptj,
    "granite": decoders.granite,
    "granitemoe": experts.granitemoe,
    "hf_olmo": gpts.hf_olmo,
    "jina_bert": encoders.jina_bert,
    "kimi_k2": experts.deepseek_v3,
    "llama": decoders.llama,
    "marian": encoders.marian,
    "mimo_v2": hybrids.mimo_v2,
    "minimax_m2": experts.minimax_m2,
    "mistral": decoders.mistral,
    "mixtral": experts.mixtral,
    "modernbert": encoders.modernbert,
    "mpt": gpts.mpt,
    "nemotron-nas": decoders.nemotron_nas,
    "nomic_bert": encoders.nomic_bert,
    "olmo2": decoders.olmo2,
    "opt": gpts.opt,
    "phi": gpts.phi,
    "phi3": decoders.phi3,
    "phimoe": experts.phimoe,
    "qwen2": decoders.qwen2,
    "qwen2_moe": experts.qwen2_moe,
    "qwen3": decoders.qwen3,
    "qwen3_moe": experts.qwen3_moe,
    "roberta": encoders.roberta,
    "rwkv5": recurrent.rwkv5,
    "smollm3": decoders.smollm3,
    "solar": decoders.solar,
    "stablelm": decoders.stablelm,
    "stablelm_epoch": stablelm_epoch,
    "starcoder2": decoders.starcoder2,
    "step3_text": step3.step3_text,
    "xlm-roberta": encoders.roberta,
    "xverse": decoders.llama,
}

ENCODERS = {
    "albert", "electra", "jina_bert", "modernbert", "nomic_bert", "roberta", "xlm-roberta"
}
ENCODER_DECODERS = {"marian"}
