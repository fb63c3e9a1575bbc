"""Attaches claude-mem to an agent, checks the installation, and detaches it."""
