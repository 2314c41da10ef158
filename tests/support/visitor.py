"""A visitor of the page without a browser: a connection that speaks viser's protocol."""

import time
from contextlib import contextmanager


@contextmanager
def visitor(page):
    """Says what a browser says first, and from then on what `say` is told to."""
    import msgspec
    import viser
    from websockets.sync.client import connect

    protocol = f"viser-v{viser.__version__}"
    with connect(
        page.url.replace("http://", "ws://"),
        subprotocols=[protocol],
        max_size=None,
        close_timeout=0.5,  # frames that were not taken stand in the way of a farewell
    ) as socket:

        def say(kind, **fields):
            socket.send(msgspec.msgpack.encode({"type": kind, **fields}))

        say(
            "ViewerCameraMessage", wxyz=[1.0, 0.0, 0.0, 0.0], position=[0.0, 0.0, 1.0], fov=1.0,
            near=0.1, far=10.0, image_height=100, image_width=100, look_at=[0.0, 0.0, 0.0],
            up_direction=[0.0, 0.0, 1.0],
        )  # fmt: skip
        socket.say = say
        yield socket


def until(condition, seconds=60.0):
    """Waits for the condition; fails where it does not come true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.01)
