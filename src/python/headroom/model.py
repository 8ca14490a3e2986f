"""A model by the content of its config.json."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Optional

if TYPE_CHECKING:
    from .report import Analysis, Report


@dataclasses.dataclass(frozen=True)
class Model:
    """A config that need not lie in a file. Its methods are the functions of the package."""

    config: dict[str, Any] = dataclasses.field(repr=False)
    name: str = ""
    live_parameters: Optional[int] = None
    """sum(p.numel() for p in model.parameters()); None for a config without a live model."""

    @property
    def parameters(self) -> int:
        """Parameters, counted from the config."""
        return self.analyze().parameters

    def analyze(self, **options: Any) -> Analysis:
        from .commands import analyze

        return analyze(self, **options)

    def explain(self, **options: Any) -> Report:
        from .commands import explain

        return explain(self, **options)

    def fit(self, *, machine: str, **options: Any) -> Report:
        from .commands import fit

        return fit(self, machine=machine, **options)

    def plan(self, *, machine: str, **options: Any) -> Report:
        from .commands import plan

        return plan(self, machine=machine, **options)
