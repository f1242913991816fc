# SPDX-License-Identifier: Apache-2.0
"""Seeds of the random tests. The same ones in every run, so that a change is judged by what it changes; ATOLL_SEED=N
repeats one (it is in the name of the test), ATOLL_ROUNDS=N takes N new ones."""
import os
import random


def fresh():
    return random.SystemRandom().randrange(1 << 32)


def seeds(count, *found):
    """So many, and those that found a bug once."""
    if "ATOLL_SEED" in os.environ:
        return [int(os.environ["ATOLL_SEED"])]
    rounds = os.environ.get("ATOLL_ROUNDS")
    if rounds:
        return [fresh() for _ in range(int(rounds))]
    return [*range(1, count + 1), *found]


def fault_seed():
    """The order in which faults are drawn; ATOLL_FAULT_SEED=N is another, ATOLL_FAULT_SEED=random a new one."""
    wanted = os.environ.get("ATOLL_FAULT_SEED", "1")
    return str(fresh()) if wanted == "random" else wanted
