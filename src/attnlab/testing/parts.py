"""Conformance cases for parts: what every part must do, ours or a user's.

    from attnlab.testing import cases_for

    @pytest.mark.parametrize("case", cases_for(MyScore()), ids=str)
    def test_my_score(case):
        case.check()

A case builds the part into a small layer, with plain parts around it, and raises an `AssertionError` that
says what was wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from attnlab.attention import Dims
from attnlab.spec import Part
from attnlab.testing import parts_exact, parts_robust
from attnlab.testing.parts_subject import SIZES, Reference, Subject, fill

Check = Callable[[Subject], None]

_ALWAYS: dict[str, Check] = {
    "declaration": parts_robust.survives_its_declaration,
    "derivative": parts_exact.gradient_is_the_derivative,
    "batch": parts_exact.batch_members_are_independent,
    "padding": parts_exact.padding_changes_nothing,
    "large": parts_robust.finite_in_bf16_with_large_inputs,
    "saving": parts_robust.survives_save_and_load,
}
_WITH_REFERENCE: dict[str, Check] = {"reference": parts_exact.equals_its_reference}
_CAUSAL: dict[str, Check] = {
    "causality": parts_exact.future_changes_nothing,
    "cache": parts_exact.cached_decoding_equals_the_full_pass,
}
_WITH_MASK: dict[str, Check] = {"blind": parts_robust.finite_where_a_row_sees_nothing}
_COMPILED: dict[str, Check] = {"compile": parts_robust.works_under_compile}


@dataclass(frozen=True)
class Case:
    """One check of one part."""

    name: str
    subject: Subject
    run: Check

    def check(self) -> None:
        """Raise an `AssertionError` if the part does not do what it must."""
        self.run(self.subject)

    def __str__(self) -> str:
        return f"{self.subject.part.part_name()}-{self.name}"


def cases_for(
    part: Part, *, reference: Reference | None = None, dims: Dims = SIZES, compiled: bool = False
) -> list[Case]:
    """The cases that apply to a part. A mixer of your own is held against `reference(layer, x_TD, position)`,
    if you give one; `compiled` adds a case that takes a compiler, and seconds."""
    subject = fill(part, dims, reference)
    chosen = dict(_ALWAYS)
    if subject.has_reference:
        chosen |= _WITH_REFERENCE
    if subject.mixer.hides_future:
        chosen |= _CAUSAL
    if subject.can_be_blinded:
        chosen |= _WITH_MASK
    if compiled:
        chosen |= _COMPILED
    return [Case(name, subject, run) for name, run in chosen.items()]
