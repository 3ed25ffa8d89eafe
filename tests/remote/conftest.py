"""Hosts for the tests of the remote engine: namespaces of this machine with an sshd each."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.namespace_hosts import Lab

LabHosts = Callable[..., Lab]


@pytest.fixture(scope="session")
def lab_hosts(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabHosts]:
    """Return a maker of labs: `lab_hosts(2)` sender and receiver, `lab_hosts(3)` an emulator between them.

    See `tests.namespace_hosts.Lab`. All labs are closed at the end of the session.
    """
    request.getfixturevalue("as_root")
    labs: list[Lab] = []

    def make(count: int, **how: object) -> Lab:
        labs.append(Lab(tmp_path_factory.mktemp("lab"), count, **how))  # type: ignore[arg-type]
        return labs[-1]

    yield make
    for lab in labs:
        lab.close()
