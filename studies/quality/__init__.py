"""How good the tests are: mutants, branches, faults, odd input."""
