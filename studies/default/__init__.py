"""Why our default is what it is: certified throughput of what was tried."""
