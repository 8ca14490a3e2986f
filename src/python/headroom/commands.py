"""One function per command. Every option of the program is a keyword."""

from __future__ import annotations

import os
from typing import Any, Mapping, Optional, Union

from . import _native
from .hugging_face import from_hf, is_hugging_face
from .model import Model
from .report import Analysis, Report

#: A preset's name, a path, a config.json's content, a live transformers model or config, or what
#: `from_hf` returns.
ModelLike = Union[str, "os.PathLike[str]", Mapping[str, Any], Model, Any]


def _model_of(model: ModelLike) -> Any:
    """`model` as a request takes it: a name or path, or the content of a config.json."""
    if is_hugging_face(model):
        model = from_hf(model)
    if isinstance(model, Model):
        return model.config
    return dict(model) if isinstance(model, Mapping) else os.fspath(model)


def _call(request: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    present = {key: value for key, value in request.items() if value is not None}
    return present, _native.call(present)


def run(command: str, **options: Any) -> Report:
    """Runs any command, such as "machines show". An argument is a keyword, too: `model="gpt2"`.

    Raises HeadroomError.
    """
    request, answer = _call({"command": command, **options})
    data = answer["report"] if "report" in answer else answer["text"]
    return Report(request, data, answer["status"], tuple(answer["messages"]))


def analyze(
    model: ModelLike,
    *,
    seq: Optional[int] = None,
    batch: Optional[int] = None,
    phase: Optional[str] = None,
    past: Optional[int] = None,
    dtype: Optional[str] = None,
    machine: Optional[str] = None,
    **options: Any,
) -> Analysis:
    """Counts parameters, FLOPs, memory and KV-cache; with `machine`, predicts the time.

    Raises HeadroomError.
    """
    request, answer = _call({
        "command": "analyze", "model": _model_of(model), "seq": seq, "batch": batch,
        "phase": phase, "past": past, "dtype": dtype, "machine": machine, **options})
    return Analysis(request, answer["report"], answer["status"], tuple(answer["messages"]))


def explain(model: ModelLike, *, what: Optional[str] = None, **options: Any) -> Report:
    """Derives a figure from its formula. Raises HeadroomError."""
    return run("explain", model=_model_of(model), what=what, **options)


def fit(model: ModelLike, *, machine: str, **options: Any) -> Report:
    """Checks whether the model fits on devices; `ok` is the verdict. Raises HeadroomError."""
    return run("fit", model=_model_of(model), machine=machine, **options)


def plan(model: ModelLike, *, machine: str, **options: Any) -> Report:
    """Finds the best parallel plan; `ok` is True if one fits. Raises HeadroomError."""
    return run("plan", model=_model_of(model), machine=machine, **options)


def presets(text: Optional[str] = None) -> Report:
    """The models known by name; with `text`, those whose name contains it."""
    return run("presets", text=text)


def machines(text: Optional[str] = None) -> Report:
    """The machines that times can be predicted for."""
    return run("machines", text=text)
