# SPDX-License-Identifier: Apache-2.0
"""Seeds of the random tests. The same ones in every run, so that a change is judged by what it changes; ATOLL_SEED=N
repeats one, ATOLL_ROUNDS=N takes N new ones."""
import os
import random


def seeds(count):
    if "ATOLL_SEED" in os.environ:
        return [int(os.environ["ATOLL_SEED"])]
    rounds = os.environ.get("ATOLL_ROUNDS")
    if rounds:
        return [random.SystemRandom().randrange(1 << 32) for _ in range(int(rounds))]
    return list(range(1, count + 1))
