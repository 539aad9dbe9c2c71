"""Where a model is trained: an accelerator that is not there is an error, and one that is gets everything."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from attnlab.attention import Mixer, Position, Score, Weigh
from attnlab.errors import DeclarationError, RequestError
from attnlab.training import Training
from attnlab.training.device import present

ROOT = Path(__file__).resolve().parents[2]
# The pretended device is there before anything of ours is.
_PROGRAM = "import tests.training.pretended; from tests.training.elsewhere import main; main()"


def test_the_processor_is_there() -> None:
    assert present(Training().device) == torch.device("cpu")


def test_an_accelerator_that_is_absent_is_named_and_nothing_takes_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(RequestError, match=r"training\.device is 'cuda'.*no such accelerator.*usable.*: cpu"):
        present("cuda")


def test_one_that_nobody_knows_is_a_mistake_in_the_declaration() -> None:
    with pytest.raises(DeclarationError, match=r"device: no choice is called 'cudo'; did you mean 'cuda'\?"):
        Training(device="cudo")  # type: ignore[arg-type]


@pytest.mark.slow
def test_every_part_works_where_its_model_is() -> None:
    """Trained, scored, scored by prefixes and sampled from, away from the processor: the same figures."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _PROGRAM],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    complaints: dict[str, str | None] = json.loads(done.stdout)
    assert {place: text for place, text in complaints.items() if text} == {}
    families = {"score": Score, "weigh": Weigh, "position": Position, "mixer": Mixer}
    missing = {f"{place} {name}" for place, family in families.items() for name in family.members} - set(
        complaints
    )
    assert missing <= {"mixer fastformer"}  # for encoders
