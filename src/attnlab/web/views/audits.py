"""Audits on the page."""

from __future__ import annotations

from functools import cache

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse

from attnlab.errors import RequestError
from attnlab.web.auditing import audit_named, audit_pasted
from attnlab.web.respond import field, form_of, page, settings_of

CODE = """import torch


def attention(q, k, v, *, causal=True):
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    weights = scores.softmax(-1)
    if causal:
        weights = weights.tril()
    return weights @ v
"""


def form(request: Request) -> HTMLResponse:
    return page(request, "audit.html", audits=(), names=_names(), code=CODE)


async def audit(request: Request) -> HTMLResponse:
    """Audit what was chosen, or pasted."""
    sent = await form_of(request)
    against = field(sent, "against").strip()
    settings = settings_of(request)
    if field(sent, "how") == "pasted":
        code, name = field(sent, "code"), field(sent, "name")
        found = await run_in_threadpool(audit_pasted, code, name, against, settings)
    else:
        target = field(sent, "target").strip()
        if not target:
            raise RequestError("nothing to audit: name a target")
        found = await run_in_threadpool(audit_named, target, against, settings)
    template = "audited.html" if "hx-request" in request.headers else "audit.html"
    names = await run_in_threadpool(_names)
    return page(request, template, audits=found, names=names, code=field(sent, "code") or CODE)


@cache
def _names() -> list[str]:
    """Every built-in that can be audited by its name."""
    from attnlab.audit.builtin import names

    return names()
