"""What the benchmarks share; every other module of `benchmarks` is one of them."""
