"""The price of an option by Monte Carlo: a hundred short tasks, done by workers on the cores of this machine.

Run it with `python price_option.py`; nothing has to be started before, and nothing is left running for long.
`worker.py` has the same function as a worker of its own.
"""

import math
import random

from jobman.tasks import Grid

SPOT, STRIKE, RATE, VOLATILITY, YEARS = 100.0, 105.0, 0.05, 0.2, 1.0
TASKS, PATHS = 100, 2_000

grid = Grid()


@grid.task(estimate=0.005)
def payoff(seed: int) -> float:
    """The mean payoff of some paths; the same seed gives the same paths."""
    draw = random.Random(seed).gauss
    drift = (RATE - VOLATILITY**2 / 2) * YEARS
    spread = VOLATILITY * math.sqrt(YEARS)
    ends = (SPOT * math.exp(drift + spread * draw(0.0, 1.0)) for _ in range(PATHS))
    return sum(max(end - STRIKE, 0.0) for end in ends) / PATHS


if __name__ == "__main__":
    with grid:
        mean = sum(payoff.map(range(TASKS))) / TASKS
    print(f"{math.exp(-RATE * YEARS) * mean:.2f} from {TASKS * PATHS:,} paths")
