#!/usr/bin/env python3
"""Checks that every name a Python program imports from a file beside it is defined there: most of these
programs need packages that a test machine lacks, so no test runs them.

usage: python_imports.py FOLDER
"""
import ast
import sys
from pathlib import Path


def defined_names(tree):
    """Names at the top level of a module."""
    names = set()
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names.update((one.asname or one.name).split(".")[0] for one in node.names)
        else:
            names.update(one.id for one in ast.walk(node)
                         if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store))
    return names


def missing_names(path):
    """Lines "FILE:LINE: …" of imports that a file beside `path` does not define."""
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.ImportFrom) or node.level or not node.module:
            continue
        beside = path.with_name(f"{node.module}.py")
        if not beside.exists():
            continue
        names = defined_names(ast.parse(beside.read_text()))
        for one in node.names:
            if one.name not in names:
                yield f"{path}:{node.lineno}: {beside.name} defines no {one.name}"


def main():
    paths = sorted(Path(sys.argv[1]).rglob("*.py"))
    missing = [line for path in paths for line in missing_names(path)]
    print("\n".join(missing) or f"{len(paths)} programs import what exists")
    return bool(missing)


if __name__ == "__main__":
    sys.exit(main())
