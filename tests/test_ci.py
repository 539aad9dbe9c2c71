"""`.ci/run`: a browser where one can be had, and the checks either way. What it calls are stand-ins."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

RUN = Path(__file__).resolve().parents[1] / ".ci" / "run"
CHECKS = ["make lint", "make test"]
BROWSER = ("chromium", "chromedriver")


class Machine:
    """A PATH that holds bash, and what a test puts there."""

    def __init__(self, folder: Path) -> None:
        self.bin, self.log = folder / "bin", folder / "calls"
        self.bin.mkdir()
        for name in ("bash", "env", "dirname", "touch", "chmod"):
            (self.bin / name).symlink_to(str(shutil.which(name)))
        self.put("make")
        self.be(user=0)

    def put(self, name: str, *, does: str = "true") -> None:
        self._program(name, f'echo "{name} $*" >> {self.log}; {does}')

    def be(self, *, user: int) -> None:
        self._program("id", f"echo {user}")

    def run(self) -> tuple[int, list[str], str]:
        """Exit code, what was called, what was said."""
        done = subprocess.run([RUN], env={"PATH": str(self.bin)}, capture_output=True, text=True, check=False)
        return done.returncode, self.log.read_text().splitlines(), done.stderr

    def _program(self, name: str, body: str) -> None:
        (self.bin / name).write_text(f"#!/usr/bin/env bash\n{body}\n")
        (self.bin / name).chmod(0o755)

    @property
    def installing(self) -> str:
        places = " ".join(str(self.bin / name) for name in BROWSER)
        return f'if [ "$1" = install ]; then touch {places}; chmod +x {places}; fi'


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_browser_is_installed_once_before_the_checks(machine: Machine) -> None:
    machine.put("apt-get", does=machine.installing)
    code, (update, install, *checks), said = machine.run()
    assert (code, checks, said) == (0, CHECKS, "")
    assert update.startswith("apt-get update")
    assert install.startswith("apt-get install")
    assert install.endswith(" chromium chromium-driver")


def test_one_that_is_there_is_left_alone(machine: Machine) -> None:
    for name in ("apt-get", *BROWSER):
        machine.put(name)
    assert machine.run() == (0, CHECKS, "")


def test_who_may_not_install_goes_on_and_is_told_what_will_skip(machine: Machine) -> None:
    machine.put("apt-get", does=machine.installing)
    machine.be(user=1000)
    code, calls, said = machine.run()
    assert (code, calls) == (0, CHECKS)
    assert "the tests of the page will skip" in said


def test_a_machine_without_apt_goes_on(machine: Machine) -> None:
    code, calls, said = machine.run()
    assert (code, calls) == (0, CHECKS)
    assert "the tests of the page will skip" in said


@pytest.mark.parametrize("step", ["update", "install"])
def test_where_installing_fails_the_checks_are_made_all_the_same(machine: Machine, step: str) -> None:
    machine.put("apt-get", does=f'[ "$1" != {step} ]')
    code, calls, said = machine.run()
    assert (code, calls[-2:]) == (0, CHECKS)
    assert "apt-get could not install chromium" in said


def test_a_check_that_fails_is_the_answer(machine: Machine) -> None:
    machine.put("make", does="exit 3")
    code, calls, _ = machine.run()
    assert code != 0
    assert calls == CHECKS[:1]
