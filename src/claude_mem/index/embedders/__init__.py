"""Embedders: text to vectors, from the shipped model, a transformer or an endpoint."""
