"""Profiles: nsys reports and exports, torch.profiler traces, CPU samplers. Why the GPU waits."""
