"""Reward models: a text model of transformers and the scores of the published classes.

Sources: modeling_qwen2_rm.py of Qwen/Qwen2.5-Math-RM-72B and Qwen/Qwen2.5-Math-PRM-7B,
modeling_internlm2.py of internlm/internlm2-7b-reward.
"""

import torch
from transformers import (
    LlamaConfig,
    LlamaModel,
    LlamaPreTrainedModel,
    Qwen2Config,
    Qwen2Model,
    Qwen2PreTrainedModel,
)
from transformers.modeling_outputs import SequenceClassifierOutputWithPast


def scored(logits, result):
    return SequenceClassifierOutputWithPast(logits=logits, hidden_states=result.hidden_states)


class Qwen2ForRewardModel(Qwen2PreTrainedModel):
    """One score, of the token in front of the first one of padding."""

    config: Qwen2Config
    scores = 1

    def __init__(self, config):
        super().__init__(config)
        width = config.hidden_size
        self.model = Qwen2Model(config)
        self.score = torch.nn.Sequential(
            torch.nn.Linear(width, width), torch.nn.ReLU(), torch.nn.Linear(width, self.scores)
        )
        self.post_init()

    def forward(self, input_ids, **options):
        result = self.model(input_ids, **options)
        padding = input_ids.eq(self.config.pad_token_id).int()
        ends = (padding.argmax(-1) - 1) % input_ids.shape[-1]
        return scored(self.score(result[0])[torch.arange(len(ends)), ends], result)


class Qwen2ForProcessRewardModel(Qwen2ForRewardModel):
    """Two scores of every token."""

    scores = 2

    def forward(self, input_ids, **options):
        result = self.model(input_ids, **options)
        return scored(self.score(result[0]), result)


class InternLM2ForRewardModel(LlamaPreTrainedModel):
    """One score, of the last token that the mask shows."""

    config: LlamaConfig

    def __init__(self, config):
        super().__init__(config)
        self.model = LlamaModel(config)
        self.v_head = torch.nn.Linear(config.hidden_size, 1, bias=False)
        self.post_init()

    def forward(self, input_ids, attention_mask, **options):
        result = self.model(input_ids, attention_mask=attention_mask, **options)
        ends = attention_mask.cumsum(1).argmax(1, keepdim=True)
        return scored(self.v_head(result[0]).squeeze(-1).gather(1, ends), result)


CLASSES = (Qwen2ForRewardModel, Qwen2ForProcessRewardModel, InternLM2ForRewardModel)
