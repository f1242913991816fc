# SPDX-License-Identifier: Apache-2.0
"""Runs one module of CPython's regression suite and says of each test how it ended: lines that begin with @@."""
import json
import os
import sys
import unittest

OUT = os.dup(1)


def say(test, outcome):
    # The test may have left half a line.
    os.write(OUT, b"\n@@" + json.dumps([test.id(), outcome]).encode() + b"\n")


class Result(unittest.TestResult):
    def startTest(self, test):
        super().startTest(test)
        self.outcome = "ok"

    def stopTest(self, test):
        super().stopTest(test)
        say(test, self.outcome)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.outcome = "failed"
        os.write(2, self._exc_info_to_string(err, test).encode())
        # What setUpClass() and setUpModule() meet has no stopTest().
        if not hasattr(test, "_testMethodName"):
            say(test, "failed")

    addError = addFailure

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.outcome = "failed"

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.outcome = "skipped"


def main():
    from test import support
    # The sockets of this one are all local.
    support.use_resources = {"network": None} if sys.argv[1] == "test_socketserver" else {}
    suite = unittest.defaultTestLoader.loadTestsFromName(f"test.{sys.argv[1]}")
    suite.run(Result())
    os.write(OUT, b"@@end\n")
    os._exit(0)


# multiprocessing's spawn and forkserver run this file again, under another name.
if __name__ == "__main__":
    main()
