"""`stiction run`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import tyro

from stiction.cli.arguments import Clip, Contact, Dt, Equality, Keyframe, Out, Scene, Settings, Time


def command(
    scene: Scene,
    /,
    *,
    contact: Contact = "coulomb",
    time: Time = None,
    dt: Dt = None,
    equality: Equality = "soft",
    on_failure: Annotated[
        Literal["raise", "frictionless", "best"],
        tyro.conf.arg(
            help="where no solver answers: stop, take that step without friction, or by the best "
            "attempt"
        ),
    ] = "raise",
    keyframe: Keyframe = None,
    settings: Settings = (),
    samples: Annotated[int, tyro.conf.arg(help="in the report and the trajectory, at most")] = 1000,
    clip: Clip = True,
    out: Out = None,
) -> int:
    """Simulate a scene, write a report with plots and the trajectory.

    Ctrl-C stops the run and keeps what was done.
    """
    from stiction.cli import DONE, FAILED
    from stiction.cli.folder import check_folder, earlier_run
    from stiction.cli.progress import patience, progress_bar
    from stiction.cli.scene import choose
    from stiction.record import contact_name, parse_contact, record

    law = parse_contact(contact)
    chosen = choose(scene, settings=settings, dt=dt, seconds=time, keyframe=keyframe)
    model, data, controller = chosen.load()
    name = f"{chosen.name}-{contact_name(law).replace(':', '-')}"
    folder = check_folder(out or Path("stiction-runs", name))
    from stiction.simulate import Simulator

    with patience("preparing"):
        simulator = Simulator(model, law, equality=equality, on_failure=on_failure, failures=folder)
    earlier = earlier_run(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with progress_bar() as tell:
        recording = record(
            simulator,
            data,
            chosen.seconds,
            controller=controller,
            watch=chosen.watch,
            samples=samples,
            name=chosen.name,
            xml=chosen.xml,
            path=chosen.path,
            on_progress=lambda progress: tell(contact, progress),
        )
    from stiction.record.page import save_series, summary, write_report

    with patience("writing the report", compiles=False):
        report = write_report(recording, folder / "report.html", clip=clip)
        trajectory = recording.trajectory.save(folder / "trajectory.npz")
        series = save_series(recording, folder / "series.npz")
    print(f"{chosen.name}, {contact_name(law)}")
    figures = summary(recording)
    wide = 2 + max(map(len, figures))
    for name, value in figures.items():
        print(f"  {name:<{wide}}{value}")
    print(
        f"  {'steps solved by':<{wide}}" + ", ".join(f"{k} {n}" for k, n in recording.rungs.items())
    )
    for path in (report, trajectory, series):
        print(f"  wrote {path}")
    if earlier:
        print(f"  in the place of {earlier}")
    if recording.failure:
        print(f"stopped at {recording.time[-1]:.4g} s: {recording.failure}")
    if recording.interrupted:
        print(f"stopped by Ctrl-C at {recording.time[-1]:.4g} s; what was done is kept")
    return FAILED if recording.failure or recording.interrupted else DONE
