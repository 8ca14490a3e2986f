"""Compares the lines of a console block with printed lines, and updates the block from them. A line
`…` stands for one or more lines, `…` within a line for any text."""

import re

ELISION = "…"
# Below this likeness two lines are unrelated, not one line that changed.
LEAST_LIKENESS = 0.15


def normalised(line):
    """Replaces what depends on the machine: its name, numbers, units of time and verdicts."""
    line = re.sub(r"^machine [^·]*·", "machine # ·", line)
    line = re.sub(r"^(verdict .*); time not judged$", r"\1", line)
    line = re.sub(r"^(verdict +)(PASS|FAIL|NOT JUDGED) — ([^;]*; )?", r"\1RESULT — ", line)
    line = re.sub(r"<?[+−-]?\d[\d,]*(\.\d+)?(e[+-]?\d+)?", "#", line)
    line = re.sub(r"# (s|ms|µs|ns)\b", "# s", line)
    line = re.sub(r"# threads\b", "# thread", line)
    line = re.sub(r"\[(s|ms|µs|ns)\]", "[s]", line)
    line = re.sub(r"\b(PASS|FAIL|SKIP)\b(: .*)?", "RESULT", line)
    line = re.sub(r"(±# %|–) +RESULT", "± RESULT", line)
    return re.sub(r"\s+", " ", re.sub(r"-{2,}", "--", line)).strip()


def line_matches(expected, actual, varies):
    if varies:
        expected, actual = normalised(expected), normalised(actual)
    if ELISION not in expected:
        return expected.rstrip() == actual
    parts = [re.escape(part) for part in expected.rstrip().split(ELISION)]
    return re.fullmatch(".*".join(parts), actual) is not None


def is_elision(line):
    return line.strip() == ELISION


def matches(expected, actual, varies):
    """Returns whether lines with elisions match the printed ones; works from the last line."""
    reachable = {len(actual)}  # where the rest of `expected` may begin
    for line in reversed(expected):
        if is_elision(line):
            reachable = set(range(max(reachable))) if reachable else set()
        else:
            reachable = {at - 1 for at in reachable
                         if at > 0 and line_matches(line, actual[at - 1], varies)}
        if not reachable:
            return False
    return 0 in reachable


def likeness(expected, actual, varies):
    """Likeness of two lines, 0 to 1."""
    if line_matches(expected, actual, varies):
        return 1.0
    words, others = normalised(expected).split(), normalised(actual).split()
    if not words or not others:
        return 0.0
    same = len(set(words) & set(others)) / len(set(words) | set(others))
    return 0.8 * same + (0.1 if words[0] == others[0] else 0)


def aligned(expected, actual, varies):
    """Pairs lines in order with the greatest total likeness: for each line of `expected` the index
    of its line in `actual`, or None."""
    rows, columns = len(expected), len(actual)
    best = [[0.0] * (columns + 1) for _ in range(rows + 1)]
    gain = [[likeness(line, other, varies) for other in actual] for line in expected]
    for i in range(rows - 1, -1, -1):
        for j in range(columns - 1, -1, -1):
            pair = best[i + 1][j + 1] + gain[i][j] if gain[i][j] > LEAST_LIKENESS else 0.0
            best[i][j] = max(best[i + 1][j], best[i][j + 1], pair)
    pairs, i, j = [None] * rows, 0, 0
    while i < rows and j < columns:
        if gain[i][j] > LEAST_LIKENESS and best[i][j] == best[i + 1][j + 1] + gain[i][j]:
            pairs[i] = j
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return pairs


def updated(expected, actual, varies, expands=False):
    """Returns the printed lines with the elisions of `expected`; `expands` writes out elisions within
    lines."""
    if expected == [ELISION] and not expands:
        return expected
    shown = [line for line in expected if not is_elision(line)]
    if len(shown) == len(expected):
        return actual
    pairs = iter(aligned(shown, actual, varies))
    segments = [[]]  # of (line, its index in `actual`) between elisions
    for line in expected:
        if is_elision(line):
            segments.append([])
        else:
            segments[-1].append((line, next(pairs)))
    result, at = [], 0
    for number, segment in enumerate(segments):
        found = [index for _, index in segment if index is not None]
        first = 0 if number == 0 else min(found, default=None)
        last = len(actual) - 1 if number == len(segments) - 1 and segment else max(found, default=-1)
        if first is None or (number == 0 and not segment):
            continue
        if first > at:
            result.append(ELISION)
        result += actual[max(first, at):last + 1]
        at = max(at, last + 1)
    if at < len(actual):
        result.append(ELISION)
    return result if expands else keep_inner_elisions(expected, result, varies)


def keep_inner_elisions(expected, lines, varies):
    """Keeps the lines of `expected` that contain `…` and still match."""
    patterns = [line for line in expected if ELISION in line and not is_elision(line)]
    for index, line in enumerate(lines):
        fitting = [pattern for pattern in patterns if line_matches(pattern, line, varies)]
        lines[index] = fitting[0] if fitting else line
    return lines
