"""Fits one vector per token so that the sum over a text stands where MiniLM puts the text.

Two things are asked of the sums: to point where the teacher's vector points, and to rank the
sentences of a batch for each name as the teacher and the pairing itself rank them.
"""

import numpy as np
from scipy.sparse import csr_matrix

DIMENSIONS = 256
BATCH = 512
TEMPERATURE = 0.05
TEACHER_TEMPERATURE = 0.05


def principal_axes(vectors):
    """An orthogonal map to the dimensions along which the teacher's vectors differ most."""
    _, axes = np.linalg.eigh((vectors.T @ vectors).astype(np.float64))
    return axes[:, ::-1][:, :DIMENSIONS].astype(np.float32)


def initial_table(token_vectors, axes):
    """The teacher's view of each token alone; common tokens say less, so they start shorter.

    The vocabulary is ordered by frequency, which by Zipf's law gives the frequency itself.
    """
    centred = token_vectors - token_vectors.mean(0)
    frequency = 0.1 / (1.0 + np.arange(len(token_vectors)))
    weight = 1e-3 / (1e-3 + frequency)
    return (centred @ axes * weight[:, None]).astype(np.float32)


class Bags:
    """Texts as bags of token rows. A batch of them is a sparse matrix that counts rows."""

    def __init__(self, texts):
        self.rows = [np.asarray(rows, np.int32) for rows in texts]

    def batch(self, numbers):
        rows = [self.rows[number] for number in numbers]
        ends = np.cumsum([0] + [len(row) for row in rows])
        rows = np.concatenate(rows)
        return rows, ends


def unit(vectors):
    lengths = np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-6)
    return vectors / lengths, lengths


def softmax(logits):
    logits = np.exp(logits - logits.max(1, keepdims=True))
    return logits / logits.sum(1, keepdims=True)


class Adam:
    """Updates only the rows that a batch touches."""

    def __init__(self, table, rate):
        self.table, self.rate = table, rate
        self.mean, self.square = np.zeros_like(table), np.zeros_like(table)
        self.steps = np.zeros(len(table), np.int64)

    def step(self, rows, gradient, scale):
        self.steps[rows] += 1
        steps = self.steps[rows][:, None]
        mean = self.mean[rows] = 0.9 * self.mean[rows] + 0.1 * gradient
        square = self.square[rows] = 0.999 * self.square[rows] + 0.001 * gradient**2
        mean = mean / (1 - 0.9**steps)
        square = square / (1 - 0.999**steps)
        self.table[rows] -= self.rate * scale * mean / (np.sqrt(square) + 1e-8)


def fit(table, names, sentences, targets, epochs, rate, pairing, generator):
    """Turns `table` towards what `names` and `sentences`, two [`Bags`], ask of it.

    `targets` are the teacher's unit vectors of both, in as many dimensions; without them only the
    pairing counts. `pairing` is its share in what is to be ranked first.
    """
    usable = [n for n, rows in enumerate(names.rows) if len(rows) and len(sentences.rows[n])]
    usable = np.array(usable)
    adam = Adam(table, rate)
    batches = len(usable) // BATCH
    same = np.eye(BATCH, dtype=np.float32)
    for step in range(epochs * batches):
        if step % batches == 0:
            generator.shuffle(usable)
        numbers = usable[step % batches * BATCH :][:BATCH]
        sides = [names.batch(numbers), sentences.batch(numbers)]
        touched, inverse = np.unique(np.concatenate([rows for rows, _ in sides]), return_inverse=True)
        split = len(sides[0][0])
        counts = [
            csr_matrix((np.ones(len(rows), np.float32), rows, ends), (BATCH, len(touched)))
            for rows, (_, ends) in zip((inverse[:split], inverse[split:]), sides)
        ]
        vectors, lengths = zip(*(unit(count @ table[touched]) for count in counts))
        logits = vectors[0] @ vectors[1].T / TEMPERATURE
        wanted = [same, same]
        if targets:
            aims = [target[numbers] for target in targets]
            taught = aims[0] @ aims[1].T / TEACHER_TEMPERATURE
            wanted = [pairing * same + (1 - pairing) * softmax(t) for t in (taught, taught.T)]
        error = (softmax(logits) - wanted[0]) + (softmax(logits.T) - wanted[1]).T
        error /= 2 * BATCH * TEMPERATURE
        pulls = [error @ vectors[1], error.T @ vectors[0]]
        if targets:
            pulls = [pull - aim / BATCH for pull, aim in zip(pulls, aims)]
        gradient = 0
        for count, vector, length, pull in zip(counts, vectors, lengths, pulls):
            # Only the part across a vector turns it; its length does not matter.
            across = (pull - (pull * vector).sum(1, keepdims=True) * vector) / length
            gradient = gradient + count.T @ across
        adam.step(touched, gradient, 1 - step / (epochs * batches))
    return table
