"""Calls libheadroom's C API: a request as JSON, its answer as JSON."""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import json
import os
from pathlib import Path
from typing import Any, Mapping


class HeadroomError(Exception):
    """A request that headroom refuses, with its cause, its place and its remedy."""

    def __init__(self, code: str, message: str, where: str = "", hint: str = "") -> None:
        super().__init__(": ".join(filter(None, [where, message])) + (f" ({hint})" if hint else ""))
        self.code = code  #: "no_plan_fits", "invalid_input", "overflow", "missing_resource" or "internal"
        self.message = message
        self.where = where
        self.hint = hint


def _library_path() -> str:
    """$HEADROOM_LIBRARY, the wheel's own library, or that of an installation."""
    given = os.environ.get("HEADROOM_LIBRARY")
    if given:
        return given
    own = Path(__file__).with_name("libheadroom.so")
    found = str(own) if own.exists() else ctypes.util.find_library("headroom")
    if not found:
        raise HeadroomError("missing_resource", "there is no libheadroom.so", str(own),
                            "install the wheel, or set HEADROOM_LIBRARY")
    return found


@functools.lru_cache(maxsize=None)
def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(_library_path())
    library.headroom_run.argtypes = [ctypes.c_char_p]
    library.headroom_run.restype = ctypes.c_void_p
    library.headroom_free.argtypes = [ctypes.c_void_p]
    library.headroom_free.restype = None
    library.headroom_version.argtypes = []
    library.headroom_version.restype = ctypes.c_char_p
    return library


def version() -> str:
    """The library's version."""
    text: bytes = _library().headroom_version()
    return text.decode()


def call(request: Mapping[str, Any]) -> dict[str, Any]:
    """Runs a request of headroom_c.h and returns its answer. Other threads run meanwhile.

    Raises HeadroomError for an answer without a report.
    """
    library = _library()
    address = library.headroom_run(json.dumps(request).encode())
    if not address:
        raise MemoryError("no memory for headroom's answer")
    try:
        answer: dict[str, Any] = json.loads(ctypes.string_at(address))
    finally:
        library.headroom_free(address)
    if "error" in answer:
        raise HeadroomError(**answer["error"])
    return answer
