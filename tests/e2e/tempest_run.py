#!/usr/bin/python3
"""Runs modules of tempest by Debian's Python, and prints each outcome as a line of JSON: id, how it ended, what it said. TEMPEST_CONFIG_DIR
says where the settings are. Run as: tempest_run.py MODULE…"""
import json
import logging
import sys
import unittest


class Outcomes(unittest.TestResult):
    def tell(self, test, outcome, text=''):
        # Of a class that cannot begin: "setUpClass (tempest.api.x.Class)".
        name = test.id()
        name = name.split('(')[1].rstrip(')') if '(' in name else name.split('[')[0]
        print(json.dumps({'id': name, 'outcome': outcome, 'text': text[-3000:]}), flush=True)

    def addSuccess(self, test, details=None):
        self.tell(test, 'passed')

    def addSkip(self, test, reason=None, details=None):
        self.tell(test, 'skipped', str(reason or details))

    def addError(self, test, err=None, details=None):
        self.tell(test, 'failed', self.text_of(test, err, details))

    addFailure = addError

    def addExpectedFailure(self, test, err=None, details=None):
        self.tell(test, 'passed')

    def addUnexpectedSuccess(self, test, details=None):
        self.tell(test, 'failed', 'it was expected to fail')

    def text_of(self, test, err, details):
        if err:
            return self._exc_info_to_string(err, test)
        return '\n'.join(content.as_text() for name, content in sorted((details or {}).items()) if name.startswith('traceback'))


logging.disable(logging.CRITICAL)
unittest.TestLoader().loadTestsFromNames(sys.argv[1:]).run(Outcomes())
