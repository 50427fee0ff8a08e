"""What `bench/run.py` is made of: hosts, clients, measuring, and one module for each target."""
