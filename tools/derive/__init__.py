"""Values computed from several sources at once: limits against gauges, sizes against budgets, SLOs, baselines."""
