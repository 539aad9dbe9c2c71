"""The packages that `make` installs, with their versions and licences: docs/dependencies.md.

python -m tests.licences writes the page from what is installed; a test holds it to constraints.txt.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE, PINNED = ROOT / "docs" / "dependencies.md", ROOT / "constraints.txt"

HEAD = """\
# Dependencies

The packages that `make` installs for everything, tests included, in the versions of `constraints.txt`, with
the licence that each names itself. attnlab by itself needs fewer (`pyproject.toml`). Made by `make licences`.

`pip-audit -r constraints.txt --no-deps` compares them with the published vulnerabilities; it needs PyPI's own
service or osv.dev, and says *skipped* of every package where it reaches neither.
"""
# Two ways of writing one licence, as classifiers and free text have them.
_SAME = {
    "MIT License": "MIT",
    "The MIT License": "MIT",
    "Expat License": "MIT",
    "Apache Software License": "Apache-2.0",
    "Apache License, Version 2.0": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "Apache 2.0 License": "Apache-2.0",
    "Apache-2.0 License": "Apache-2.0",
    "Apache": "Apache-2.0",
    "BSD License": "BSD",
    "BSD 3-Clause License": "BSD-3-Clause",
    "BSD-3-Clause License": "BSD-3-Clause",
    "3-Clause BSD License": "BSD-3-Clause",
    "ISC License (ISCL)": "ISC",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}


def pinned() -> dict[str, str]:
    """Package and version, as constraints.txt has them."""
    lines = [line.partition("#")[0].strip() for line in PINNED.read_text("utf-8").splitlines()]
    return dict(line.split("==", 1) for line in lines if "==" in line)


def licence(package: Distribution) -> str:
    """What a package says of itself: an expression, else its classifiers, else a line of text."""
    about = package.metadata
    if about.get("License-Expression"):
        return str(about["License-Expression"])
    kinds = [
        line.rpartition(" :: ")[2]
        for line in about.get_all("Classifier") or []
        if line.startswith("License :: ") and not line.endswith("OSI Approved")
    ]
    told = kinds or (about.get("License") or "").strip().splitlines()[:1]
    return " and ".join(_SAME.get(one.strip(), one.strip()) for one in told) or "not named"


def page() -> str:
    rows = []
    for name, version in pinned().items():
        with contextlib.suppress(PackageNotFoundError):  # pinned, and not installed by make
            rows.append((name, version, licence(distribution(name))))
    counts = Counter(of for _, _, of in rows).most_common()
    kinds = "\n".join(f"| {of} | {count} |" for of, count in counts)
    table = "\n".join(f"| {name} | {version} | {of} |" for name, version, of in rows)
    return (
        f"{HEAD}\n| licence | packages |\n| --- | ---: |\n{kinds}\n\n"
        f"| package | version | licence |\n| --- | --- | --- |\n{table}\n"
    )


def listed() -> dict[str, tuple[str, str]]:
    """Package, version and licence, as the page has them."""
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    return {name: (version, of) for name, version, of in rows if name not in ("package", "---")}


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
    print(PAGE)
