"""The command line. Thin: every command calls one function of the library.

Exit codes: 0 done; 1 the work ran, and something in it failed or was found; 2 the request was wrong; 130
interrupted.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence

import cyclopts
from cyclopts import App

import attnlab
from attnlab.errors import AttnlabError

app = App(
    name="attnlab",
    help="The workbench for attention experiments you can trust: audit, train, judge, report.",
    version=attnlab.__version__,
    suppress_keyboard_interrupt=False,  # what to say and to leave with is ours
)
# Named by where they live, so that asking for help loads none of them.
_COMMANDS = {
    "run": "Run a study, or what is missing of it, and write its report.",
    "audit": "Ask of anything that attends whether it is what it claims to be.",
    "studies": "List the built-in studies.",
    "report": "Write the report of a study, or one page for several; or print its table.",
    "ui": "Open a local page: studies while they run, reports, comparisons, audits, attention by hand.",
    "judge": "Judge results made elsewhere, from a CSV file.",
    "diff": "Compare two declarations.",
    "convert": "Turn a GGUF file into a directory that transformers, and everything here, can load.",
    "decode": "Let a model continue a text, by one decoding strategy or by several.",
    "craft": "Attention by hand: find the query or the key that does what you want.",
}
for _name, _help in _COMMANDS.items():
    app.command(f"attnlab.cli.{_name}:{_name}", name=_name, help=_help)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; give back its exit code. A mistake of the user's is a sentence, not a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that knows no ± still gets its table
    try:
        code = app(arguments, exit_on_error=False, print_error=False, result_action="return_value")
    except cyclopts.CycloptsError as error:
        return _complain(str(error), 2)
    except AttnlabError as error:
        return _complain(str(error), error.exit_code)
    except KeyboardInterrupt as stopped:
        return _complain(": ".join(["interrupted", *map(str, stopped.args)]), 130)
    except BrokenPipeError:  # whoever read our output has seen enough
        sys.stderr.close()
        return 0
    return code if isinstance(code, int) else 0


def _complain(message: str, code: int) -> int:
    print(f"attnlab: {message.strip()}", file=sys.stderr)
    return code
