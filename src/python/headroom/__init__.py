"""What a transformer costs: parameters, FLOPs, memory, KV-cache, time.

>>> import headroom
>>> analysis = headroom.analyze("bert-base", seq=128)
>>> analysis.parameters
109482240
>>> analysis.matrix_flops
22348431360

Every option of the program is a keyword, by its name without dashes: `headroom analyze --help`
lists them. In a notebook a report shows as a table.
"""

from __future__ import annotations

from ._native import HeadroomError, version
from .commands import ModelLike, analyze, explain, fit, machines, plan, presets, run
from .hugging_face import from_hf
from .model import Model
from .report import Analysis, Component, Report

__version__ = version()

__all__ = [
    "Analysis",
    "Component",
    "HeadroomError",
    "Model",
    "ModelLike",
    "Report",
    "analyze",
    "explain",
    "fit",
    "from_hf",
    "machines",
    "plan",
    "presets",
    "run",
]
