"""A worker process: reads cells from standard input, a JSON line each, and tells of them on standard output.

python -m attnlab.study.worker STUDY_DIRECTORY THREADS SAVE_SECONDS
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from attnlab.errors import AttnlabError
from attnlab.study.cellwork import Signals, Workplace
from attnlab.study.store import Cell, Store, describe


def main() -> int:
    # Events get a channel of their own: what a user's part prints must not come between them.
    events = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def tell(event: str, about: Mapping[str, Any]) -> None:
        try:
            print(json.dumps({"event": event, **about}), file=events, flush=True)
        except BrokenPipeError:  # nobody listens any more; the run itself notices that its parent is gone
            return

    directory, threads, save_seconds = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    torch.set_num_threads(threads)
    faulthandler.register(signal.SIGUSR1, all_threads=True)  # where it hangs, for whoever asks
    wish = Signals()
    store = Store(directory)
    try:
        workplace = Workplace(store, store.study(), save_seconds)
    except AttnlabError as error:
        tell("broken", {"reason": describe(error)})
        return error.exit_code
    tell("ready", {})
    for line in sys.stdin:
        cell = Cell(**json.loads(line))
        try:
            tell("ended", {"outcome": workplace.work_on(cell, tell, wish)})
        except AttnlabError as error:  # the store itself: no run is to blame, and no other would fare better
            tell("broken", {"reason": describe(error)})
            return error.exit_code
        if wish.to_stop:
            return 130
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
