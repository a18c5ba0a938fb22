"""Runs ``weft`` with a stand-in of the checks, which takes a second for a case.

    python regress_command.py ARGUMENT...
"""

import functools
import sys

from regress_cases import FAKE

from weft.cli import main
from weft.regress import work

if __name__ == "__main__":
    work.CaseWork.set_up = lambda self: None
    work.CaseWork = functools.partial(work.CaseWork, command=(*FAKE, "1"))
    sys.exit(main(sys.argv[1:]))
