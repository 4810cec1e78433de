# SPDX-License-Identifier: BSD-3-Clause
"""A streaming speech front end, which scales chunks of features and adds positions with a carried offset.

The usual code makes the encoding of the whole stream so far for every chunk, and keeps its tail, which takes longer
and longer. With an offset, early and late chunks cost the same, and no table limits the length.

    python examples/streaming_speech.py
"""

from __future__ import annotations

import time

import numpy as np

import fastpe

FEATURES = 560  # seven stacked frames of 80 filter banks
FRAMES_PER_CHUNK = 10  # 600 ms of 60 ms frames
# Sines, then cosines, positions from 1, as in CTranslate2 and several speech systems.
CONVENTION = "opennmt_tf"


class FrontEnd:
    """Turns chunks of one stream into encoder input."""

    def __init__(self) -> None:
        self.encoding = fastpe.PositionalEncoding(FEATURES, convention=CONVENTION)
        self.frames_heard = 0

    def process(self, features: np.ndarray) -> np.ndarray:
        """Scale and encode one chunk [1, frames, FEATURES], in place."""
        self.encoding.add_(features, offset=self.frames_heard, scale=FEATURES**0.5)
        self.frames_heard += features.shape[-2]
        return features


def rebuilt(features: np.ndarray, frames_heard: int) -> np.ndarray:
    """Encode the same chunk by the usual code, in float64: the whole stream so far, then its tail."""
    position = np.arange(1, frames_heard + features.shape[-2] + 1)[:, None]
    frequency = 10000.0 ** (-np.arange(FEATURES // 2) / (FEATURES // 2 - 1))
    table = np.concatenate([np.sin(position * frequency), np.cos(position * frequency)], axis=1)
    return features * np.sqrt(FEATURES) + table[frames_heard:]


def main() -> None:
    """Encode some chunks at the start and later in a stream, and compare each with the usual code."""
    rng = np.random.default_rng(0)
    front_end = FrontEnd()
    print("minutes in stream    fastpe    rebuilt each chunk    largest difference")
    for minute in (0, 1, 10):
        front_end.frames_heard = minute * 1000
        seconds, usual_seconds, difference = [], [], 0.0
        for _ in range(3):
            features = rng.standard_normal((1, FRAMES_PER_CHUNK, FEATURES), dtype=np.float32)
            start = time.perf_counter()
            expected = rebuilt(features, front_end.frames_heard)
            usual_seconds.append(time.perf_counter() - start)
            start = time.perf_counter()
            result = front_end.process(features)
            seconds.append(time.perf_counter() - start)
            difference = max(difference, float(np.abs(result - expected).max()))
        # Values reach about 100, where the spacing of float32 is 7.6e-6.
        assert difference < 2e-5
        fast, slow = np.median(seconds) * 1e6, np.median(usual_seconds) * 1e6
        print(f"{minute:17}    {fast:3.0f} µs    {slow:15,.0f} µs    {difference:18.1e}")


if __name__ == "__main__":
    main()
