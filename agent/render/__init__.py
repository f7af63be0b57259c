"""Renderers: the diagnosis object → terminal, Markdown. They decide nothing."""
