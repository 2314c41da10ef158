"""Frames into files: a picture by ourselves, a clip by ffmpeg."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from stiction.errors import InvalidInput

Frames = Iterable[NDArray[np.uint8]]

_FEW_COLOURS = (
    "split[a][b];[a]palettegen=stats_mode=diff[p];[b][p]paletteuse=dither=bayer:bayer_scale=4"
)

FORMATS: dict[str, dict[str, object]] = {
    ".mp4": {
        "codec": "libx264",
        "output_params": ["-crf", "24", "-preset", "slow", "-movflags", "+faststart"],
    },
    ".webm": {
        "codec": "libvpx-vp9",
        "output_params": ["-crf", "36", "-b:v", "0", "-row-mt", "1", "-cpu-used", "4"],
    },
    ".gif": {
        "codec": "gif",
        "pix_fmt_out": "pal8",
        "output_params": ["-filter_complex", _FEW_COLOURS, "-loop", "0"],
    },
    ".webp": {
        "codec": "libwebp_anim",
        "output_params": ["-quality", "70", "-compression_level", "6", "-loop", "0"],
    },
}
"""How ffmpeg writes a clip, by the ending of its file."""

PICTURE = ".png"


def can_encode() -> bool:
    """Whether ffmpeg is there."""
    return find_spec("imageio_ffmpeg") is not None


def check_format(path: Path) -> None:
    """Raises InvalidInput for an ending that cannot be written, or not here."""
    ending = path.suffix.lower()
    if ending not in FORMATS and ending != PICTURE:
        known = ", ".join([*FORMATS, PICTURE])
        raise InvalidInput("--out", f"{path.name} ends in none of {known}")
    if ending in FORMATS and not can_encode():
        raise InvalidInput("render", "a clip needs imageio-ffmpeg: pip install 'stiction[render]'")


def write_clip(path: Path, frames: Frames, fps: float, height: int, width: int) -> Path:
    """Writes the frames in the format of the path's ending."""
    check_format(path)
    import imageio_ffmpeg

    writer = imageio_ffmpeg.write_frames(
        str(path),
        (width, height),
        fps=fps,
        quality=None,
        macro_block_size=2,
        ffmpeg_log_level="error",
        **FORMATS[path.suffix.lower()],
    )
    writer.send(None)
    try:
        for frame in frames:
            writer.send(np.ascontiguousarray(frame))
    finally:
        writer.close()
    return path


def encode_clip(frames: Sequence[NDArray[np.uint8]], fps: float) -> bytes:
    """The frames as MP4."""
    height, width, _ = frames[0].shape
    with TemporaryDirectory(prefix="stiction-") as place:
        return write_clip(Path(place) / "clip.mp4", frames, fps, height, width).read_bytes()


def png(pixels: NDArray[np.uint8]) -> bytes:
    """An (h, w, 3) image as PNG."""
    height, width, _ = pixels.shape
    lines = np.zeros((height, 3 * width + 1), np.uint8)  # the first byte of a line: no filter
    lines[:, 1:] = pixels.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = {b"IHDR": header, b"IDAT": zlib.compress(lines.tobytes(), 9), b"IEND": b""}
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, body) for kind, body in parts.items())


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
