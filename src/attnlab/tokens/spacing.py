"""Words and marks back into readable text: which of them stand without a space between them."""

from __future__ import annotations

import re
from collections.abc import Iterable

# Marks that lean on the word before them, and the ends of English contractions ("it 's", "do n't").
_LEANS_BACK = re.compile(r"[,.;:!?%)\]}”…]+|['’](?:s|re|ve|ll|d|m|t)|n['’]t|[—/]", re.IGNORECASE)
_LEANS_ON = re.compile(r"[(\[{“$£€#—/]|US\$")


def join(tokens: Iterable[str]) -> str:
    """The tokens as a person would write them; a straight quotation mark opens and closes in turn."""
    text, glue, quoted = "", True, False
    for token in tokens:
        if token == '"':
            text += '"' if quoted or glue else ' "'
            glue, quoted = not quoted, not quoted
            continue
        text += token if glue or _LEANS_BACK.fullmatch(token) else f" {token}"
        glue = _LEANS_ON.fullmatch(token) is not None
    return text
