"""`python -m attnlab`: the command line."""

from attnlab.cli import main

raise SystemExit(main())
