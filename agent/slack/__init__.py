"""The Slack door: durable intake, workers, messages inside Slack's limits. The core knows nothing of it."""
