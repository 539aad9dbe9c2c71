"""`attnlab audit`."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter


def audit(
    *targets: str,
    against: str | None = None,
    json: Annotated[bool, Parameter(negative=())] = False,
    trust_remote_code: Annotated[bool, Parameter(negative=())] = False,
) -> int:
    """Ask of anything that attends whether it is what it claims to be.

    Exit code 0: nothing was found; 1: something was; 2: a target could not be loaded or called.

    Parameters
    ----------
    targets
        `file.py:name` (a function `attention(q, k, v, *, causal=True)` on (B, H, T, d) tensors, a part, a
        mixer or an nn.Module), a built-in's name, `transformers:ClassName`, `transformers:all`, or
        `hf:directory-or-name`.
    against
        A built-in to compare with, such as `softmax`.
    json
        Print JSON instead of text.
    trust_remote_code
        Let a checkpoint bring code of its own and run it.
    """
    from attnlab.audit.render import as_json, render
    from attnlab.audit.run import exit_code, run_audit

    audits = run_audit(*targets, against=against, trust_remote_code=trust_remote_code)
    print(as_json(audits) if json else render(audits))
    return exit_code(audits)
