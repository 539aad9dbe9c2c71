"""How much of a pretrained model is tuned, a file for each way."""

from attnlab.adapt.amounts.amount import Amount, Counted, Sizes
from attnlab.adapt.amounts.bias import Bias
from attnlab.adapt.amounts.full import Full
from attnlab.adapt.amounts.head import Head
from attnlab.adapt.amounts.ia3 import Ia3
from attnlab.adapt.amounts.lora import Lora
from attnlab.adapt.amounts.prefix import Prefix
from attnlab.adapt.amounts.prompt import Prompt
from attnlab.adapt.amounts.ptuning import PTuning

__all__ = ["Amount", "Bias", "Counted", "Full", "Head", "Ia3", "Lora", "PTuning", "Prefix", "Prompt", "Sizes"]
