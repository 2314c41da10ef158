"""Learn to lift a part of unknown mass and friction, and judge the policy in MuJoCo too.

Run with: python examples/learn_pinch_lift.py [picture] [generations]

The cross-entropy method finds a linear policy for `stiction/PinchLift-v0`: each generation draws
policies around the last one's best, and tries each on a few parts; all of them step at once, as a
vector environment. Needs pip install 'stiction[gym,demo]'.
"""

import sys
from types import MethodType

import numpy as np

try:
    import gymnasium
    import matplotlib.figure

    import stiction.gym  # registers the environment
    import stiction.record
except ImportError as error:
    raise SystemExit(f"{error}: pip install 'stiction[gym,demo]'") from error

NAME = "stiction/PinchLift-v0"
POLICIES, ELITE, PARTS = 24, 6, 3
STEPS = 200
SCALE = np.array([0.1, 0.1, 0.01, 0.1, 0.01, 0.1, 0.01, 0.01, 0.01, 0.1, 0.1, 0.1])
"""Of the observations: lengths of the carriage's way and of the pads', speeds."""


def act(weights, observation):
    """(..., 2) actions of linear policies (..., 2, 13)."""
    ones = np.ones((*observation.shape[:-1], 1))
    seen = np.concatenate([np.clip(observation / SCALE, -5.0, 5.0), ones], axis=-1)
    return np.clip(np.einsum("...ij,...j->...i", weights, seen), -1.0, 1.0).astype(np.float32)


def returns(envs, weights, first_part):
    """(n,) what each of n policies earns, mean over the parts."""
    each = np.repeat(weights, PARTS, axis=0)
    seeds = [first_part + k % PARTS for k in range(len(each))]
    observation, _ = envs.reset(seed=seeds)
    total, running = np.zeros(len(each)), np.ones(len(each), bool)
    for _ in range(STEPS):
        observation, reward, terminated, _, _ = envs.step(act(each, observation))
        total += reward * running
        running &= ~terminated
    return total.reshape(-1, PARTS).mean(axis=1)


def learn(generations):
    """The policy, and the mean and best return of each generation."""
    random = np.random.default_rng(0)
    mean, spread = np.zeros((2, 13)), np.full((2, 13), 0.7)
    envs = gymnasium.make_vec(NAME, POLICIES * PARTS, vectorization_mode="vector_entry_point")
    curve = []
    for k in range(generations):
        drawn = mean + spread * random.standard_normal((POLICIES, 2, 13))
        earned = returns(envs, drawn, first_part=PARTS * k)
        best = drawn[np.argsort(earned)[-ELITE:]]
        mean, spread = best.mean(axis=0), best.std(axis=0) + 0.5 / (2.0 + k)
        curve.append((earned.mean(), earned.max()))
        print(f"generation {k:3}: mean return {curve[-1][0]:7.2f}, best {curve[-1][1]:7.2f}")
    return mean, np.array(curve)


def judge(policy, way, parts=20):
    """(mean return, parts at the goal in the end, parts lost), on parts not seen before."""
    env = gymnasium.make(NAME)
    if way != "stiction":  # the steps that the environment would have without it
        theirs = gymnasium.envs.mujoco.MujocoEnv._step_mujoco_simulation
        env.unwrapped._step_mujoco_simulation = MethodType(theirs, env.unwrapped)
    if way == "MuJoCo, tuned":  # elliptic cones, impratio 100, stiff, 20 iterations of noslip
        env.unwrapped.model = stiction.record.tuned(env.unwrapped.model, 20)
    total, there, lost = 0.0, 0, 0
    for part in range(parts):
        observation, _ = env.reset(seed=10_000 + part)
        ended = False
        while not ended:
            observation, reward, terminated, truncated, info = env.step(act(policy, observation))
            total, ended = total + reward / parts, terminated or truncated
        there, lost = there + info["success"], lost + info["lost"]
    return total, there, lost


def main(picture="learn_pinch_lift.png", generations="30"):
    policy, curve = learn(int(generations))
    for way in ("stiction", "MuJoCo", "MuJoCo, tuned"):
        earned, there, lost = judge(policy, way)
        print(f"judged in {way}: return {earned:.1f}, {there} of 20 parts lifted, {lost} lost")
    matplotlib.use("Agg")
    axes = matplotlib.figure.Figure(figsize=(7, 3.2), layout="constrained").subplots()
    axes.plot(curve, label=["mean of a generation", "best of it"])
    axes.set(xlabel="generation", ylabel="return of an episode")
    axes.legend()
    axes.figure.savefig(picture, dpi=120)


main(*sys.argv[1:])
