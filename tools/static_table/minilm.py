"""all-MiniLM-L6-v2 in plain numpy: six layers of BERT and a mean, nothing more is needed."""

import json
import struct
import unicodedata
from pathlib import Path

import numpy as np

HEADS, WIDTH, LAYERS = 12, 384, 6
UNKNOWN, BEGIN, END = 100, 101, 102


class MiniLm:
    def __init__(self, folder: Path):
        self.weights = read_safetensors(folder / "model.safetensors")
        self.vocabulary = (folder / "vocab.txt").read_text(encoding="utf8").splitlines()
        self.ids = {token: number for number, token in enumerate(self.vocabulary)}

    def tokens(self, text, longest):
        text = unicodedata.normalize("NFD", text.lower())
        words, word = [], ""
        for character in text + " ":
            if unicodedata.category(character) == "Mn":
                continue
            if character.isalnum():
                word += character
                continue
            words += [word] if word else []
            word = ""
            words += [character] if character.isprintable() and character != " " else []
        pieces = [piece for word in words for piece in word_pieces(word, self.ids) or [UNKNOWN]]
        return [BEGIN, *pieces[: longest - 2], END]

    def embed(self, texts, longest, batch_tokens=768):
        """Unit vectors of `texts`. Small batches stay in the cache, which is what makes it fast."""
        encoded = [self.tokens(text, longest) for text in texts]
        order = sorted(range(len(texts)), key=lambda number: len(encoded[number]))
        vectors = np.zeros((len(texts), WIDTH), np.float32)
        start = 0
        while start < len(order):
            end = start + 1
            while end < len(order) and (end + 1 - start) * len(encoded[order[end]]) <= batch_tokens:
                end += 1
            chosen = order[start:end]
            vectors[chosen] = self.forward([encoded[number] for number in chosen])
            start = end
        return vectors

    def forward(self, batch):
        count, length = len(batch), max(map(len, batch))
        ids = np.zeros((count, length), np.int64)
        present = np.zeros((count, length), np.float32)
        for row, tokens in enumerate(batch):
            ids[row, : len(tokens)] = tokens
            present[row, : len(tokens)] = 1
        weights = self.weights
        x = weights["embeddings.word_embeddings.weight"][ids]
        x = x + weights["embeddings.position_embeddings.weight"][:length]
        x = x + weights["embeddings.token_type_embeddings.weight"][0]
        x = self.normalise(x.reshape(-1, WIDTH), "embeddings.LayerNorm")
        absent = ((present - 1) * np.float32(1e9))[:, None, None, :]
        for layer in range(LAYERS):
            x = self.layer(x, f"encoder.layer.{layer}.", count, length, absent)
        x = x.reshape(count, length, WIDTH)
        mean = (x * present[:, :, None]).sum(1) / present.sum(1, keepdims=True)
        return mean / np.linalg.norm(mean, axis=1, keepdims=True)

    def layer(self, x, prefix, count, length, absent):
        def heads(name):
            projected = self.linear(x, f"{prefix}attention.self.{name}")
            return projected.reshape(count, length, HEADS, -1).transpose(0, 2, 1, 3)

        query, key, value = heads("query"), heads("key"), heads("value")
        attention = query @ key.transpose(0, 1, 3, 2) / np.float32(np.sqrt(WIDTH // HEADS)) + absent
        attention = np.exp(attention - attention.max(-1, keepdims=True))
        attention /= attention.sum(-1, keepdims=True)
        context = (attention @ value).transpose(0, 2, 1, 3).reshape(-1, WIDTH)
        x = x + self.linear(context, f"{prefix}attention.output.dense")
        x = self.normalise(x, f"{prefix}attention.output.LayerNorm")
        inner = gelu(self.linear(x, f"{prefix}intermediate.dense"))
        x = x + self.linear(inner, f"{prefix}output.dense")
        return self.normalise(x, f"{prefix}output.LayerNorm")

    def linear(self, x, name):
        return x @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def normalise(self, x, name):
        x = x - x.mean(-1, keepdims=True)
        x /= np.sqrt((x * x).mean(-1, keepdims=True) + 1e-12)
        return x * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]


def gelu(x):
    """By the usual tanh; the difference from the exact one is far below what is kept in the end."""
    inner = x * x
    inner *= np.float32(0.044715)
    inner += 1
    inner *= x
    inner *= np.float32(0.7978845608)
    np.tanh(inner, out=inner)
    inner += 1
    inner *= x
    inner *= np.float32(0.5)
    return inner


def word_pieces(word, ids):
    """WordPiece by greedy longest match; nothing if a part of the word is unknown."""
    pieces, start = [], 0
    while start < len(word):
        prefix = "##" if start else ""
        end = next((e for e in range(len(word), start, -1) if prefix + word[start:e] in ids), None)
        if end is None:
            return []
        pieces.append(ids[prefix + word[start:end]])
        start = end
    return pieces


def read_safetensors(path):
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    tensors = {}
    for name, entry in json.loads(data[8 : 8 + length]).items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            start, end = (8 + length + offset for offset in entry["data_offsets"])
            tensors[name] = np.frombuffer(data[start:end], "<f4").reshape(entry["shape"])
    return tensors
