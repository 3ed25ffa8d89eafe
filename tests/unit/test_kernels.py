"""lab.kernels: recipes, sources, the cache; on fake kernel trees that real make, patch and tar work on."""

from __future__ import annotations

import fcntl
import json
import os
import platform
import re
import shutil
import subprocess
import tarfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab import clock
from lab.errors import EngineError, PreconditionError, UserError
from lab.kernels import build, cache, recipe, sources
from lab.kernels.build import build_kernel
from lab.kernels.cache import find_kernel, list_kernels
from lab.kernels.steps import error_lines

MAKEFILE = """\
VERSION = 6
PATCHLEVEL = 99

mrproper:
	rm -rf .config include/config linux
allnoconfig:
	grep -F -x -v -f refused "$(KCONFIG_ALLCONFIG)" >.config
	sed -n 's/^\\tdefault /CONFIG_HZ=/p' arch/um/Kconfig >>.config
linux:
	env >$(CURDIR)/seen-env
	sh ./compile
"""

COMPILE = """\
test -e .config || exit 9
echo "  CC      init/main.o"
echo "  CC      net/core/dev.o"
mkdir -p include/config
echo 6.99.1 >include/config/kernel.release
cp seen-env linux
"""

KCONFIG = "config HZ\n\tint\n\tdefault 100\n"


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of its own, an x86-64 with room, and no need of the real compiler's tools."""
    monkeypatch.setenv("WANLAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(build, "_TOOL_PACKAGES", {"make": "make", "patch": "patch", "tar": "tar"})
    monkeypatch.setattr(build, "_compiler", lambda: "gcc 12")
    monkeypatch.setattr(build, "_NEEDED_BYTES", 0)
    monkeypatch.setattr(sources, "DEBIAN_FOLDER", tmp_path / "src")
    (tmp_path / "src").mkdir()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree that the lab's patches apply to and whose make takes every option but two."""
    tree = tmp_path / "linux"
    for name, text in {
        "Makefile": MAKEFILE,
        "compile": COMPILE,
        "refused": "CONFIG_TCP_CONG_BBR3=y\nCONFIG_NET_SCH_DUALPI2=y\n",
        "arch/um/Makefile": "",
        "arch/um/Kconfig": KCONFIG,
        **{name: text for _, patch in recipe.load_recipe().patches for name, text in before_patch(patch)},
        "drivers/x.c": "int x;\n",
    }.items():
        put(tree / name, text)
    (tree / "arch/um/link").symlink_to("os-Linux")
    return tree


def put(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def before_patch(patch: str) -> Iterator[tuple[str, str]]:
    """Yield each file that a patch touches, with a text that its hunks apply to."""
    for part in patch.split("\n--- a/")[1:]:
        name, *lines = part.splitlines()
        text: list[str] = []
        for line in lines[1:]:
            start = re.match(r"@@ -(\d+)", line)
            if start:
                text += [""] * (int(start[1]) - 1 - len(text))
            elif not line.startswith("+"):
                text.append(line[1:])
        yield name, "".join(f"{line}\n" for line in text)


def snapshot(folder: Path) -> dict[str, tuple[int, int, str]]:
    """Return every file of a folder with its mode, time and content or target."""
    return {
        str(file.relative_to(folder)): (
            file.lstat().st_mode,
            file.lstat().st_mtime_ns,
            str(file.readlink()) if file.is_symlink() else file.read_bytes().hex(),
        )
        for file in folder.rglob("*")
        if file.is_symlink() or file.is_file()
    }


def tarball(tree: Path, to: Path) -> Path:
    with tarfile.open(to, "w:xz") as tar:
        tar.add(tree, "linux-source-6.99")
    return to


def git(tree: Path, *words: str) -> str:
    settings = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    argv = ["git", "-C", str(tree), *settings, *words]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


def is_running(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def visible(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir() if not file.name.startswith(".lock."))


# --- names, addresses, options ---------------------------------------------------------------------


@pytest.mark.parametrize("name", ["6.12", "bbr3", "A", "a" * 40, "my_tree-2.x"])
def test_names_that_are_names(name: str) -> None:
    recipe.check_name(name)


@pytest.mark.parametrize("name", ["", "a" * 41, "-x", ".x", "a b", "a,b", "a@b", "a/b", "ä", "a\n", "host"])
def test_names_that_are_none(name: str) -> None:
    with pytest.raises(UserError):
        recipe.check_name(name)


def test_addresses_read_back() -> None:
    assert recipe.parse_address("6.12") == ("6.12", 250)
    assert recipe.parse_address("6.12@250") == ("6.12", 250)
    for hz in recipe.HZ_CHOICES:
        assert recipe.parse_address(recipe.address("6.1", hz)) == ("6.1", hz)
    assert recipe.address("6.1", 250) == "6.1"
    assert recipe.address("6.1", 1000) == "6.1@1000"


@pytest.mark.parametrize("text", ["6.1@", "6.1@x", "6.1@300", "6.1@-100", "6.1@100@100", "@100", "6.1@²"])
def test_addresses_that_are_none(text: str) -> None:
    with pytest.raises(UserError):
        recipe.parse_address(text)


def test_the_shipped_options_and_patches() -> None:
    shipped = recipe.load_recipe()
    assert "CONFIG_UML_TIME_TRAVEL_SUPPORT=y" in shipped.required
    assert {"CONFIG_DEVTMPFS=y", "CONFIG_DEVTMPFS_MOUNT=y"} <= set(shipped.required)
    assert "CONFIG_TCP_CONG_BBR3=y" in shipped.optional
    assert "CONFIG_HZ" not in shipped.options_text
    assert "CONFIG_UML_RANDOM" not in shipped.options_text, "it would let the host's entropy in"
    assert shipped.patches


def test_options_know_their_section() -> None:
    text = "# about\n\n# --- required: a --\nCONFIG_A=y\n# --- where the tree has it ---\nCONFIG_B=2\n"
    assert recipe.parse_options(text) == (("CONFIG_A=y",), ("CONFIG_B=2",))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("CONFIG_A=y\n", "line 1: CONFIG_A stands under no known section"),
        ("# --- odd ---\nCONFIG_A=y\n", "line 2: CONFIG_A stands under no known section"),
        ("# --- required: a ---\nCONFIG_A=y\nCONFIG_A=n\n", "line 3: CONFIG_A is there twice"),
        ("# --- required: a ---\nCONFIG_A y\n", "line 2: 'CONFIG_A y' is not CONFIG_NAME=value"),
    ],
)
def test_options_that_do_not_read(text: str, told: str) -> None:
    with pytest.raises(UserError, match=told):
        recipe.parse_options(text)


def test_the_recipe_hash_follows_what_decides() -> None:
    one = recipe.Recipe(("CONFIG_A=y",), ("CONFIG_B=y",), (("1.patch", "x"),), 250)
    others = [
        recipe.Recipe(("CONFIG_A=n",), one.optional, one.patches, 250),
        recipe.Recipe(one.required, (), one.patches, 250),
        recipe.Recipe((*one.required, *one.optional), (), one.patches, 250),
        recipe.Recipe(one.required, one.optional, (("1.patch", "y"),), 250),
        recipe.Recipe(one.required, one.optional, one.patches, 1000),
    ]
    assert len({one.hash, *(other.hash for other in others)}) == 6
    assert one.hash == recipe.Recipe(("CONFIG_A=y",), ("CONFIG_B=y",), (("1.patch", "x"),), 250).hash


def test_a_configuration_is_held_against_the_recipe() -> None:
    asked = recipe.Recipe(("CONFIG_A=y", "CONFIG_B=y"), ("CONFIG_C=y", "CONFIG_D=y"), (), 250)
    config = "CONFIG_A=y\nCONFIG_B=y\nCONFIG_D=y\nCONFIG_HZ=250\n"
    assert recipe.check_config(asked, config) == ("CONFIG_C",)
    with pytest.raises(UserError, match="CONFIG_A=y, CONFIG_B=y"):
        recipe.check_config(asked, "CONFIG_HZ=250\n# CONFIG_A is not set\nCONFIG_B=yes\n")
    with pytest.raises(UserError, match="HZ=250"):
        recipe.check_config(asked, config.replace("HZ=250", "HZ=100"))


def test_hz_is_set_where_uml_fixes_it() -> None:
    around = "config A\n\tint\n\tdefault 100\n\n{}\nconfig B\n\tint\n\tdefault 100\n"
    assert recipe.with_hz(around.format(KCONFIG), 1000) == around.format(KCONFIG.replace("100", "1000"))
    for other in ("config B\n\tdefault 100\n", "config HZ\n\tint\n\nconfig B\n\tdefault 100\n"):
        assert recipe.with_hz(other, 1000) == other


# --- a build ---------------------------------------------------------------------------------------


def test_a_tree_becomes_a_kernel_and_stays_as_it_was(tree: Path) -> None:
    before, told = snapshot(tree), []
    record = build_kernel("mine", source=tree, jobs=1, progress=lambda *what: told.append(what))

    assert snapshot(tree) == before
    assert (record.name, record.address, record.hz, record.release) == ("mine", "mine", 250, "6.99.1")
    assert record.source == str(tree)
    assert record.source_hash.startswith("tree:")
    assert record.options_left_out == ("CONFIG_TCP_CONG_BBR3", "CONFIG_NET_SCH_DUALPI2")
    assert not record.stale
    assert record.path.stat().st_mode & 0o777 == 0o755
    assert sorted(file.name for file in record.path.parent.iterdir()) == [
        "build.log",
        "config",
        "kernel.json",
        "linux",
    ]
    assert "CONFIG_HZ=250" in (record.path.parent / "config").read_text()
    assert "net/core/dev.o" in (record.path.parent / "build.log").read_text()
    assert visible(cache.kernels_folder()) == [record.path.parent.name]
    assert find_kernel("mine") == record
    assert list_kernels() == [record]

    phases, fractions = zip(*told, strict=True)
    assert list(dict.fromkeys(phases)) == [
        "reading the source",
        "unpacking the source",
        "configuring",
        "compiling",
        "built",
    ]
    assert list(fractions) == sorted(fractions)
    assert fractions[-1] == 1.0


def test_a_kernel_appears_whole_by_one_rename(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []
    rename = Path.rename

    def watched(self: Path, target: Path) -> Path:
        assert list_kernels() == []
        seen.append(sorted(file.name for file in self.iterdir()))
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", watched)
    build_kernel("mine", source=tree)
    assert seen == [["build.log", "config", "kernel.json", "linux"]]


def test_a_kernel_is_built_once(tree: Path) -> None:
    first = build_kernel("mine", source=tree)
    told: list[str] = []
    assert build_kernel("mine", source=tree, progress=lambda phase, _: told.append(phase)) == first
    assert told == ["reading the source"]
    put(tree / "drivers/x.c", "int y;\n")
    second = build_kernel("mine", source=tree)
    assert second.path != first.path
    assert find_kernel("mine") == second, "the newest is meant"


def test_kernels_of_several_hz_stand_side_by_side(tree: Path) -> None:
    slow, fast = (build_kernel("mine", source=tree, hz=hz) for hz in (250, 1000))
    assert fast.address == "mine@1000"
    assert "CONFIG_HZ=1000" in (fast.path.parent / "config").read_text()
    assert find_kernel("mine") == slow
    assert find_kernel("mine@1000") == fast
    with pytest.raises(
        PreconditionError, match="`wanlab kernel build mine --source TREE-or-TARBALL --hz 100`"
    ):
        find_kernel("mine@100")


def test_a_tree_that_was_built_in_place(tree: Path) -> None:
    clean = build_kernel("mine", source=tree)
    for left in (".config", "drivers/x.o", "drivers/.x.o.cmd", "include/config/auto.conf"):
        put(tree / left, "stale")
    put(tree / "arch/x86/include/generated/a.h", "stale")
    before = snapshot(tree)
    assert build_kernel("mine", source=tree) == clean, "what a build left behind is no change of the source"
    put(tree / "drivers/x.c", "int y;\n")
    put(tree / "compile", COMPILE + "find . >linux\n")
    copied = build_kernel("mine", source=tree).path.read_text().splitlines()
    assert "./drivers/x.c" in copied
    assert "./arch/um/link" in copied
    assert not [name for name in copied if name.endswith((".o", ".cmd", "auto.conf", "a.h"))]
    assert before.keys() == snapshot(tree).keys()
    put(tree / "linux", "what the user built")
    assert "./drivers/x.c" in build_kernel("mine", source=tree).path.read_text()


def test_a_read_only_tree(tree: Path) -> None:
    for file in tree.rglob("*"):
        if file.is_file() and not file.is_symlink():
            file.chmod(0o444)
    (tree / "compile").chmod(0o644)
    put(tree / "compile", COMPILE + "stat -c %A arch/um/Kconfig >linux\n")
    assert build_kernel("mine", source=tree).path.read_text().startswith("-rw")


def test_a_git_checkout_is_its_commit_and_what_differs(tree: Path) -> None:
    put(tree / ".gitignore", "*.o\n")
    put(tree / "drivers/gone.c", "")
    git(tree, "init", "-q")
    git(tree, "add", ".")
    git(tree, "commit", "-q", "-m", "one")
    commit = git(tree, "rev-parse", "HEAD").strip()
    source, index = sources.Source(tree), tree.parent / "index"
    assert sources.identity(source, index) == f"git:{commit}"

    put(tree / "x.o", "ignored")
    os.utime(tree / "drivers/x.c", (1, 1))  # git would refresh its index for this one
    git_index = (tree / ".git/index").read_bytes()
    assert sources.identity(source, index) == f"git:{commit}"

    put(tree / "drivers/x.c", "int y;\n")
    put(tree / "net/new.c", "")
    (tree / "drivers/gone.c").unlink()
    changed = sources.identity(source, index)
    assert changed.startswith(f"git:{commit}+")
    put(tree / "net/new.c", "int n;\n")
    assert len({changed, sources.identity(source, index), f"git:{commit}"}) == 3
    assert (tree / ".git/index").read_bytes() == git_index, "reading a user's tree must not write to it"

    put(tree / "compile", COMPILE + "find . >linux; cat drivers/x.c >>linux\n")
    copied = build_kernel("mine", source=tree).path.read_text().splitlines()
    assert {"./net/new.c", "int y;"} <= set(copied)
    assert not {"./.git", "./x.o", "./drivers/gone.c"} & set(copied)


def test_a_folder_inside_a_checkout_is_no_checkout(tree: Path) -> None:
    git(tree.parent, "init", "-q")
    put(tree.parent / "a", "")
    git(tree.parent, "add", "a")
    git(tree.parent, "commit", "-q", "-m", "one")
    assert sources.identity(sources.Source(tree), tree.parent / "index").startswith("tree:")


def test_a_content_hash_sees_names_kinds_and_contents(tmp_path: Path) -> None:
    put(tmp_path / "a", "1")
    seen = {sources.content_hash(tmp_path, ["a"])}
    put(tmp_path / "a", "2")
    seen.add(sources.content_hash(tmp_path, ["a"]))
    (tmp_path / "a").chmod(0o755)
    seen.add(sources.content_hash(tmp_path, ["a"]))
    (tmp_path / "a").unlink()
    seen.add(sources.content_hash(tmp_path, ["a"]))
    (tmp_path / "a").symlink_to("b")
    seen.add(sources.content_hash(tmp_path, ["a"]))
    put(tmp_path / "b", "2")
    seen.add(sources.content_hash(tmp_path, ["b"]))
    assert len(seen) == 6


def test_a_tarball_of_debian(tree: Path) -> None:
    file = tarball(tree, sources.debian_tarball("6.12"))
    record = build_kernel("6.12")
    assert record.source == str(file)
    assert record.source_hash.startswith("sha256:")
    file.unlink()
    assert find_kernel("6.12") == record, "looking at results must not need sources"
    assert build_kernel("6.12") == record
    with pytest.raises(PreconditionError, match=r"apt-get install linux-source-6\.12"):
        build_kernel("6.12", hz=100)


def test_a_tarball_is_hashed_once(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = tree.parent / "index"
    files = [tarball(tree, tree.parent / f"{name}.tar.xz") for name in "ab"]
    hashes = [sources.identity(sources.Source(file), index) for file in files]
    with monkeypatch.context() as patched:
        patched.delattr(sources, "_sha256")
        assert [sources.identity(sources.Source(file), index) for file in files] == hashes
    put(files[0], "another")
    assert sources.identity(sources.Source(files[0]), index) != hashes[0]
    index.write_text("[")
    assert sources.identity(sources.Source(files[1]), index) == hashes[1]


def test_tarballs_that_are_no_kernel(tree: Path, tmp_path: Path) -> None:
    put(tmp_path / "text.tar", "text")
    with pytest.raises(UserError, match=r"text\.tar does not unpack"):
        build_kernel("mine", source=tmp_path / "text.tar")
    with tarfile.open(tmp_path / "two.tar", "w") as tar:
        tar.add(tree, "one")
        tar.add(tree, "two")
    with pytest.raises(UserError, match="exactly one folder"):
        build_kernel("mine", source=tmp_path / "two.tar")
    (tree / "Makefile").unlink()
    with pytest.raises(UserError, match=r"other\.tar is not a Linux source tree"):
        build_kernel("mine", source=tarball(tree, tmp_path / "other.tar"))
    assert list_kernels() == []


def test_the_callers_environment_does_not_reach_the_kernel(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("MAKEFLAGS", "ARCH", "CROSS_COMPILE", "KBUILD_OUTPUT", "KCFLAGS", "LOCALVERSION"):
        monkeypatch.setenv(name, "broken")
    seen = dict(
        line.split("=", 1) for line in build_kernel("mine", source=tree).path.read_text().splitlines()
    )
    assert seen["KBUILD_BUILD_TIMESTAMP"] == "Thu Jan  1 00:00:00 UTC 1970"
    assert {seen["KBUILD_BUILD_USER"], seen["KBUILD_BUILD_HOST"]} == {"wanlab"}
    assert "broken" not in seen.values()


# --- builds that fail ------------------------------------------------------------------------------


def test_a_patch_that_does_not_apply(tree: Path) -> None:
    put(tree / "arch/um/os-Linux/util.c", "int nothing;\n")
    name = recipe.load_recipe().patches[0][0]
    with pytest.raises(UserError, match=f"the lab's patch {name} does not apply to {tree}"):
        build_kernel("mine", source=tree)
    assert list_kernels() == []


def test_a_tree_that_has_the_patch_already(tree: Path) -> None:
    name, _ = recipe.load_recipe().patches[0]
    patch = recipe.RECIPE_FOLDER / "patches" / name
    subprocess.run(["patch", "-s", "-p1", "-i", str(patch)], cwd=tree, check=True)
    assert build_kernel("mine", source=tree).release == "6.99.1"


def test_a_tree_that_changes_while_it_is_copied(tree: Path) -> None:
    def edit(phase: str, _fraction: float) -> None:
        if phase == "unpacking the source":
            put(tree / "drivers/x.c", "int y;\n")

    with pytest.raises(UserError, match=f"{tree} changed while it was copied"):
        build_kernel("mine", source=tree, progress=edit)
    assert list_kernels() == []


def test_required_options_that_the_tree_refuses(tree: Path) -> None:
    put(tree / "refused", "CONFIG_HOSTFS=y\nCONFIG_VETH=y\n")
    with pytest.raises(UserError, match="refuses options that the lab needs: CONFIG_HOSTFS=y, CONFIG_VETH=y"):
        build_kernel("mine", source=tree)
    assert list_kernels() == []


def test_a_compile_error_is_shown_and_its_log_kept(tree: Path) -> None:
    many = "i=0; while [ $i -lt 40 ]; do echo line $i; i=$((i+1)); done\n"
    put(tree / "compile", f"echo 'net/a.c:7:1: error: unknown type'\n{many}exit 1\n")
    with pytest.raises(EngineError) as failed:
        build_kernel("mine", source=tree)
    message = str(failed.value)
    (log,) = cache.kernels_folder().glob("failed-mine-*.log")
    assert "kernel mine did not compile" in message
    assert str(log) in message
    assert "net/a.c:7:1: error: unknown type" in message
    assert "line 39" in message
    assert "line 20" not in message
    assert "line 20" in log.read_text()
    assert list_kernels() == []
    assert visible(cache.kernels_folder()) == [log.name]

    put(tree / "compile", COMPILE)
    build_kernel("mine", source=tree)
    assert log.exists(), "another source, another log"


def test_a_failure_that_goes_away_takes_its_log_along(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(build, "_collect", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left")))
        with pytest.raises(EngineError, match=r"kernel mine could not be built: .*No space left"):
            build_kernel("mine", source=tree)
    assert [name[:12] for name in visible(cache.kernels_folder())] == ["failed-mine-"]
    build_kernel("mine", source=tree)
    assert [name[:5] for name in visible(cache.kernels_folder())] == ["mine-"]


def test_error_lines_come_in_order_and_once() -> None:
    lines = ["a.c: error: one", *(f"line {n}" for n in range(20)), "b.c: error: two", "make: *** end"]
    shown = error_lines(lines)
    assert shown[0] == "  a.c: error: one"
    assert shown[1] == "  line 7"
    assert shown[-2:] == ["  b.c: error: two", "  make: *** end"]
    assert len(shown) == len(set(shown)) == 16
    assert error_lines([]) == []


def test_an_interrupted_build_leaves_nothing(tree: Path, tmp_path: Path) -> None:
    put(tree / "compile", f"echo $$ >{tmp_path}/pid\necho '  CC      a.o'\nsleep 60\n")

    def interrupt(phase: str, fraction: float) -> None:
        if phase == "compiling" and fraction > 0.081:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_kernel("mine", source=tree, progress=interrupt)
    assert visible(cache.kernels_folder()) == []
    assert not is_running((tmp_path / "pid").read_text().strip())


def test_folders_of_killed_builds_are_removed_and_those_of_living_ones_not(tree: Path) -> None:
    folder = cache.make_kernels_folder()
    dead, alive = folder / ".build.x.y-1-0123456789ab.abcd", folder / ".build.z-0123456789ab.abcd"
    for work in (dead, alive):
        put(work / "source/Makefile", "")
    with (folder / ".lock.z-0123456789ab").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        build_kernel("mine", source=tree)
        assert not dead.exists()
        assert alive.exists()
    put(tree / "drivers/x.c", "int y;\n")
    build_kernel("mine", source=tree)
    assert not alive.exists()


def test_the_second_of_two_builds_waits_for_the_first(tree: Path, tmp_path: Path) -> None:
    wait = f"echo >>{tmp_path}/compiled\nwhile ! test -e {tmp_path}/go; do sleep 0.02; done\n"
    put(tree / "compile", wait + COMPILE)
    phases: list[list[str]] = [[], []]
    records: list[object] = [None, None]

    def one(n: int) -> None:
        records[n] = build_kernel("mine", source=tree, progress=lambda phase, _: phases[n].append(phase))

    threads = [threading.Thread(target=one, args=(n,)) for n in range(2)]
    for thread in threads:
        thread.start()
    give_up = time.monotonic() + 20
    while not any("waiting for" in phase for own in phases for phase in own) and time.monotonic() < give_up:
        time.sleep(0.01)
    (tmp_path / "go").touch()
    for thread in threads:
        thread.join(20)
    assert records[0] is not None
    assert records[0] == records[1]
    assert sorted(own[-1].split()[0] for own in phases) == ["built", "waiting"]
    assert (tmp_path / "compiled").read_text() == "\n"


# --- what is in the cache --------------------------------------------------------------------------


@pytest.fixture
def built(tree: Path) -> cache.KernelRecord:
    return build_kernel("mine", source=tree)


def test_a_half_written_kernel_is_not_used(tree: Path, built: cache.KernelRecord) -> None:
    record = built.path.parent / "kernel.json"
    whole = record.read_text()
    for torn in ("", whole[:40], "[]", "{}", json.dumps({**json.loads(whole), "hz": None})):
        record.write_text(torn)
        assert list_kernels() == []
        with pytest.raises(PreconditionError, match="not built yet"):
            find_kernel("mine")
    record.write_text(whole)
    built.path.unlink()
    assert list_kernels() == []
    again = build_kernel("mine", source=tree)
    assert (again.path, again.source_hash) == (built.path, built.source_hash)
    assert visible(cache.kernels_folder()) == [built.path.parent.name]


def test_a_kernel_of_another_recipe_is_shown_but_not_used(
    tree: Path, built: cache.KernelRecord, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    changed = tmp_path / "kernels"
    shutil.copytree(recipe.RECIPE_FOLDER, changed)
    options = changed / "wanlab.config"
    monkeypatch.setattr(recipe, "RECIPE_FOLDER", changed)
    options.write_text("# a comment\n" + options.read_text())
    assert find_kernel("mine") == built
    options.write_text(options.read_text() + "CONFIG_NEW=y\n")
    assert [record.stale for record in list_kernels()] == [True]
    with pytest.raises(PreconditionError, match=f"`wanlab kernel build mine --source {tree}` rebuilds it"):
        find_kernel("mine")
    new = build_kernel("mine", source=tree)
    assert find_kernel("mine") == new
    assert [record.stale for record in list_kernels()] == [False, True]


def test_another_compiler_invalidates_nothing(
    tree: Path, built: cache.KernelRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "_compiler", lambda: "gcc 13")
    assert find_kernel("mine") == built
    assert build_kernel("mine", source=tree).compiler == "gcc 13"
    assert len(list_kernels()) == 2


def test_of_several_the_newest_is_found(
    tree: Path, built: cache.KernelRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock, "wall_s", lambda: 0.0)
    put(tree / "drivers/x.c", "int y;\n")
    old = build_kernel("mine", source=tree)
    assert old.built_at == "1970-01-01T00:00:00.000+00:00"
    assert find_kernel("mine") == built
    assert list_kernels() == [built, old]


def test_an_empty_cache_lists_nothing_and_stays_empty(tmp_path: Path) -> None:
    assert list_kernels() == []
    with pytest.raises(PreconditionError, match=r"`wanlab kernel build 6\.12` builds it"):
        find_kernel("6.12")
    assert not (tmp_path / "cache").exists()


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert cache.cache_root() == tmp_path / "cache"
    monkeypatch.delenv("WANLAB_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache.cache_root() == tmp_path / "xdg/wanlab"
    monkeypatch.setenv("HOME", str(tmp_path))
    for unusable in ("", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", unusable)
        assert cache.cache_root() == tmp_path / ".cache/wanlab"


# --- what a build needs ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "words", "told"),
    [
        ("a,b", {}, "cannot name a kernel"),
        ("6.12", {"hz": 300}, "100, 250, 1000, not 300"),
        ("6.12", {"jobs": 0}, "1 job or more"),
        ("bbr3", {}, "wanlab kernel build bbr3 --source"),
        ("bbr3", {"source": Path("/nowhere/linux")}, "no kernel source at /nowhere/linux"),
        ("bbr3", {"source": Path("/etc")}, "/etc is not a Linux source tree"),
    ],
)
def test_arguments_that_cannot_be(name: str, words: dict[str, object], told: str) -> None:
    with pytest.raises(UserError, match=told):
        build_kernel(name, **words)  # type: ignore[arg-type]


def test_a_tree_without_uml(tree: Path) -> None:
    shutil.rmtree(tree / "arch/um")
    with pytest.raises(UserError, match="without arch/um"):
        build_kernel("mine", source=tree)


def refusal(tree: Path) -> str:
    with pytest.raises(PreconditionError) as refused:
        build_kernel("mine", source=tree)
    return str(refused.value)


def test_another_machine(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert "on x86-64 only and this machine is aarch64" in refusal(tree)


def test_all_missing_tools_at_once(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "_TOOL_PACKAGES", {"no-such": "one", "make": "make", "nor-this": "two"})
    assert "needs no-such, nor-this; `apt-get install one two`" in refusal(tree)


def test_a_full_disk(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "_NEEDED_BYTES", 2**80)
    assert "set WANLAB_CACHE" in refusal(tree)
    assert visible(cache.kernels_folder()) == []


def test_a_cache_that_cannot_be_written(tree: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    put(tmp_path / "file", "")
    monkeypatch.setenv("WANLAB_CACHE", str(tmp_path / "file"))
    assert f"cache {tmp_path}/file/kernels cannot be written (Not a directory); set WANLAB" in refusal(tree)


@pytest.mark.parametrize("odd", ["a b", "a:b"])
def test_a_cache_that_make_cannot_work_in(
    tree: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, odd: str
) -> None:
    monkeypatch.setenv("WANLAB_CACHE", str(tmp_path / odd))
    assert "has a space or a colon in its path" in refusal(tree)
