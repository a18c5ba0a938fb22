"""Words that the project speaks itself, and their spectrograms: the sound of a demonstration.

A voice is a sum of harmonics. Resonances of the mouth, the formants, make some of them loud; their
frequencies tell vowels apart. Consonants are short noises. Both are textbook phonetics, so the
sound needs no recordings, and no licence.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

__all__ = [
    "BANDS", "FRAMES", "HOP", "RATE", "WORDS", "Voice", "log_bands", "sentence", "speak", "windows",
]

RATE = 16_000  # samples a second
HOP = 320  # samples from a frame of the spectrogram to the next one: 20 ms
FRAME = 512  # samples of a frame
FRAMES = 32  # of an input of the network: 0.64 s
BANDS = 20  # of a frame, as the ear divides frequencies (mel)
_LOWEST, _HIGHEST = 100, 7600  # Hz, of the bands
_HARMONICS = 40
_WIDTHS = 80, 100, 140  # Hz, of the three formants
_FADE = 160  # samples in which a sound begins and ends


class Sound(NamedTuple):
    """A part of a word.

    Attributes
    ----------
    seconds : float
    first, last : tuple of float
        Formants in Hz at the begin and at the end of a voiced part; empty for a noise.
    noise : tuple of float
        Lowest and highest frequency of a noise in Hz, and its loudness; empty for a voiced part. A
        part with neither is silent.
    """

    seconds: float
    first: tuple[float, ...] = ()
    last: tuple[float, ...] = ()
    noise: tuple[float, ...] = ()


_E, _O, _U, _A = (530, 1840, 2480), (500, 900, 2400), (350, 750, 2400), (730, 1090, 2440)
_T = Sound(0.05), Sound(0.03, noise=(2500, 6000, 0.5))  # closed, then a burst
WORDS = {
    "weft": (
        Sound(0.08, (300, 610, 2200), _E), Sound(0.14, _E, _E),
        Sound(0.10, noise=(1500, 7500, 0.12)), *_T,
    ),
    "yes": (
        Sound(0.09, (280, 2250, 3000), _E), Sound(0.14, _E, _E),
        Sound(0.16, noise=(4000, 7500, 0.4)),
    ),
    "no": (Sound(0.09, (250, 1100, 2200), (300, 1000, 2200)), Sound(0.26, _O, _U)),
    "go": (Sound(0.03, noise=(1200, 2500, 0.4)), Sound(0.30, (350, 1300, 2100), _U)),
    "stop": (
        Sound(0.14, noise=(4000, 7500, 0.4)), *_T, Sound(0.16, _A, _A), Sound(0.06),
        Sound(0.02, noise=(500, 1500, 0.3)),
    ),
}


class Voice(NamedTuple):
    """How a word is spoken: ``pitch`` in Hz, ``speed`` and size of the ``throat``, both around 1.

    A smaller throat has higher formants.
    """

    pitch: float = 120.0
    speed: float = 1.0
    throat: float = 1.0


def speak(word: str, voice: Voice, rng: np.random.Generator) -> np.ndarray:
    """The samples of a word of `WORDS`, float64 with a loudness of at most 1."""
    parts = [_sound(part, voice, rng) for part in WORDS[word]]
    samples = np.concatenate(parts)
    return samples / np.abs(samples).max()


def _sound(part, voice, rng):
    """The samples of a part of a word; loudness of a voiced part is 1."""
    count = round(part.seconds / voice.speed * RATE)
    if part.noise:
        low, high, loudness = part.noise
        spectrum = np.fft.rfft(rng.standard_normal(count))
        frequencies = np.fft.rfftfreq(count, 1 / RATE) * voice.throat
        samples = np.fft.irfft(spectrum * ((frequencies > low) & (frequencies < high)), count)
        samples *= loudness / max(np.abs(samples).max(), 1e-9)
    elif part.first:
        samples = _voiced(part, count, voice)
    else:
        return np.zeros(count)
    fade = min(_FADE, count // 2)
    slope = np.linspace(0, 1, fade)
    samples[:fade] *= slope
    samples[count - fade :] *= slope[::-1]
    return samples


def _voiced(part, count, voice):
    """Harmonics of a falling pitch, as loud as the formants let them be."""
    time = np.linspace(0, 1, count)
    pitch = voice.pitch * (1.05 - 0.1 * time)
    phase = 2 * np.pi * np.cumsum(pitch) / RATE
    harmonics = np.arange(1, _HARMONICS + 1)[:, None]
    frequencies = harmonics * pitch
    loudness = np.zeros_like(frequencies)
    for first, last, width in zip(part.first, part.last, _WIDTHS, strict=True):
        formant = (first + (last - first) * time) / voice.throat
        loudness += 1 / (1 + ((frequencies - formant) / width) ** 2)
    loudness *= (frequencies < RATE / 2) / harmonics**0.5
    samples = (loudness * np.sin(harmonics * phase)).sum(0)
    return samples / np.abs(samples).max()


def sentence(
    words: Sequence[str], rng: np.random.Generator, *, pause: float = 0.5, noise: float = 0.004
) -> tuple[np.ndarray, list[tuple[float, float]]]:
    """The samples of words with pauses, and where each begins and ends, in seconds.

    Each word has a voice of its own. ``noise`` is the loudness of the background.
    """
    parts, times, at = [np.zeros(round(pause * RATE))], [], pause
    for word in words:
        samples = speak(word, random_voice(rng), rng)
        seconds = len(samples) / RATE
        times.append((at, at + seconds))
        parts += [samples, np.zeros(round(pause * RATE))]
        at += seconds + pause
    samples = 0.8 * np.concatenate(parts)
    return samples + noise * rng.standard_normal(len(samples)), times


def random_voice(rng: np.random.Generator) -> Voice:
    """A voice between a low and a high one."""
    return Voice(rng.uniform(90, 220), rng.uniform(0.85, 1.2), rng.uniform(0.85, 1.12))


def log_bands(samples: np.ndarray) -> np.ndarray:
    """The spectrogram: log2 of the energy in each band of each frame, float32 [frames, BANDS]."""
    count = 1 + (len(samples) - FRAME) // HOP
    frames = np.lib.stride_tricks.sliding_window_view(samples, FRAME)[::HOP][:count]
    energy = np.abs(np.fft.rfft(frames * np.hanning(FRAME))) ** 2
    return np.float32(np.log2(energy @ _band_weights() + 2.0**-10))


def _band_weights():
    """Triangles, equally wide in mel: [frequencies, BANDS]."""
    low, high = (2595 * np.log10(1 + hertz / 700) for hertz in (_LOWEST, _HIGHEST))
    edges = 700 * (10 ** (np.linspace(low, high, BANDS + 2) / 2595) - 1)
    hertz = np.fft.rfftfreq(FRAME, 1 / RATE)[:, None]
    rising = (hertz - edges[:-2]) / (edges[1:-1] - edges[:-2])
    falling = (edges[2:] - hertz) / (edges[2:] - edges[1:-1])
    return np.clip(np.minimum(rising, falling), 0, None)


def windows(bands: np.ndarray, step: int) -> np.ndarray:
    """The inputs of the network, ``step`` frames apart: [n, 1, FRAMES, BANDS, 1]."""
    views = np.lib.stride_tricks.sliding_window_view(bands, FRAMES, axis=0)[::step]
    return views.transpose(0, 2, 1)[:, None, :, :, None]
