"""The documentation against the code: generated parts, links, commands, quantities, examples."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from lab import scenario, sweep
from lab.cli.main import main, parser
from lab.cli.run import parse_settings
from lab.errors import UnitError
from lab.knobs import PATH_KNOBS

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    path
    for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("kernels/*.md"))
    if path.name != "CHANGELOG.md"
)
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"`([^`]+)`")


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def anchors(text: str) -> set[str]:
    """Return what `#` can name in a page, as GitHub makes it from headings."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def command_lines(blocks: Iterable[str]) -> Iterator[str]:
    """Yield every `wanlab` command of some text, without its first word."""
    for line in "\n".join(blocks).splitlines():
        found = re.match(r"\s*(?:[A-Z_]+=\S+ )?(?:\.venv/bin/)?wanlab (.+)", line)
        if found:
            yield found[1]


def typed(text: str) -> Iterator[str]:
    """Yield the commands that a page tells to type: lines of `sh` blocks and of indented ones."""
    yield from command_lines(body for kind, body in FENCE.findall(text) if kind == "sh")
    yield from command_lines(line for line in FENCE.sub("", text).splitlines() if line.startswith("    "))


def mentioned(text: str) -> Iterator[str]:
    """Yield the commands that a page names within a line; they may be cut short."""
    yield from command_lines(" ".join(code.split()) for code in CODE.findall(FENCE.sub("", text)))


def commands() -> list[tuple[str, list[str]]]:
    """Return every command that is to be typed: the page's name and the words, comments taken off."""
    return [
        (str(path.relative_to(ROOT)), shlex.split(line, comments=True))
        for path in PAGES
        for line in typed(path.read_text(encoding="utf-8"))
    ]


def flags() -> set[str]:
    """Return every flag of every command."""
    from docs import generate  # noqa: PLC0415 (a script; the repository is on the path in tests)

    return {
        word for _, sub in generate.commands() for action in sub._actions for word in action.option_strings
    } | {"--version"}


def test_generated_parts_are_as_the_code_has_them() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "generate.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    text = FENCE.sub("", path.read_text(encoding="utf-8"))
    for link in LINK.findall(text):
        if "://" in link:
            continue
        file, _, anchor = link.partition("#")
        target = (path.parent / file).resolve() if file else path
        assert target.exists(), f"{link} leads nowhere"
        if anchor:
            assert anchor in anchors(target.read_text(encoding="utf-8")), f"{link}: no such heading"


def test_the_index_names_every_page() -> None:
    named = {
        (ROOT / "docs" / link.partition("#")[0]).resolve() for link in LINK.findall(page("docs/index.md"))
    }
    assert {path for path in PAGES if path.parent != ROOT} - named == {ROOT / "docs" / "index.md"}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_flags_are_there(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    lines = [*typed(text), *mentioned(text)]
    named = {word for line in lines for word in re.findall(r"(?<=\s)--[a-z-]+", f" {line}")}
    named |= set(re.findall(r"`(--[a-z-]+)[^`]*`", FENCE.sub("", text)))
    others = {"--require-hashes", "--check", "--custom"}  # pip's, docs/generate.py's, mn's
    assert named - others <= flags()


@pytest.mark.parametrize(("where", "words"), commands())
def test_commands_parse(where: str, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    try:
        parser().parse_args(words)
    except SystemExit:
        pytest.fail(f"{where}: {capsys.readouterr().err}")


@pytest.mark.parametrize(("where", "words"), [one for one in commands() if one[1][0] == "run"])
def test_runs_have_points(where: str, words: list[str], tmp_path: Path) -> None:
    arguments = parser().parse_args(words)
    script = ROOT / arguments.scenario
    if not script.exists():  # one that a page tells to save
        example = examples()[str(arguments.scenario)]
        script = tmp_path / script.name
        script.write_text(example)
    settings = parse_settings(arguments.settings)
    preset = settings.pop("preset", [None])[0]
    study = scenario.load(script).scenario.with_preset(preset)
    assert sweep.points(study, settings, engine=arguments.engine, seeds=[1]), where


def examples() -> dict[str, str]:
    """Return the scenarios that pages show, by the name under which they are to be saved."""
    found = {}
    for path in PAGES:
        for kind, body in FENCE.findall(path.read_text(encoding="utf-8")):
            name = re.search(r'^    name="(\w+)",$', body, re.MULTILINE)
            if kind == "python" and name:
                found[f"{name[1]}.py"] = body
    return found


def test_python_compiles() -> None:
    for path in PAGES:
        for kind, body in FENCE.findall(path.read_text(encoding="utf-8")):
            if kind == "python":
                ast.parse(body, str(path))


def rows(heading: str) -> list[tuple[str, str, str]]:
    """Return the rows of the table under a heading of the page on units."""
    part = page("docs/reference/units.md").partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"^\| (\w+) \| `([^`]*)` \| `?(.*?)`? \|$", part, re.MULTILINE)


READ, REFUSED = rows("What is read, and what it becomes"), rows("What is refused, and why")


def test_the_tables_of_quantities_are_found() -> None:
    assert len(READ) > 20
    assert len(REFUSED) > 20


@pytest.mark.parametrize(("knob", "written", "becomes"), READ)
def test_quantities_become_what_the_page_says(knob: str, written: str, becomes: str) -> None:
    assert PATH_KNOBS[knob].canonical(written) == becomes


@pytest.mark.parametrize(("knob", "written", "_why"), REFUSED)
def test_quantities_that_the_page_says_are_refused(knob: str, written: str, _why: str) -> None:
    with pytest.raises(UnitError):
        PATH_KNOBS[knob].canonical(written)


def test_the_prediction_in_the_readme_is_what_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    text = page("README.md")
    (line,) = [words for where, words in commands() if where == "README.md" and words[0] == "predict"]
    assert main(line) == 0
    printed = [" ".join(row.split()) for row in capsys.readouterr().out.splitlines() if row.strip()]
    (shown,) = [body for kind, body in FENCE.findall(text) if kind == "text" and "goodput by link" in body]
    rule = "─"
    assert [row for row in printed if rule not in row] == [
        " ".join(row.split()) for row in shown.splitlines() if row.strip() and rule not in row
    ]
