"""GPU and host hardware state as tools print it: nvidia-smi, DCGM, lspci, topology, rocm-smi, lscpu."""
