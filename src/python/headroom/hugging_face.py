"""Live models and configs of Hugging Face transformers. Does not import transformers."""

from __future__ import annotations

import json
import warnings
from typing import Any, Optional

from .model import Model


def is_hugging_face(value: Any) -> bool:
    """True for a transformers model or config, by its methods."""
    return _is_config(value) or _is_config(getattr(value, "config", None))


def from_hf(model_or_config: Any, name: Optional[str] = None) -> Model:
    """The model of a live transformers model, or of a config.

    A live model is counted as it stands, too: a warning says so if its number of parameters is not
    that of its config, as after adding adapters.

    Raises TypeError for anything else, and HeadroomError for a config that headroom refuses.
    """
    if _is_config(model_or_config):
        return _from_config(model_or_config, name, None)
    config = getattr(model_or_config, "config", None)
    if not _is_config(config):
        raise TypeError(f"neither a transformers model nor a config: {type(model_or_config)}")
    model = _from_config(config, name, model_or_config)
    counted = model.parameters
    if counted != model.live_parameters:
        warnings.warn(f"the live model has {model.live_parameters:,} parameters; its config gives "
                      f"{counted:,}", stacklevel=2)
    return model


def _is_config(value: Any) -> bool:
    return hasattr(value, "to_json_string") and hasattr(value, "model_type")


def _from_config(config: Any, name: Optional[str], live: Any) -> Model:
    content = json.loads(config.to_json_string(use_diff=False))
    if name or not content.get("_name_or_path"):
        content["_name_or_path"] = name or content["model_type"]
    if live is None:
        return Model(content, content["_name_or_path"])
    content["architectures"] = [type(live).__name__]
    parameters = sum(parameter.numel() for parameter in live.parameters())
    return Model(content, content["_name_or_path"], parameters)
