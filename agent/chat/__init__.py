"""The dialogue: one session per incident, with or without a model, resumable after a crash."""
