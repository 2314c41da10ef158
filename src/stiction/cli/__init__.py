"""The command line: `stiction COMMAND ...` and `python -m stiction COMMAND ...`.

One module per command, named as the command is, with a function `command` whose signature tyro
turns into arguments. To add one: write the module, name it in `COMMANDS`. Modules import what is
heavy inside `command`, so that `--help` needs neither MuJoCo nor Numba nor plotly.

Exit codes: 0 done; 1 it ran and failed, or was stopped; 2 the arguments are wrong.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

COMMANDS = (
    "run", "compare", "sweep", "view", "render", "diagnose", "replay", "solve", "reproduce",
    "bench", "scenes", "warmup", "completion",
)  # fmt: skip

DONE, FAILED, MISUSED = 0, 1, 2

__all__ = ["COMMANDS", "main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command line (default: the process's own); returns the exit code."""
    import tyro

    from stiction import __version__
    from stiction.errors import InvalidInput, StictionError

    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["--version"]:
        print(f"stiction {__version__}")
        return DONE
    if given and not given[0].startswith("-") and given[0] not in COMMANDS:
        return _complain(f"command {_unknown(given[0])}")
    commands = {name: import_module(f"stiction.cli.{name}").command for name in COMMANDS}
    try:
        return int(
            tyro.extras.subcommand_cli_from_dict(
                commands,
                prog="stiction",
                description="Exact rigid-body contact on MuJoCo models. A scene is a shipped name "
                "(`stiction scenes`), an .xml (MJCF) or a .urdf. "
                "`stiction --version` tells the version.",
                args=_one_by_one(given) or ["--help"],
            )
        )
    except SystemExit as ended:  # of tyro: help, or arguments that do not parse
        code = DONE if ended.code is None else ended.code
        return code if isinstance(code, int) else MISUSED
    except InvalidInput as error:
        return _complain(str(error))
    except StictionError as error:
        _complain(str(error))
        return FAILED
    except KeyboardInterrupt:
        _complain("stopped")
        return FAILED
    except BrokenPipeError:  # the reader of a pipe, such as head, had enough
        sys.stderr.close()
        return DONE
    except OSError as error:  # a full disk, a file that may not be read
        _complain(f"{error.filename or 'system'}: {error.strerror or error}")
        return FAILED


def _one_by_one(given: list[str]) -> list[str]:
    """`--set a=1 b=2` as `--set a=1 --set b=2`: both are allowed, tyro knows one of them."""
    out: list[str] = []
    after_set = False
    for word in given:
        if after_set and out[-1] != "--set" and "=" in word and not word.startswith("-"):
            out.append("--set")
        else:
            after_set = word == "--set" or (after_set and out[-1] == "--set")
        out.append(word)
    return out


def _unknown(name: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, COMMANDS, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}?" if near else f"one of {', '.join(COMMANDS)}"
    return f"{name!r} is unknown; {hint}"


def _complain(text: str) -> int:
    print(f"stiction: {text}", file=sys.stderr)
    return MISUSED


def __dir__() -> list[str]:
    return __all__
