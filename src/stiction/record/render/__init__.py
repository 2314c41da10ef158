"""Pictures and clips of runs, without a screen.

    film = shoot([recording.trajectory])        # or two, to stand beside each other
    film.save("clip.mp4")                       # .gif, .webp, .webm; .png: one picture
    film                                        # in a notebook: the clip itself

Drawn by MuJoCo in a process of its own (EGL, OSMesa or a screen), contacts coloured by mode, with
arrows of force. Clips are written by ffmpeg: the extra `render`.
"""

from stiction.record.render.film import Camera, Film, Look, shoot
from stiction.record.render.offscreen import NoGraphics

__all__ = ["Camera", "Film", "Look", "NoGraphics", "shoot"]


def __dir__() -> list[str]:
    return __all__
