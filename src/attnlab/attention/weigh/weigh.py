"""What a weighing is: scores into weights.

Shapes: B batch, H heads, T queries, S keys.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from torch import Tensor

from attnlab.spec import Part

WeighFunction = Callable[[Tensor, Tensor], Tensor]


class Weigh(Part, family="weigh"):
    """A weighing: `(scores_BHTS, visible) -> weights_BHTS`.

    `visible` is boolean and broadcasts to the scores. What is not visible weighs exactly zero and must not
    influence what is; a row that sees nothing weighs nothing, and stays finite.
    """

    is_softmax: ClassVar[bool] = False  # what PyTorch's fused attention computes
    has_exact_gradient: ClassVar[bool] = True  # whether its gradient is the derivative of what it computes
    sums_to_one: ClassVar[bool] = False  # whether the weights of a row that sees something claim to
    adds_a_key: ClassVar[bool] = False  # a softmax over one key more, of score zero and value zero

    def __call__(self, scores_BHTS: Tensor, visible: Tensor) -> Tensor:
        raise TypeError(f"the weighing {self.name!r} does not say how to weigh")
