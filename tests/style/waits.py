#!/usr/bin/env python3
"""How end-to-end tests wait, and what a point that fails leaves to the next one: without a lab. Prints TAP."""
import contextlib
import io
import os
import sys
import tempfile
import time

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(FOLDER, '..', '..', 'scripts'), os.path.join(FOLDER, '..', 'e2e')]
import e2e  # pylint: disable=wrong-import-position
import fettlelib  # pylint: disable=wrong-import-position

fettlelib.PATIENCE_STEP = 0.2


class FakeLab:
    """One log, which `alive` says whether its daemons write, and a memory of being mended."""

    def __init__(self, folder):
        self.path, self.alive, self.mended = os.path.join(folder, 'noded.log'), False, 0

    def logs(self):
        return [self.path]

    def mend(self):
        self.mended += 1
        return ['node2 has power again']

    def look(self):
        if self.alive:
            with open(self.path, 'a', encoding='utf-8') as file:
                file.write('.')
        return False


def waits_for(lab, busy, alive):
    """How many times as long as its limit a wait in vain lasts."""
    fettlelib.machine_is_busy = lambda: busy
    lab.alive, began, limit = alive, time.monotonic(), 0.1 * fettlelib.PATIENCE
    try:
        fettlelib.wait_until('it', lab.look, 0.1, step=0.01)
    except TimeoutError as error:
        assert str(error) == 'it: not within 0.4 s', error
    return (time.monotonic() - began) / limit


def test_waits(lab):
    # On a machine that has the time, or when nothing moves, the limit counts; else what moves is waited for, but not for ever.
    assert waits_for(lab, busy=False, alive=True) >= 1
    assert waits_for(lab, busy=True, alive=True) >= fettlelib.PATIENCE_BUSY
    lab.look = lambda: True
    assert fettlelib.wait_until('it', lab.look, 0.1) is True


def test_mends(lab):
    ran = []

    def bad():
        raise ValueError('it broke')
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        try:
            e2e.run(bad, lambda: ran.append(lab.mended))
        except SystemExit as end:
            assert end.code == 1
    assert ran == [1] and '# after that failure: node2 has power again' in said.getvalue(), said.getvalue()


print('1..2')
failed = False
for number, (name, test) in enumerate((('/style/waits-follow-what-moves', test_waits), ('/style/a-failed-point-is-mended', test_mends)), 1):
    with tempfile.TemporaryDirectory() as parent:
        fake = FakeLab(parent)
        fettlelib.Lab.living[:] = [fake]
        try:
            test(fake)
            print(f'ok {number} {name}')
        except AssertionError as error:
            failed = True
            print(f'not ok {number} {name}\n# {error}')
sys.exit(1 if failed else 0)
