"""`python -m procedo` is the command line."""

import sys

from procedo.surfaces.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
