#!/usr/bin/env python3
"""Checks docs/figures.md, which names a function and a test for every key of the JSON reports, against
the schemas in reports/, the sources and the tests.

usage: figures.py [--update]

Fails for a key without a row, a row without a key, and a function or test that is not in the file of
its link. --update adds rows for new keys, with `?` to fill in, removes rows of removed keys, and
corrects links of functions and tests that moved to another file.
"""

import difflib
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "figures.md"
ROW = re.compile(r"^\| `([^`]+)` \| (.*) \| (.*) \|$")
LINK = re.compile(r"\[([^\]]+)\]\(([^)]+)\)")
UNKNOWN = "?"


def resolved(schema, node):
    """The name of the definition that `node` refers to, or None, and the node with it inserted."""
    if "$ref" not in node:
        return None, node
    name = node["$ref"].rsplit("/", 1)[-1]
    return name, schema["$defs"][name] | {k: v for k, v in node.items() if k != "$ref"}


def alternatives(node):
    return [node, *node.get("oneOf", []), *node.get("anyOf", [])]


def has_keys(schema, node):
    """Returns whether the node, or the elements of its list, have named keys."""
    for choice in alternatives(node):
        _, choice = resolved(schema, choice)
        if "properties" in choice or ("items" in choice and has_keys(schema, choice["items"])):
            return True
    return False


class Sections:
    """Keys by section: one for each schema, and one for each object that schemas define by name."""

    def __init__(self):
        self.keys = {}  # section -> {key: section that it refers to, or None}
        self.users = {}  # object -> schemas
        self.inline = {}  # canonical text of an object -> (section, key)

    def add_schema(self, name, schema):
        self.add(schema, name, schema, "")
        for definition, node in schema["$defs"].items():
            if not has_keys(schema, node):
                continue
            self.users.setdefault(definition, []).append(name)
            if len(self.users[definition]) == 1:
                self.add(schema, f"object {definition}", node, "")

    def add(self, schema, section, node, path):
        rows = self.keys.setdefault(section, {})
        for choice in alternatives(node):
            name, choice = resolved(schema, choice)
            if name and has_keys(schema, choice):
                if path:
                    rows[path] = f"object {name}"
                continue
            if "items" in choice:
                self.add(schema, section, choice["items"], path + "[]")
            for key, value in choice.get("properties", {}).items():
                self.add_key(schema, section, f"{path}.{key}".lstrip("."), value)

    def add_key(self, schema, section, key, node):
        rows = self.keys[section]
        name, node = resolved(schema, node)
        if not has_keys(schema, node):
            rows[key] = None
            return
        if name:
            rows[key] = f"object {name}"
            return
        text = json.dumps(node.get("properties") or node.get("oneOf") or node.get("anyOf") or node["items"], sort_keys=True)
        first = self.inline.setdefault(text, (section, key))
        if first[0] != section:
            rows[key] = first[0]
            return
        self.add(schema, section, node, key)

    def title(self, section):
        if not section.startswith("object "):
            return f"## {section}.schema.json"
        return f"### {section[0].upper()}{section[1:]}"

    def anchor(self, section):
        return re.sub(r"[^\w-]", "", self.title(section).lstrip("# ").lower().replace(" ", "-"))

    def in_order(self):
        """Yields each schema with the objects that only it uses, then the shared objects."""
        shared = [name for name, users in self.users.items() if len(users) > 1]
        for section in self.keys:
            if not section.startswith("object "):
                yield section
                yield from (f"object {name}" for name, users in self.users.items()
                            if users == [section])
        yield from (f"object {name}" for name in shared)


def load_sections():
    sections = Sections()
    for file in sorted((ROOT / "reports").glob("*.schema.json")):
        schema = json.loads(file.read_text(encoding="utf-8"))
        sections.add_schema(file.name.removesuffix(".schema.json"), schema)
    return sections


def read_page():
    """The page's text before the first section, and its rows: {section title: {key: cells}}."""
    head, rows, title = [], {}, None
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("#") and re.match(r"## \S+\.schema\.json$|### Object ", line):
            title = line
            rows[title] = {}
        elif title is None:
            head.append(line)
        elif match := ROW.match(line):
            rows[title][match[1]] = [match[2], match[3]]
    return head, rows


def defines(text, name):
    """Returns whether the source defines the function, class or constant of this name."""
    if re.match(r"k[A-Z]", name):
        return re.search(rf"\b{name}\b", text) is not None
    own = re.escape(name.split("::")[-1])
    scope = r"(?:\w+(?:::\w+)*::)?"
    other = r"(?!return\b|throw\b|if\b|for\b|while\b|else\b|case\b|using\b)"
    function = rf"^ {{0,2}}(?=\S){other}(?:[\w:<>,&*\[\] ]+[ &*>])?{scope}{own}\([^;]*(?:$|\{{)"
    return re.search(rf"{function}|^(?:class|struct) {own}\b", text, re.MULTILINE) is not None


def tests_in(path, text):
    """Titles of the tests in a file; a golden case and a script are one test each."""
    if path.suffix == ".cpp":
        joined = re.sub(r'"\s*\n\s*"', "", text)
        return set(re.findall(r'TEST_CASE(?:_\w+)?\(\s*"([^"]+)"', joined))
    if path.suffix == ".txt":
        return {f"golden.{path.stem}"}
    return {path.stem if path.stem != "validate" else "schema"}


class Sources:
    def __init__(self):
        self.texts = {}

    def text(self, path):
        if path not in self.texts:
            self.texts[path] = path.read_text(encoding="utf-8")
        return self.texts[path]

    def holds(self, path, name, column):
        if column == 0:
            return defines(self.text(path), name)
        return name in tests_in(path, self.text(path))

    def places(self, name, column):
        """Files that define the function or test."""
        folders = ("src", "include") if column == 0 else ("tests",)
        files = [file for folder in folders for file in sorted((ROOT / folder).rglob("*"))
                 if file.suffix in (".cpp", ".h", ".py", ".txt", ".sh") and "data" not in file.parts
                 and "corpus" not in file.parts]
        found = [file for file in files if self.holds(file, name, column)]
        return [file for file in found if file.suffix != ".h"] or found


def problems_of_cell(cell, column, sources):
    links = LINK.findall(cell)
    if not links:
        yield f"no link in `{cell}`"
    for name, target in links:
        name = name.strip("`")
        path = (PAGE.parent / target).resolve()
        if not path.is_file():
            yield f"{target} is not there"
        elif not sources.holds(path, name, column):
            close = difflib.get_close_matches(name, tests_in(path, sources.text(path)) if column else [], 1, 0.3)
            yield f"{name} is not in {target}" + "".join(f"; is \"{title}\" meant?" for title in close)


def problems_of_section(sections, section, rows, sources):
    keys = sections.keys[section]
    for key in rows.keys() - keys.keys():
        yield f"{section}: no schema has the key {key}"
    for key, target in keys.items():
        if key not in rows:
            yield f"{section}: {key} has no row"
        elif target:
            wanted = f"(#{sections.anchor(target)})"
            if wanted not in rows[key][0]:
                yield f"{section}: {key} shall refer to {wanted}"
        else:
            for column, cell in enumerate(rows[key]):
                for problem in problems_of_cell(cell, column, sources):
                    yield f"{section}: {key}: {problem}"


def all_problems():
    sections, sources = load_sections(), Sources()
    _, rows = read_page()
    titles = {sections.title(section): section for section in sections.keys}
    for title in rows.keys() - titles.keys():
        yield f"no schema has the section \"{title}\""
    for title, section in titles.items():
        if title in rows:
            yield from problems_of_section(sections, section, rows[title], sources)
        else:
            yield f"there is no section \"{title}\""


def mended(cell, column, sources):
    """The cell, with links to the present files of its functions or tests."""
    def mend(match):
        name, path = match[1].strip("`"), (PAGE.parent / match[2]).resolve()
        if path.is_file() and sources.holds(path, name, column):
            return match[0]
        places = sources.places(name, column)
        if len(places) != 1:
            return match[0]
        return f"[{match[1]}](../{places[0].relative_to(ROOT)})"

    return LINK.sub(mend, cell)


def written(sections, head, rows, sources):
    lines = [*head]
    for section in sections.in_order():
        title = sections.title(section)
        known = rows.get(title, {})
        lines += [title, "", "| Key | Function | Test |", "| :-- | :-- | :-- |"]
        for key, target in sections.keys[section].items():
            cells = known.get(key, [UNKNOWN, UNKNOWN])
            if target:
                cells = [f"[{target}](#{sections.anchor(target)})", ""]
            else:
                cells = [mended(cell, column, sources) for column, cell in enumerate(cells)]
            lines.append(f"| `{key}` | {cells[0]} | {cells[1]} |")
        lines.append("")
    return "\n".join(lines)


def main():
    if sys.argv[1:] == ["--update"]:
        head, rows = read_page()
        PAGE.write_text(written(load_sections(), head, rows, Sources()), encoding="utf-8")
    problems = list(all_problems())
    print("\n".join(problems) if problems else "every key has its function and its test")
    return min(len(problems), 1)


if __name__ == "__main__":
    sys.exit(main())
