"""The page as an application: where each address leads."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import Route

from attnlab.errors import AttnlabError
from attnlab.web.guard import Guard
from attnlab.web.respond import on_error
from attnlab.web.running import Runner
from attnlab.web.settings import Settings
from attnlab.web.shelf import Shelf
from attnlab.web.views import assets, audits, comparison, declarations, hand, reports, studies, writing


def make_app(settings: Settings) -> Starlette:
    """The page over a directory of studies."""
    app = Starlette(
        routes=[
            Route("/", studies.all_of_them),
            Route("/list", studies.listed),
            Route("/studies/{name}", studies.one),
            Route("/studies/{name}/live", studies.live),
            Route("/studies/{name}/runs", studies.runs),
            Route("/studies/{name}/curves", studies.curves_of),
            Route("/studies/{name}/stop", studies.stop, methods=["POST"]),
            Route("/studies/{name}/continue", studies.go_on, methods=["POST"]),
            Route("/studies/{name}/report", reports.report),
            Route("/report", reports.joined),
            Route("/new", declarations.new),
            Route("/check", declarations.checked, methods=["POST"]),
            Route("/start", declarations.start, methods=["POST"]),
            Route("/compare", comparison.compare),
            Route("/compare/curves", comparison.curves_of),
            Route("/audit", audits.form),
            Route("/audit", audits.audit, methods=["POST"]),
            Route("/decode", writing.form),
            Route("/decode", writing.write, methods=["POST"]),
            Route("/craft", hand.craft),
            Route("/static/{name:path}", assets.static),
        ],
        middleware=[Middleware(Guard, settings=settings)],
        exception_handlers={AttnlabError: on_error, HTTPException: on_error, Exception: on_error},
    )
    app.state.settings = settings
    app.state.shelf = Shelf(settings.root)
    app.state.runner = Runner(settings.root)
    return app
