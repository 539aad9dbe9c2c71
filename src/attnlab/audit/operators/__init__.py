"""Level 1: checks on one operator, `attention(q, k, v, *, causal=True)`, a part or a mixer."""

from attnlab.audit.operators.against import Comparison, against
from attnlab.audit.operators.batch import batch, heads
from attnlab.audit.operators.calling import operator_from
from attnlab.audit.operators.causality import causality, large_inputs
from attnlab.audit.operators.length import length
from attnlab.audit.operators.sane import determinism, finite, purity, shape, uses_values
from attnlab.audit.operators.subject import Operator
from attnlab.audit.operators.weights import causal_flag, weights
from attnlab.audit.rule import Rule

RULES: tuple[Rule[Operator], ...] = (
    shape,
    finite,
    determinism,
    purity,
    uses_values,
    causality,
    large_inputs,
    length,
    batch,
    heads,
    weights,
    causal_flag,
)

__all__ = ["RULES", "Comparison", "Operator", "against", "operator_from"]
