"""Reports: the answers of commands, as data, as text and in a notebook."""

from __future__ import annotations

import dataclasses
import html
from typing import Any, Mapping, Optional

from . import _native


@dataclasses.dataclass(frozen=True)
class Report:
    """The answer of a command. `data` is its JSON report, by the command's JSON Schema."""

    request: Mapping[str, Any] = dataclasses.field(repr=False)
    data: Any = dataclasses.field(repr=False)
    status: int = 0
    """0, or 1 if a verdict failed: a model that does not fit, a row of `compare`."""
    messages: tuple[str, ...] = ()

    def __getitem__(self, key: str) -> Any:
        return self.data[key]

    @property
    def ok(self) -> bool:
        """True unless a verdict failed."""
        return self.status == 0

    def text(self, format: str = "table") -> str:
        """The report as the program prints it: "table", "csv" or "markdown"."""
        answer = _native.call({**self.request, "format": format})
        return str(answer["text"])

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.text())}</pre>"


@dataclasses.dataclass(frozen=True)
class Component:
    """One component of a model, summed over all layers. FLOPs are of the forward pass."""

    name: str
    parameters: int
    weight_bytes: int
    matrix_flops: Optional[int]
    elementwise_flops: Optional[int]


@dataclasses.dataclass(frozen=True)
class Analysis(Report):
    """The answer of `analyze`. None means that a figure does not apply."""

    @property
    def name(self) -> str:
        return str(self.data["model"]["name"])

    @property
    def workload(self) -> dict[str, Any]:
        """What was asked, all defaults filled in."""
        return dict(self.data["workload"])

    @property
    def parameters(self) -> int:
        return int(self.data["parameters"]["total"])

    @property
    def active_parameters(self) -> int:
        """Parameters without the routed experts that one token does not use."""
        return int(self.data["parameters"]["active"])

    @property
    def matrix_flops(self) -> int:
        """FLOPs of all matrix products of the forward pass; a multiply-add is 2."""
        return int(self.data["flops"]["forward"]["matrix"])

    @property
    def elementwise_flops(self) -> int:
        return int(self.data["flops"]["forward"]["elementwise"])

    @property
    def weight_bytes(self) -> int:
        return int(self.data["memory"]["weight_bytes"])

    @property
    def peak_activation_bytes(self) -> Optional[int]:
        """The most bytes of activations that live at once; None in training."""
        return self._memory("peak_activation_bytes")

    @property
    def saved_activation_bytes(self) -> Optional[int]:
        """Bytes that the backward pass needs; None unless training."""
        return self._memory("saved_activation_bytes")

    @property
    def kv_cache_bytes(self) -> Optional[int]:
        return self._memory("kv_cache_bytes")

    @property
    def kv_cache_bytes_per_token(self) -> Optional[int]:
        return self._memory("kv_cache_bytes_per_token")

    @property
    def time_s(self) -> Optional[float]:
        """Predicted time of the run; None without `machine`."""
        time = self.data["time"]
        return None if time is None else float(time["total_s"])

    @property
    def formulas(self) -> dict[str, Optional[str]]:
        """The polynomial behind each figure, in the symbols that `explain` defines."""
        return dict(self.data["formulas"])

    @property
    def components(self) -> list[Component]:
        return [
            Component(row["component"], row["parameters"], row["weight_bytes"],
                      row["forward"]["matrix"], row["forward"]["elementwise"])
            for row in self.data["components"]
        ]

    def _memory(self, key: str) -> Optional[int]:
        value = self.data["memory"][key]
        return None if value is None else int(value)

    def _repr_html_(self) -> str:
        rows = [(c.name, c.parameters, c.weight_bytes, c.matrix_flops) for c in self.components]
        rows.append(("total", self.parameters, self.weight_bytes, self.matrix_flops))
        caption = (f"{self.name} · {self.workload['phase']} · batch {self.workload['batch_size']}"
                   f" · seq {self.workload['seq_len']}")
        head = "".join(f"<th>{title}</th>" for title in
                       ("Component", "Parameters", "Weights [B]", "Matrix [FLOP]"))
        body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
        return (f"<table><caption>{html.escape(caption)}</caption>"
                f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")


def _cell(value: Any) -> str:
    if isinstance(value, str):
        return f'<td style="text-align:left">{html.escape(value)}</td>'
    text = "–" if value is None or value == 0 else f"{value:,}"
    return f'<td style="text-align:right">{text}</td>'
