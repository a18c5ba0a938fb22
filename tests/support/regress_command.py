"""Runs ``weft`` with a stand-in of the checks, which takes a second for a case.

    python regress_command.py ARGUMENT...
"""

import functools
import sys

from regress_cases import FAKE

from weft.cli import main
from weft.regress import check

if __name__ == "__main__":
    check.CaseWork.set_up = lambda self: None
    check.CaseWork = functools.partial(check.CaseWork, command=(*FAKE, "1"))
    sys.exit(main(sys.argv[1:]))
