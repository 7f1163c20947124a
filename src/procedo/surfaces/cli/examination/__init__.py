"""What `doctor` looks at, one module for each thing that a run depends on."""
