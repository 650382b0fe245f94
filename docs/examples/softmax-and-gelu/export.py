"""Exports the token embeddings and the first norm's weights of a llama2.c model to .npy files.

    export.py MODEL EMBEDDING BIAS"""

import sys

import numpy as np

model, embedding_path, bias_path = sys.argv[1:]
dim, hidden, layers, heads, kv_heads, vocab, sequence = np.fromfile(model, "<i4", 7)
vocab = abs(vocab)  # a negative size says that the classifier has weights of its own
weights = np.fromfile(model, "<f4", offset=28)
embedding = weights[: vocab * dim].reshape(vocab, dim)
bias = weights[vocab * dim :][:dim]
np.save(embedding_path, embedding)
np.save(bias_path, bias)
print(f"{embedding_path}: {vocab} x {dim}\n{bias_path}: {dim}")
