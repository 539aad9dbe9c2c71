"""From what a user names to what is audited."""

from __future__ import annotations

import contextlib
import inspect
from typing import Any

from torch import nn

from attnlab.audit import builtin, models, operators
from attnlab.audit.census import Census, take_census
from attnlab.errors import TargetError
from attnlab.record import Audit, Check
from attnlab.spec import Part
from attnlab.userfile import load_from_file, splits_into_file_and_name


def audits_of(target: Any, *, against: Any, trust_remote_code: bool) -> list[Audit]:
    """The audits of one target; one, but for all classes of a library."""
    if not isinstance(target, str):
        return [audit_object(target, _name_of(target), against)]
    if splits_into_file_and_name(target):
        return [audit_object(load_from_file(target), target, against)]
    kind, _, rest = target.partition(":")
    if kind == "transformers":
        return _audits_of_transformers(rest)
    if kind == "hf":
        from attnlab.audit import hub

        model = hub.checkpoint(rest, trust_remote_code=trust_remote_code)
        return [Audit(target, models.checks_of(model))]
    return [audit_object(builtin.part_named(target), target, against)]


def audit_object(thing: Any, name: str, against: Any = None) -> Audit:
    """The audit of a Python object, by what it is."""
    if isinstance(thing, type):
        thing = _made(thing, name)
    if isinstance(thing, Part):
        return _audit_operator(builtin.operator_of(thing, name), against)
    if not callable(thing):
        raise TargetError(f"{name} is a {type(thing).__name__}: a function, a part or a module is audited")
    if isinstance(thing, nn.Module) and models.looks_like_a_model(thing):
        try:
            return Audit(name, models.checks_of(models.model_from(thing, name)))
        except TargetError as reason:
            # An embedding may hold relative positions rather than words: then vectors go in, not tokens.
            with contextlib.suppress(TargetError):
                return _audit_operator(operators.operator_from(thing, name), against)
            raise reason
    if models.is_a_loss(thing):
        loss = models.loss_from(thing, name)
        return Audit(name, tuple(rule(loss) for rule in models.LOSS_RULES))
    return _audit_operator(operators.operator_from(thing, name), against)


def _audit_operator(operator: operators.Operator, against: Any) -> Audit:
    checks = tuple(rule(operator) for rule in operators.RULES)
    if against is None:
        return Audit(operator.name, checks)
    comparison = operators.Comparison(operator, _reference(against))
    return Audit(operator.name, (*checks, operators.against(comparison)))


def _reference(against: Any) -> operators.Operator:
    if isinstance(against, str) and splits_into_file_and_name(against):
        against = load_from_file(against)
    if isinstance(against, str | Part):
        name = against if isinstance(against, str) else against.name
        part = builtin.part_named(against) if isinstance(against, str) else against
        return builtin.operator_of(part, name)
    return operators.operator_from(against, _name_of(against))


def _audits_of_transformers(class_name: str) -> list[Audit]:
    from attnlab.audit import hub

    if class_name == "all":
        return audits_of_census(take_census(hub.causal_classes()))
    return [Audit(f"transformers:{class_name}", models.checks_of(hub.tiny_model(class_name)))]


def audits_of_census(census: Census) -> list[Audit]:
    """A census as audits: a leak fails; what was not built, or is bidirectional by design, is skipped."""
    words = {"pass": "pass", "leak": "fail"}
    audits = [
        Audit(
            f"transformers:{row['class']}",
            (Check("causality", words.get(row["outcome"], "skip"), _evidence(row), row),),  # type: ignore[arg-type]
        )
        for row in census.rows
    ]
    late = Check("causality", "skip", "not reached before the interruption")
    return audits + [Audit(f"transformers:{name}", (late,)) for name in census.missing]


def _evidence(row: dict[str, Any]) -> str:
    word = "" if row["outcome"] in ("pass", "leak") else f"{row['outcome']}: "
    return f"{word}{row['evidence']}"


def _made(cls: type, name: str) -> Any:
    """An instance of a class that needs nothing to be made."""
    try:
        parameters = inspect.signature(cls).parameters.values()
    except (TypeError, ValueError):
        parameters = {}.values()
    free = [
        p.name for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    if free:
        raise TargetError(
            f"{name} is a class that needs {', '.join(free)} to be made: give an instance, or the name of one"
        )
    try:
        return cls()
    except Exception as error:  # foreign code
        raise TargetError(f"{name} could not be made: {type(error).__name__}: {error}") from None


def _name_of(thing: Any) -> str:
    if isinstance(thing, Part):
        return thing.name
    return str(getattr(thing, "__qualname__", None) or type(thing).__qualname__)
