"""Socket memory settings: what each spelling means, and that equal settings are equal text."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lab import memory, units
from lab.errors import UnitError

MIB = 2**20
WHICH = st.sampled_from(["rmem", "wmem"])
SIZES = st.one_of(
    st.integers(4608, memory.LARGEST_BYTES),
    st.sampled_from([4608, 16384, 131072, 4194304, 6291456, 50 * MIB, memory.LARGEST_BYTES]),
)


@st.composite
def settings(draw: st.DrawFn) -> tuple[str, str, memory.Triple]:
    """Draw which one, a text and the triple that it means."""
    which = draw(WHICH)
    form = draw(st.sampled_from(["default", "SIZE", "max=", "triple"]))
    size = draw(SIZES)
    if form == "default":
        return which, " default ", memory.DEFAULTS[which]
    if form == "SIZE":
        return which, f"{size}B", memory.Triple(size, size, size)
    if form == "max=":
        minimum, default, _ = memory.DEFAULTS[which]
        return which, f"max={size}B", memory.Triple(min(minimum, size), min(default, size), size)
    part = st.integers(4096 if which == "rmem" else 1, size)
    low, middle = sorted(draw(st.tuples(part, part)))
    return which, f"{low}B:{middle}B:{size}B", memory.Triple(low, middle, size)


class TestParse:
    @pytest.mark.parametrize(
        ("text", "which", "triple"),
        [
            ("default", "rmem", (4096, 131072, 6291456)),
            ("default", "wmem", (4096, 16384, 4194304)),
            ("50MiB", "rmem", (50 * MIB, 50 * MIB, 50 * MIB)),
            ("50MB", "wmem", (50_000_000, 50_000_000, 50_000_000)),
            ("max=50MiB", "rmem", (4096, 131072, 50 * MIB)),
            ("max=50MiB", "wmem", (4096, 16384, 50 * MIB)),
            ("max=64KiB", "rmem", (4096, 65536, 65536)),
            ("max=4096B", "rmem", (4096, 4096, 4096)),
            ("4KiB:128KiB:50MiB", "rmem", (4096, 131072, 50 * MIB)),
            ("1B:1B:4608B", "wmem", (1, 1, 4608)),
            (" 50MiB\n", "rmem", (50 * MIB, 50 * MIB, 50 * MIB)),
        ],
    )
    def test_means(self, text: str, which: str, triple: tuple[int, int, int]) -> None:
        assert memory.parse(text, which) == triple

    def test_is_what_the_sysctl_reads(self) -> None:
        assert memory.parse("4KiB:128KiB:50MiB", "rmem").sysctl() == "4096 131072 52428800"

    @given(settings())
    def test_means_the_same_however_drawn(self, setting: tuple[str, str, memory.Triple]) -> None:
        which, text, triple = setting
        assert memory.parse(text, which) == triple
        assert triple.minimum <= triple.default <= triple.maximum


class TestRefusals:
    @pytest.mark.parametrize(
        ("text", "which", "message"),
        [
            (
                "128KiB:4KiB:50MiB",
                "rmem",
                "'128KiB:4KiB:50MiB' is out of order; MIN:DEFAULT:MAX must not fall",
            ),
            ("4KiB:128KiB:64KiB", "rmem", "out of order"),
            ("4KiB:50MiB", "rmem", "has 2 parts; write MIN:DEFAULT:MAX, such as 4KiB:128KiB:50MiB"),
            ("1KiB:2KiB:3KiB:4KiB", "rmem", "has 4 parts"),
            (
                "2147483648B",
                "rmem",
                "'2147483648B' is over 2147483647 bytes, the most that a socket buffer can be",
            ),
            ("max=2GiB", "wmem", "is over 2147483647 bytes"),
            ("4KiB:128KiB:2GiB", "rmem", "is over 2147483647 bytes"),
            ("4095B", "rmem", "'4095B' is under 4096 bytes, the kernel's least; take more"),
            ("4607B", "wmem", "is under 4608 bytes"),
            ("max=0", "rmem", "is under 4096 bytes"),
            ("0:128KiB:50MiB", "rmem", "is under 4096 bytes"),
            ("-1MiB", "rmem", "is under 4096 bytes"),
            ("-4KiB:128KiB:50MiB", "rmem", "is under 4096 bytes"),
            ("6291456", "rmem", "has no unit"),
            ("4096:131072:6291456", "rmem", "'4096' has no unit"),
            ("50m", "rmem", "is ambiguous"),
            ("Default", "rmem", "is not a size"),
            ("max=", "rmem", "is not a size"),
            ("min=4KiB", "rmem", "is not a size"),
            ("1e400MiB", "rmem", "is out of range"),
            ("", "rmem", "is not a size"),
        ],
    )
    def test_says_what_is_wrong(self, text: str, which: str, message: str) -> None:
        with pytest.raises(UnitError) as refused:
            memory.parse(text, which)
        assert message in str(refused.value)

    @pytest.mark.parametrize("which", ["rmem", "wmem"])
    def test_bounds_are_inclusive(self, which: str) -> None:
        least = memory.SMALLEST_BYTES[which]
        assert memory.parse(f"{least}B", which).maximum == least
        assert memory.parse(f"{memory.LARGEST_BYTES}B", which).maximum == memory.LARGEST_BYTES

    @given(WHICH, st.text(alphabet="0123456789KMGiB:=maxdeflut .-e", max_size=24))
    def test_reads_or_refuses_and_never_breaks(self, which: str, text: str) -> None:
        try:
            triple = memory.parse(text, which)
        except UnitError:
            return
        assert 0 < triple.minimum <= triple.default <= triple.maximum <= memory.LARGEST_BYTES


class TestCanonical:
    @pytest.mark.parametrize(
        ("text", "which", "canonical"),
        [
            ("default", "rmem", "default"),
            ("max=6MiB", "rmem", "default"),
            ("4KiB:128KiB:6MiB", "rmem", "default"),
            ("max=4MiB", "wmem", "default"),
            ("max=6MiB", "wmem", "max=6MiB"),
            ("6MiB", "rmem", "6MiB"),
            ("6291456B", "rmem", "6MiB"),
            ("50MiB:50MiB:50MiB", "rmem", "50MiB"),
            ("4096B:128KiB:52428800B", "rmem", "max=50MiB"),
            ("8KiB:128KiB:50MiB", "rmem", "8KiB:128KiB:50MiB"),
        ],
    )
    def test_spells(self, text: str, which: str, canonical: str) -> None:
        assert memory.canonical(text, which) == canonical

    @given(settings())
    def test_is_its_own_canonical_spelling(self, setting: tuple[str, str, memory.Triple]) -> None:
        which, text, triple = setting
        canonical = memory.canonical(text, which)
        assert memory.canonical(canonical, which) == canonical
        assert memory.parse(canonical, which) == triple

    @given(settings())
    def test_equal_settings_are_equal_text(self, setting: tuple[str, str, memory.Triple]) -> None:
        which, text, triple = setting
        written_out = ":".join(f"{size}B" for size in triple)
        kilobytes = ":".join(units.format_size(size) for size in triple)
        assert len({memory.canonical(spelling, which) for spelling in (text, written_out, kilobytes)}) == 1

    @given(settings(), settings())
    def test_different_settings_are_different_text(
        self, one: tuple[str, str, memory.Triple], other: tuple[str, str, memory.Triple]
    ) -> None:
        which, text, _ = one
        assume(which == other[0])
        same = memory.parse(text, which) == memory.parse(other[1], which)
        assert (memory.canonical(text, which) == memory.canonical(other[1], which)) == same
