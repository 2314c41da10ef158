"""Vector environments by the clock: ours on a batch, beside Gymnasium's ways with MuJoCo's steps.

    python benchmarks/vector_environments.py

Environment steps per second, the best of ROUNDS in turns (other programs on the machine only take
away).
"""

from __future__ import annotations

import warnings
from time import perf_counter

import gymnasium

import stiction.gym  # noqa: F401  (registers the ids)

COUNT, STEPS, ROUNDS = 32, 20, 7
WAYS = {
    "stiction, batch": ("stiction/{}", "vector_entry_point"),
    "stiction, sync": ("stiction/{}", "sync"),
    "MuJoCo, sync": ("{}", "sync"),
    "MuJoCo, async": ("{}", "async"),
}


def steps_per_second(envs, actions):
    begun = perf_counter()
    for action in actions:
        envs.step(action)
    return COUNT * len(actions) / (perf_counter() - begun)


def main():
    print(f"{COUNT} environments: steps per second\n")
    print(f"{'environment':<16}" + "".join(f"{way:>18}" for way in WAYS))
    for name in ("Ant-v5", "Humanoid-v5", "HalfCheetah-v5"):
        made = {
            way: gymnasium.make_vec(place.format(name), COUNT, vectorization_mode=mode)
            for way, (place, mode) in WAYS.items()
        }
        best = dict.fromkeys(made, 0.0)
        for envs in made.values():
            envs.reset(seed=0)
            envs.action_space.seed(0)
        for turn in range(ROUNDS + 1):
            for way, envs in made.items():
                actions = [envs.action_space.sample() for _ in range(STEPS)]
                reached = steps_per_second(envs, actions)
                best[way] = max(best[way], reached if turn else 0.0)
        print(f"{name:<16}" + "".join(f"{best[way]:>18.0f}" for way in WAYS), flush=True)
        for envs in made.values():
            envs.close()


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # half cheetahs start with their feet in the ground
    main()
