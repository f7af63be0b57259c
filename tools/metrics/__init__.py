"""Prometheus exposition pages and Prometheus answers → windowed facts."""
