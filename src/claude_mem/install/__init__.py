"""Attach: what connects an agent to the product, and takes itself out again."""
