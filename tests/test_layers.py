"""Who may import whom in `lab`, held by walking every import.

Imports point down the list of layers or stay inside one package. Imports inside
functions count as well.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]

LAYERS = (  # from the bottom up; what stands in one line does not import each other
    "errors netlink clock scratch",
    "units command queues tcpinfo",
    "qdisc values uml",
    "memory kernels routes plans",
    "steady losses changes loads",
    "knobs model doctor",
    "schema combination traces provenance",
    "scenario layout",
    "traffic wishes captures",
    "varying pathcheck setting",
    "checks",
    "sweep expectations",
    "spec",
    "probes workloads",
    "machine",
    "agent",
    "remote",
    "engines",
    "records store verdict explain measures statistics",
    "metrics repeats twin causes",
    "measured",
    "manifest report",
    "matching",
    "point compare",
    "apart",
    "run",
    "advise trial",
    "pytest_plugin",
    "cli",
    "__main__",
)
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names.split()}

PURE = {
    *("errors", "units", "values", "memory", "losses", "changes", "loads", "knobs", "routes"),
    *("netlink", "qdisc", "queues", "tcpinfo", "schema", "plans", "model", "steady"),
    *("combination", "layout", "traffic", "setting", "checks", "twin", "causes"),
}
PURE_LIBRARY = {
    *(
        "__future__",
        "bisect",
        "collections",
        "dataclasses",
        "decimal",
        "enum",
        "functools",
        "hashlib",
        "itertools",
    ),
    *("json", "math", "random", "re", "statistics", "struct", "textwrap", "typing"),
}
IMPURE_CALLS = {"open", "print", "input", "exec", "eval", "breakpoint", "__import__"}

INSIDE = {"agent", "probes", "workloads"}
INSIDE_MAY = INSIDE | {"netlink", "qdisc", "queues", "plans", "clock"}


def modules() -> dict[str, ast.Module]:
    """Return every module of the package, by its name without `lab.`; a package by its own."""
    found = {}
    for file in sorted((REPOSITORY / "lab").rglob("*.py")):
        parts = file.relative_to(REPOSITORY / "lab").with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = ast.parse(file.read_text(), str(file))
    return found


MODULES = modules()
NAMED = [name for name in MODULES if name]


def imports(name: str) -> Iterator[str]:
    """Yield the full name of every module that a module imports, `lab.` and others."""
    for node in ast.walk(MODULES[name]):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"lab.{name} has a relative import"
            assert node.module is not None
            inside = node.module.removeprefix("lab").removeprefix(".")
            for alias in node.names:
                candidate = f"{inside}.{alias.name}".removeprefix(".")
                is_module = layer(node.module) == "lab" and candidate in MODULES
                yield f"lab.{candidate}" if is_module else node.module


def ours(name: str) -> set[str]:
    """Return the modules of `lab` that a module imports, without `lab.`."""
    return {found.removeprefix("lab.") for found in imports(name) if found.startswith("lab.")}


def others(name: str) -> set[str]:
    """Return the packages outside `lab` that a module imports."""
    return {found.split(".")[0] for found in imports(name)} - {"lab"}


def layer(name: str) -> str:
    return name.partition(".")[0]


def reached(name: str) -> set[str]:
    """Return all modules of `lab` that importing one leads to, the packages on the way too."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        for one in ours(waiting.pop()):
            for part in (one, layer(one)):
                if part in MODULES and part not in found:
                    found.add(part)
                    waiting.append(part)
    return found


@pytest.mark.parametrize("name", NAMED)
def test_imports_point_down(name: str) -> None:
    assert layer(name) in RANK, f"lab.{name} has no layer; give it one here and in the map"
    for imported in ours(name):
        down = RANK[layer(imported)] < RANK[layer(name)]
        same = layer(imported) == layer(name)
        assert down or same, f"lab.{name} imports lab.{imported}, which does not stand below it"


def test_layers_are_those_there_are() -> None:
    assert set(RANK) == {layer(name) for name in NAMED}


@pytest.mark.parametrize("name", [name for name in NAMED if layer(name) in PURE])
def test_pure_modules_reach_nothing_outside(name: str) -> None:
    assert others(name) <= PURE_LIBRARY | {"difflib"}
    called = [node.func for node in ast.walk(MODULES[name]) if isinstance(node, ast.Call)]
    assert not {function.id for function in called if isinstance(function, ast.Name)} & IMPURE_CALLS
    assert {layer(one) for one in reached(name)} <= PURE | {"scenario"}


@pytest.mark.parametrize("name", [name for name in NAMED if layer(name) in PURE])
def test_chance_in_pure_modules_has_a_seed(name: str) -> None:
    """`random.Random(seed)` and nothing else of that module: equal settings, equal predictions."""
    used = {
        (node.attr, isinstance(node.ctx, ast.Load))
        for node in ast.walk(MODULES[name])
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "random"
    }
    assert used <= {("Random", True)}
    calls = [node for node in ast.walk(MODULES[name]) if isinstance(node, ast.Call)]
    made = [call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == "Random"]
    assert all(call.args for call in made)


BELOW_THE_MODEL = {"model", "steady", "memory", "units", "errors", "qdisc", "queues", "netlink"}


@pytest.mark.parametrize("name", [name for name in NAMED if layer(name) == "model"])
def test_model_knows_no_scenario_and_no_table(name: str) -> None:
    assert {layer(one) for one in reached(name)} <= BELOW_THE_MODEL


@pytest.mark.parametrize("name", [name for name in NAMED if layer(name) == "engines"])
def test_engines_never_import_each_other(name: str) -> None:
    assert {one for one in ours(name) if layer(one) == "engines"} <= {"engines.base"}


def test_engines_are_loaded_by_name_only() -> None:
    """So none of them can become a need of the others' users."""
    concrete = {name for name in NAMED if layer(name) == "engines"} - {"engines", "engines.base"}
    assert concrete >= {"engines.virtual"}
    for name in NAMED:
        assert not ours(name) & concrete, f"lab.{name} imports an engine"


RESULTS = {"store", "metrics", "records", "report", "expectations", "manifest", "verdict", "explain"}


@pytest.mark.parametrize("name", [name for name in NAMED if layer(name) in RESULTS])
def test_results_open_without_an_engine(name: str) -> None:
    assert not {layer(one) for one in reached(name)} & {"engines", "point", "run", "spec"}


def test_showing_a_run_needs_no_engine_s_module() -> None:
    for name in ("cli.show", "cli.report", "cli.predict"):
        assert {one for one in reached(name) if layer(one) == "engines"} <= {"engines", "engines.base"}


@pytest.mark.parametrize("name", [name for name in NAMED if layer(name) in INSIDE])
def test_agent_can_be_copied_to_any_machine(name: str) -> None:
    assert others(name) <= sys.stdlib_module_names | {"mininet"}
    assert {layer(one) for one in reached(name)} <= INSIDE_MAY


def test_netlink_sockets_are_the_agent_s() -> None:
    """Outside the agent nothing opens a socket; the browser and the doctor have their own reasons."""
    users = {layer(name) for name in NAMED if "socket" in others(name)}
    assert users <= INSIDE | {"doctor", "report"}


def test_importing_the_package_touches_nothing() -> None:
    assert list(imports("")) == []


def documented(name: str) -> Iterator[tuple[str, ast.AST]]:
    """Yield what has to be documented: public functions and classes, and public methods of those."""
    for node in MODULES[name].body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield node.name, node
            for inner in node.body if isinstance(node, ast.ClassDef) else ():
                if isinstance(inner, ast.FunctionDef) and not inner.name.startswith("_"):
                    yield f"{node.name}.{inner.name}", inner


@pytest.mark.parametrize("name", list(MODULES))
def test_public_names_are_documented(name: str) -> None:
    assert ast.get_docstring(MODULES[name]), f"lab.{name} does not say what it is"
    bare = [what for what, node in documented(name) if not ast.get_docstring(node)]  # type: ignore[arg-type]
    assert bare == []
