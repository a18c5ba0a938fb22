"""The words that the demonstration speaks, and what its network hears."""

import wave
from importlib import resources

import numpy as np
import pytest

from weft.cli import demo_words
from weft.demo.words import (
    BANDS,
    FRAMES,
    HOP,
    RATE,
    WORDS,
    Voice,
    log_bands,
    random_voice,
    sentence,
    speak,
    windows,
)

pytest.importorskip("tflite")


@pytest.fixture(scope="module")
def program():
    return demo_words.compiled()


@pytest.mark.parametrize("word", WORDS)
def test_a_word_has_its_length_and_loudness(word):
    slow, fast = (
        speak(word, Voice(speed=speed), np.random.default_rng(1)) for speed in (0.8, 1.6)
    )
    seconds = sum(part.seconds for part in WORDS[word])
    assert len(slow) == pytest.approx(seconds / 0.8 * RATE, abs=10)
    assert len(fast) == pytest.approx(len(slow) / 2, abs=10)
    for samples in (slow, fast):
        assert np.abs(samples).max() == 1


def test_vowels_have_their_formants():
    """In the middle of "go" the second formant is far below that of "yes"."""
    rng = np.random.default_rng(2)
    loudest = {}
    for word, moment in (("go", 0.2), ("yes", 0.15)):
        samples = speak(word, Voice(pitch=100), rng)[int(moment * RATE) :][:1024]
        spectrum = np.abs(np.fft.rfft(samples * np.hanning(1024)))
        hertz = np.fft.rfftfreq(1024, 1 / RATE)
        above = (hertz > 650) & (hertz < 2200)
        loudest[word] = hertz[above][np.argmax(spectrum[above])]
    assert loudest["go"] < 1000 < 1700 < loudest["yes"]


def test_a_tone_is_loudest_in_its_band():
    """Bands are equally wide in mel; the edges here follow the formula 2595 log10(1 + f / 700)."""
    low, high = 2595 * np.log10(1 + 100 / 700), 2595 * np.log10(1 + 7600 / 700)
    for band in (3, 9, 16):
        mel = low + (band + 1) * (high - low) / (BANDS + 1)
        hertz = 700 * (10 ** (mel / 2595) - 1)
        bands = log_bands(np.sin(2 * np.pi * hertz * np.arange(RATE) / RATE))
        assert bands.shape == (1 + (RATE - 512) // HOP, BANDS)
        assert {*bands.argmax(1)} == {band}


def test_words_lie_where_the_sentence_says():
    samples, times = sentence(["no", "stop"], np.random.default_rng(3), noise=0)
    assert len(times) == 2 and times[0][1] < times[1][0] < times[1][1] < len(samples) / RATE
    sounding = np.zeros(len(samples), bool)
    for first, last in times:
        sounding[round(first * RATE) : round(last * RATE)] = True
        assert np.abs(samples[round(first * RATE) : round(last * RATE)]).max() == 0.8
    assert not samples[~sounding].any()


def test_windows_overlap():
    bands = np.arange(40.0)[:, None] + np.zeros(BANDS)
    found = windows(bands, 4)
    assert found.shape == (3, 1, FRAMES, BANDS, 1)
    assert found[:, 0, :, 5, 0].tolist() == [[*range(n, n + FRAMES)] for n in (0, 4, 8)]


@pytest.mark.parametrize("heard, found", [
    ([], []), ([0, 0, 0], []), ([0, 1, 0], []), ([1, 1], [("weft", 18.0)]),
    ([0, 2, 2, 2, 3, 3, 0, 3, 1], [("yes", 24.0), ("no", 34.0)]),
])
def test_a_word_needs_two_windows(heard, found):
    assert demo_words.spotted(heard) == found


@pytest.mark.slow
def test_the_network_hears_what_is_spoken(program):
    """The sentence of the demonstration, and five others, of which it may get one wrong."""
    rng = np.random.default_rng(11)
    sounds = [(demo_words.SPOKEN, demo_words.sound())]
    for _ in range(5):
        spoken = tuple(np.array([*WORDS])[rng.integers(len(WORDS), size=5)].tolist())
        sounds.append((spoken, sentence(spoken, rng)[0]))
    with program.open("golden") as session:
        right = []
        for spoken, samples in sounds:
            heard = demo_words.hear(session, log_bands(samples))
            right.append(tuple(name for name, _ in demo_words.spotted(heard)) == spoken)
    assert right[0] and sum(right) >= 5


def test_noise_is_no_word(program):
    noise = 0.05 * np.random.default_rng(4).standard_normal(2 * RATE)
    with program.open("golden") as session:
        assert not any(demo_words.hear(session, log_bands(noise)))


def test_scores_equal_those_of_tflite_micro(program):
    runtime = pytest.importorskip("tflite_micro").runtime
    data = resources.files("weft.demo").joinpath("words.tflite").read_bytes()
    micro = runtime.Interpreter.from_bytes(data)
    inputs = micro.get_input_details(0)["quantization_parameters"]
    outputs = micro.get_output_details(0)["quantization_parameters"]
    with program.open("golden") as session:
        for x in windows(log_bands(demo_words.sound()), 16):
            scaled = np.rint(x / inputs["scales"][0]) + inputs["zero_points"][0]
            micro.set_input(np.clip(scaled, -128, 127).astype(np.int8), 0)
            micro.invoke()
            scores = np.float32(micro.get_output(0) - outputs["zero_points"][0].astype(int))
            assert np.array_equal(session(x), scores * np.float32(outputs["scales"][0]))


def test_the_picture_and_the_sound(tmp_path):
    pytest.importorskip("matplotlib")
    demo_words.draw_golden(tmp_path / "words.png")
    assert (tmp_path / "words.png").stat().st_size > 10_000
    samples = demo_words.sound()
    demo_words._write(samples, tmp_path / "words.wav")
    with wave.open(str(tmp_path / "words.wav")) as file:
        assert (file.getframerate(), file.getnchannels()) == (RATE, 1)
        values = np.frombuffer(file.readframes(-1), np.int16)
    assert np.abs(values / 32767 - samples).max() < 1e-4


def test_voices_differ():
    rng = np.random.default_rng(6)
    assert len({random_voice(rng) for _ in range(20)}) == 20
