"""`stiction view`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import tyro

from stiction.cli.arguments import Contact, Dt, Equality, Keyframe, Settings

if TYPE_CHECKING:
    from stiction.view import Session

PACKAGES = ("viser", "mjviser")


def command(
    scene: Annotated[
        str,
        tyro.conf.arg(
            metavar="SCENE|TRAJECTORY",
            help="a shipped name (`stiction scenes`), an .xml, a .urdf, or `run`'s trajectory.npz",
        ),
    ],
    /,
    *,
    contact: Contact = "coulomb",
    mu: Annotated[
        float | None,
        tyro.conf.arg(
            metavar="MU", help="friction of all geoms", help_behavior_hint="(default: the model's)"
        ),
    ] = None,
    beside: Annotated[bool, tyro.conf.arg(help="MuJoCo's own contact beside it")] = True,
    play: Annotated[bool, tyro.conf.arg(help="play when the first visitor comes")] = True,
    dt: Dt = None,
    equality: Equality = "soft",
    keyframe: Keyframe = None,
    settings: Settings = (),
    host: Annotated[
        str, tyro.conf.arg(help="address to listen on; 0.0.0.0: the network can see the page")
    ] = "127.0.0.1",
    port: Annotated[int, tyro.conf.arg(help="0: any free one")] = 8080,
    pick: Annotated[bool, tyro.conf.arg(help="a list of the scenes that ship")] = True,
    upload: Annotated[
        bool, tyro.conf.arg(help="visitors may send models (.xml, or .zip with assets)")
    ] = False,
    open: Annotated[bool, tyro.conf.arg(help="open the page in the browser")] = False,
) -> int:
    """Simulate a scene live in the browser, or replay a trajectory there. Ctrl-C closes."""
    from stiction.cli import DONE
    from stiction.cli.progress import patience
    from stiction.errors import InvalidInput

    _check_packages()
    with patience("preparing"):
        if scene.endswith(".npz"):
            if mu is not None or dt is not None or keyframe is not None or settings:
                raise InvalidInput(scene, "a trajectory is shown as it was recorded: no options")
            session = _replay(scene)
        else:
            session = _live(scene, contact, mu, beside, dt, equality, keyframe, settings)
        from stiction.view.page import Page
        from stiction.view.picker import Picker

        picker = Picker(upload=upload) if (pick or upload) and not scene.endswith(".npz") else None
        page = Page(session, host=host, port=port, autoplay=play, picker=picker)
    with page:
        try:
            print(f"{session.name} at {page.url} (Ctrl-C closes)", flush=True)
            if open:
                import webbrowser

                webbrowser.open(page.url)
            page.wait()
        except KeyboardInterrupt:
            print()
    print("closed")
    return DONE


def _live(
    scene: str,
    contact: str,
    mu: float | None,
    beside: bool,
    dt: float | None,
    equality: Equality,
    keyframe: str | None,
    settings: tuple[str, ...],
) -> Session:
    from stiction.cli.scene import choose
    from stiction.view import Live
    from stiction.view.live import NOTHING

    chosen = choose(scene, settings=settings, dt=dt, keyframe=keyframe)
    return Live(
        chosen.load,
        name=chosen.name,
        contact=contact,
        friction=mu,
        beside="mujoco" if beside else NOTHING,
        equality=equality,
        watch=chosen.watch,
    )


def _replay(path: str) -> Session:
    from stiction.record import Trajectory
    from stiction.view import Replay

    return Replay(Trajectory.load(path))


def _check_packages() -> None:
    from importlib.util import find_spec

    from stiction.errors import InvalidInput

    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        raise InvalidInput("view", f"needs {' and '.join(missing)}: pip install 'stiction[view]'")
