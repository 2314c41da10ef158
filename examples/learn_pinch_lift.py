"""Learn to lift a part of unknown mass and friction by PPO, and judge the policy in MuJoCo too.

Run with: python examples/learn_pinch_lift.py [picture] [iterations]

Proximal policy optimization after CleanRL's `ppo_continuous_action.py`: one file, a Gaussian policy
and a value function of two hidden layers each, on `stiction/PinchLift-v0` as a vector environment.
Needs pip install 'stiction[gym,demo,torch]'.
"""

import sys
import time
from types import MethodType

import numpy as np

try:
    import gymnasium
    import matplotlib.figure
    import torch

    import stiction.gym  # registers the environment
    import stiction.record
except ImportError as error:
    raise SystemExit(f"{error}: pip install 'stiction[gym,demo,torch]'") from error

NAME = "stiction/PinchLift-v0"
ENVS, STEPS = 32, 100  # of them at once, and each before the policy is improved
EPOCHS, PARTS = 6, 8  # passes over what was seen, each in so many parts
RATE, DISCOUNT, TRACE, CLIP, VALUE = 1e-3, 0.99, 0.95, 0.2, 0.5
SCALE = np.array([0.1, 0.1, 0.01, 0.1, 0.01, 0.1, 0.01, 0.01, 0.01, 0.1, 0.1, 0.1])
"""Of the observations: lengths of the carriage's way and of the pads', speeds."""


def network(outputs, last):
    """Two hidden layers; orthogonal weights, those of the last layer times `last`."""
    made = []
    for inputs, width, gain in ((12, 64, 2**0.5), (64, 64, 2**0.5), (64, outputs, last)):
        made += [torch.nn.Linear(inputs, width), torch.nn.Tanh()]
        torch.nn.init.orthogonal_(made[-2].weight, gain)
        torch.nn.init.zeros_(made[-2].bias)
    return torch.nn.Sequential(*made[:-1])


class Agent(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.mean, self.value = network(2, 0.01), network(1, 1.0)
        self.spread = torch.nn.Parameter(torch.full((2,), -0.5))  # logarithm of it

    def policy(self, seen):
        return torch.distributions.Normal(self.mean(seen), self.spread.exp())

    def act(self, observation):
        """The policy's mean, for an environment."""
        with torch.no_grad():
            return np.clip(self.mean(scaled(observation)).numpy(), -1.0, 1.0)


def scaled(observation):
    return torch.as_tensor(np.clip(observation / SCALE, -5.0, 5.0), dtype=torch.float32)


@torch.no_grad()
def collect(envs, agent, observation, score):
    """What the policy sees, does and earns in STEPS of each environment; returns of episodes that
    ended meanwhile. `score` (ENVS,) is what the running ones have earned so far."""
    seen, actions = torch.empty(STEPS, ENVS, 12), torch.empty(STEPS, ENVS, 2)
    chances, rewards, done, gains = torch.empty(4, STEPS, ENVS)
    values, ended = torch.empty(STEPS + 1, ENVS), []
    for k in range(STEPS):
        seen[k] = scaled(observation)
        policy = agent.policy(seen[k])
        actions[k], values[k] = policy.sample(), agent.value(seen[k])[:, 0]
        chances[k] = policy.log_prob(actions[k]).sum(-1)
        observation, reward, lost, late, infos = envs.step(actions[k].clamp(-1, 1).numpy())
        score += reward
        over = lost | late
        rewards[k], done[k] = torch.as_tensor(reward), torch.as_tensor(over)
        for i in np.flatnonzero(late):  # time was up: the task itself goes on
            rewards[k, i] += DISCOUNT * agent.value(scaled(infos["final_obs"][i])).item()
        ended += list(score[over])
        score[over] = 0.0
    values[STEPS] = agent.value(scaled(observation))[:, 0]
    gain = torch.zeros(ENVS)
    for k in reversed(range(STEPS)):  # generalized advantage estimates
        goes_on = DISCOUNT * (1.0 - done[k])
        gain = rewards[k] + goes_on * values[k + 1] - values[k] + TRACE * goes_on * gain
        gains[k] = gain
    found = (seen, actions, chances, gains, gains + values[:-1])
    return [part.flatten(0, 1) for part in found], observation, ended


def improve(agent, optimizer, seen, actions, chances, gains, returns):
    """PPO's clipped steps on what was collected."""
    for _ in range(EPOCHS):
        for part in torch.randperm(len(seen)).chunk(PARTS):
            policy = agent.policy(seen[part])
            ratio = (policy.log_prob(actions[part]).sum(-1) - chances[part]).exp()
            gain = (gains[part] - gains[part].mean()) / (gains[part].std() + 1e-8)
            clipped = ratio.clamp(1.0 - CLIP, 1.0 + CLIP)
            missed = agent.value(seen[part])[:, 0] - returns[part]
            loss = VALUE * missed.square().mean() - torch.min(ratio * gain, clipped * gain).mean()
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()


def learn(iterations):
    """The agent, and the curve: (steps taken, mean return of the episodes that ended)."""
    torch.manual_seed(0)
    torch.set_num_threads(1)  # the environments have the processors
    agent = Agent()
    optimizer = torch.optim.Adam(agent.parameters(), RATE, eps=1e-5)
    how = {"vectorization_mode": "vector_entry_point", "autoreset_mode": "SameStep"}
    envs = gymnasium.make_vec(NAME, ENVS, **how)
    observation, score, curve, begun = envs.reset(seed=0)[0], np.zeros(ENVS), [], time.time()
    for k in range(iterations):
        optimizer.param_groups[0]["lr"] = RATE * (1.0 - k / iterations)
        found, observation, ended = collect(envs, agent, observation, score)
        improve(agent, optimizer, *found)
        if ended:
            curve.append(((k + 1) * STEPS * ENVS, np.mean(ended)))
            after = f"{curve[-1][0]} steps, {time.time() - begun:.0f} s"
            print(f"{after}: mean return {curve[-1][1]:.1f}", flush=True)
    return agent, np.array(curve).reshape(-1, 2)


def judge(agent, way, parts=20):
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
            observation, reward, terminated, truncated, info = env.step(agent.act(observation))
            total, ended = total + reward / parts, terminated or truncated
        there += info["success"] and not info["lost"]
        lost += info["lost"]
    return total, there, lost


def main(picture="learn_pinch_lift.png", iterations="100"):
    agent, curve = learn(int(iterations))
    for way in ("stiction", "MuJoCo", "MuJoCo, tuned"):
        earned, there, lost = judge(agent, way)
        print(f"judged in {way}: return {earned:.1f}, {there} of 20 parts lifted, {lost} lost")
    matplotlib.use("Agg")
    axes = matplotlib.figure.Figure(figsize=(7, 3.2), layout="constrained").subplots()
    axes.plot(*curve.T)
    axes.set(xlabel="steps of the environment", ylabel="mean return of an episode")
    axes.figure.savefig(picture, dpi=120)


main(*sys.argv[1:])
