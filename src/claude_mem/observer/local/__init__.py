"""The observer without a model: it selects from what the agent and its tools already wrote."""
