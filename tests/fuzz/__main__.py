"""`make fuzz`: every subject with a hundred thousand inputs, or so many as are asked for.

python -m tests.fuzz [--inputs N] [SUBJECT…]
"""

from __future__ import annotations

import argparse
import time

from .subjects import SUBJECTS
from .test_fuzz import fuzz


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("subjects", nargs="*", help="parts of the names of subjects; all unless given")
    options = parser.parse_args()
    for subject in SUBJECTS:
        if options.subjects and not any(word in subject.name for word in options.subjects):
            continue
        began = time.monotonic()
        seen = fuzz(subject, options.inputs)
        print(
            f"{subject.name}: {sum(seen.values()):,} inputs, {seen['accepted']:,} accepted, "
            f"{seen['refused']:,} refused, nothing else ({time.monotonic() - began:.0f} s)",
            flush=True,
        )


if __name__ == "__main__":
    main()
