"""The same price as a worker that anybody can use, from any language: a function, and two lines to serve it.

jobman task types add price-option --versions 1 -- jobman task serve worker:price
jobman task submit --type price-option --payload-file tasks.jsonl --results
"""

import math
import random


def price(option: dict) -> float:
    """The price of one option; JSON comes in as it is written in tasks.jsonl, and a number goes out."""
    draw = random.Random(option["seed"]).gauss
    rate, volatility, years = option["rate"], option["volatility"], option["years"]
    drift, spread = (rate - volatility**2 / 2) * years, volatility * math.sqrt(years)
    ends = (option["spot"] * math.exp(drift + spread * draw(0.0, 1.0)) for _ in range(option["paths"]))
    mean = sum(max(end - option["strike"], 0.0) for end in ends) / option["paths"]
    return round(math.exp(-rate * years) * mean, 4)
