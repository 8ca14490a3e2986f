"""Runs the Python blocks of docs/library.md."""
import ast
import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "library.md"


def run_example(number, names):
    """Runs a block. A line's comment that is a Python value must be that of its expression."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    checked = 0
    for line in blocks[number].splitlines():
        code, _, comment = line.partition("  #")
        exec(code, names)  # pylint: disable=exec-used
        try:
            expected = ast.literal_eval(comment.strip())
        except (SyntaxError, ValueError):
            continue  # a comment in words, or none
        actual = eval(code, names)  # pylint: disable=eval-used
        assert actual == expected, f"{code} is {actual!r}, not {expected!r}"
        checked += 1
    assert checked > 0, "the block states no value"
