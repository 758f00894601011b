"""`manage.py checkexport`: what it says and its exit status."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING

import pytest
from django.core.management import CommandError, call_command

from tests.exports import clean_export, write_export

if TYPE_CHECKING:
    from pathlib import Path


def test_checkexport_says_that_every_law_is_kept(tmp_path: Path) -> None:
    out = StringIO()
    call_command("checkexport", str(write_export(clean_export(), tmp_path)), stdout=out)

    assert out.getvalue() == "every law kept (51 laws, 67 records)\n"


def test_checkexport_lists_violations_and_exits_1(tmp_path: Path) -> None:
    files = clean_export()
    files["messages.jsonl"][4]["ordinal"] = 4
    out, err = StringIO(), StringIO()
    with pytest.raises(SystemExit) as caught:
        call_command("checkexport", str(write_export(files, tmp_path)), stdout=out, stderr=err)

    assert caught.value.code == 1
    assert out.getvalue() == (
        "ordinals: messages.jsonl, seq 5: it is number 3 of thread 1 and says 4.\n"
    )
    assert err.getvalue().endswith("violations: 1, laws broken: 1\n")


def test_checkexport_refuses_a_missing_folder_with_exit_2(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="There is no folder") as caught:
        call_command("checkexport", str(tmp_path / "nowhere"))

    assert caught.value.returncode == 2
