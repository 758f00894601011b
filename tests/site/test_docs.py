"""The documents name what is there: reasons, words of the design, tests, files."""

from __future__ import annotations

import ast
import re
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from django.core.management import BaseCommand, load_command_class

from engine.core.effects import TurnOutcome
from engine.core.errors import Unusable
from engine.core.records import Outcome, Status
from engine.core.settings import SETTINGS, default_of
from engine.export.schema import FILES, AgentVersionRow, Configuration
from engine.loop.ending import EndReason

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.core.management import CommandParser

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
WORD = re.compile(r"[a-z]+(_[a-z]+)*")
#: Calls whose `reason` or `why` is a counted word.
VALUES = {"Rejected", "Refusal", "Spent", "Standing", "Dealt"}
#: Lists that counted words are appended to.
LISTS = {"refused", "whys"}


def reasons_of_code() -> set[str]:
    """Return every counted word that the engine gives as a reason."""
    words = {f"unusable_{word}" for word in Unusable}
    words |= {Status.PAUSED, Status.RETIRED}  # why somebody is out
    modules = [
        ast.parse(file.read_text(encoding="utf-8"))
        for part in ("core", "phases", "turn", "loop")
        for file in sorted((ROOT / "engine" / part).rglob("*.py"))
    ]
    named = dict(pair for module in modules for pair in _constants(module))
    for value in (value for module in modules for value in _reasons(module)):
        words |= set(_words(value, named))
    return words


def _constants(module: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for node in module.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant() as value):
                yield name, value


def _reasons(tree: ast.AST) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield from _reasons_of_call(node)
        elif isinstance(node, ast.FunctionDef) and _returns_a_reason(node):
            returned = (one.value for one in ast.walk(node) if isinstance(one, ast.Return))
            yield from (value for value in returned if value is not None)


def _reasons_of_call(call: ast.Call) -> Iterator[ast.expr]:
    match call.func:
        case ast.Name(id=name) if name in VALUES:
            yield from (one.value for one in call.keywords if one.arg in {"reason", "why"})
        case ast.Name(id="settle_invitation") if len(call.args) == 5:
            yield call.args[4]
        case ast.Attribute(value=ast.Attribute(attr=name), attr="append") if name in LISTS:
            yield from call.args


def _returns_a_reason(function: ast.FunctionDef) -> bool:
    is_text = isinstance(function.returns, ast.Name) and function.returns.id == "str"
    return is_text and (function.name.endswith("_refusal") or function.name == "reopen")


def _words(value: ast.expr, named: dict[str, ast.expr]) -> Iterator[str]:
    """Yield the words among an expression's constants; a prefix of an f-string is none."""
    if isinstance(value, ast.JoinedStr):
        return
    for node in ast.walk(value):
        match named.get(node.id, node) if isinstance(node, ast.Name) else node:
            case ast.Constant(value=str(text)) if WORD.fullmatch(text):
                yield text


def rows(document: str, section: str) -> list[str]:
    """Return the first words of the table under a heading of a document."""
    text = (DOCS / document).read_text(encoding="utf-8")
    body = text.split(f"\n## {section}\n")[1].split("\n## ")[0]
    return re.findall(r"^\| `([a-z_]+)` \|", body, flags=re.MULTILINE)


def test_glossary_explains_every_reason_once() -> None:
    reasons = rows("glossary.md", "Reasons")

    assert sorted(reasons) == sorted(reasons_of_code())
    assert {"pair_taken", "unusable_empty", "left", "nothing_new", "stale"} <= set(reasons)


def test_glossary_explains_every_end() -> None:
    assert rows("glossary.md", "Ends of turns") == [str(one) for one in TurnOutcome]
    assert rows("glossary.md", "Ends of threads") == [str(one) for one in Outcome]
    assert rows("glossary.md", "Ends of runs") == [str(one) for one in EndReason]


def test_links_of_documents_lead_somewhere() -> None:
    documents = [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]
    links = [
        (document, link)
        for document in documents
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text(encoding="utf-8"))
    ]

    assert [
        f"{document.relative_to(ROOT)}: {link}"
        for document, link in links
        if not (document.parent / link).exists()
    ] == []
    assert (ROOT / "README.md", "CHANGELOG.md") in links


def test_operations_list_every_setting_with_its_default() -> None:
    defaults = {
        setting.name: (default_of(setting, llm="anthropic"), default_of(setting, llm="offline"))
        for setting in SETTINGS
    }
    text = (DOCS / "operations.md").read_text(encoding="utf-8")
    body = text.split("\n## Settings of a simulation\n")[1].split("\n## ")[0]
    documented = dict(re.findall(r"^\| `([a-z_]+)` \| ([^|]+) \|", body, flags=re.MULTILINE))

    assert list(documented) == list(defaults)
    assert [
        name
        for name, (usual, offline) in defaults.items()
        if usual is not None
        and documented[name] != (f"{usual:g}" if usual == offline else f"{usual:g}, offline 0")
    ] == []


def test_operations_list_every_option_of_runsim() -> None:
    text = (DOCS / "operations.md").read_text(encoding="utf-8")
    usage = text.split("\n### runsim\n")[1].split("```")[1]
    parser = load_command_class("engine", "runsim").create_parser("manage.py", "runsim")
    of_django = BaseCommand().create_parser("manage.py", "any")

    def options(of: CommandParser) -> set[str]:
        return {name for action in of._actions for name in action.option_strings}

    ours = {name for name in options(parser) - options(of_django) if name.startswith("--")}
    assert set(re.findall(r"--[a-z-]+", usage)) == ours


def test_rules_name_tests_that_exist() -> None:
    text = (DOCS / "rules.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(tests/[a-z_/]+\.py)::(test_\w+)`", text))
    sources = {
        file: path.read_text(encoding="utf-8") if (path := ROOT / file).exists() else ""
        for file, _ in named
    }

    assert [
        f"{file}::{test}"
        for file, test in sorted(named)
        if not re.search(rf"^ *(async )?def {test}\(", sources[file], flags=re.MULTILINE)
    ] == []
    assert text.count("`tests/") - text.count("`tests/guards") == len(
        re.findall(r"`tests/[a-z_/]+\.py::test_\w+`", text)
    )


def test_decisions_are_listed_and_have_the_same_parts() -> None:
    folder = DOCS / "decisions"
    pages = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.md")}
    index = pages.pop("README.md")

    assert sorted(re.findall(r"\]\(([a-z-]+\.md)\)", index)) == sorted(pages)
    assert {
        tuple(re.findall(r"^## (.+)$", text, flags=re.MULTILINE)) for text in pages.values()
    } == {("Context", "Decision", "Consequences", "What would change it")}


def test_data_document_has_every_field_of_an_export_in_its_order() -> None:
    document = (DOCS / "data.md").read_text(encoding="utf-8")
    parts = {
        part.partition("\n")[0]: re.findall(r"^\| `(\w+)` \| \S", part, re.MULTILINE)
        for part in document.split("\n## ")[1:]
    }
    rows: dict[str, type] = {one.name: one.row for one in FILES}
    rows |= {"`configuration` of a run": Configuration, "`versions` of an agent": AgentVersionRow}
    assert rows.keys() <= parts.keys()
    for name, row in rows.items():
        assert parts[name] == [field.name for field in fields(row)], name
