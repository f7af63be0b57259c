"""Cases, labels, scorers, arms and reports. Imports agent and tools; nothing imports this package but the CLI."""
