"""`attnlab diff`."""

from __future__ import annotations


def diff(before: str, after: str, /) -> int:
    """Compare two declarations: every place where they differ. Exit code 1 where they do.

    Parameters
    ----------
    before
        A study: a built-in's name, a file, or the directory of a study that was run.
    after
        The other one.
    """
    from pathlib import Path

    from attnlab.spec import differences
    from attnlab.study import Study, load_study, open_study

    def read(target: str) -> Study:
        return open_study(Path(target)).study() if Path(target).is_dir() else load_study(target)

    one, other = read(before), read(after)
    found = differences(one.plain(), other.plain())
    for difference in found:
        print(difference)
    print(f"{before}: {one.fingerprint}\n{after}: {other.fingerprint}")
    return 1 if found else 0
