"""Observers with a model: prompts, replies, and one module per provider."""
