#!/usr/bin/env python3
"""What scripts/run-tests says of programs that fail: each reason stands at the end, where it is looked for. Prints TAP."""
import importlib.machinery
import importlib.util
import os
import subprocess
import sys
import tempfile
import threading

RUN_TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'scripts', 'run-tests')
PROGRAMS = {
    'points': 'echo 1..3; echo "ok 1 a"; echo "not ok 2 /b/c#SAF-01"; for i in 1 2 3; do echo "# about $i"; done\n'
              'echo "# ValueError: the reason"; echo "ok 3 d"; exit 1',
    'raises': 'cat "$0.tap"; exit 1',
    'dies': 'echo 1..2; echo "ok 1 a"; echo "ERROR: it broke"; exit 6',
    'stops': 'echo 1..2; echo "ok 1 a"',
    'colours.py': 'echo "1..1 # \'/colours/blue#SAF-01\'"; echo "ok 1 $FETTLE_ONLY"',
    'skips': 'echo 1..1; echo "ok 1 a # SKIP no such thing here"',
}
RAISES = """1..2
not ok 1 /b/raises
# Traceback (most recent call last):
#   File "x.py", line 1, in run
#     test()
# KeyError: 'what it began with'
#
# During handling of the above exception, another exception occurred:
#
# Traceback (most recent call last):
#   File "x.py", line 2, in test
#     assert code == 0, said
#            ^^^^^^^^^
# AssertionError: (5, '', 'fettle: no
#   such thing
# at all')
# after that failure: nothing
# engine etcd: exit code 5 after 0.0 s
ok 2 /b/next
"""
END = [  # in any order, and the sum
    'FAILED   dies: exit code 0 (it was 6)\n         ERROR: it broke\n',
    'FAILED   points: /b/c#SAF-01\n         ValueError: the reason\n',
    "FAILED   raises: /b/raises\n         AssertionError: (5, '', 'fettle: no\n",
    'FAILED   stops: ran all its points (planned 2, ran 1)\n         ok 1 a\n',
]
SUM = '6 passed, 4 failed, 1 skipped\n'


ONLY = [  # words, exit code, last line
    ('skip', 1, '0 passed, 0 failed, 1 skipped'),  # nothing was proven
    ('skip dies', 1, '1 passed, 1 failed, 1 skipped'),
    ('blue', 0, '1 passed, 0 failed, 0 skipped'),  # of no test's name, so of a point's
    ('nonsense', 1, '0 passed, 0 failed, 0 skipped'),
]


def only_these(build, only):
    done = subprocess.run([RUN_TESTS, '--build', build, '--only', only, '--make'], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.splitlines()[-1]


def check():
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, 'meson.build'), 'w', encoding='utf-8') as file:
            file.write("project('x')\n")
            for name in PROGRAMS:
                file.write(f"test('{name}', find_program('./{name}'), protocol: 'tap')\n")
        for name, script in PROGRAMS.items():
            with open(os.path.join(folder, name), 'w', encoding='utf-8', opener=lambda path, how: os.open(path, how, 0o755)) as file:
                file.write('#!/bin/sh\n' + script + '\n')
        with open(os.path.join(folder, 'raises.tap'), 'w', encoding='utf-8') as file:
            file.write(RAISES)
        build = os.path.join(folder, 'build')
        subprocess.run(['meson', 'setup', build], cwd=folder, check=True, capture_output=True)
        done = subprocess.run([RUN_TESTS, '--build', build], capture_output=True, text=True, check=False)
        chosen = [(only, *only_these(build, only)) for only, *_ in ONLY]
    lines = done.stdout.splitlines(keepends=True)
    assert chosen == ONLY, chosen
    assert done.returncode == 1, done.returncode
    assert sorted(map(''.join, zip(lines[-9:-1:2], lines[-8:-1:2]))) == END and lines[-1] == SUM, done.stdout
    assert 'skipped  skips: a: no such thing here\n' in lines, done.stdout
    assert '    # about 1\n' in lines and '    ok 3 d\n' not in lines, done.stdout
    assert '    # after that failure: nothing\n' in lines and '    # engine etcd: exit code 5 after 0.0 s\n' not in lines, done.stdout


def check_order():
    """Those that took longest are begun first; whoever has none left of his own kind takes the longest of the other."""
    sys.path.insert(0, os.path.dirname(RUN_TESTS))
    sys.dont_write_bytecode = True
    loader = importlib.machinery.SourceFileLoader('run_tests_program', RUN_TESTS)
    program = importlib.util.module_from_spec(importlib.util.spec_from_loader('run_tests_program', loader))
    loader.exec_module(program)
    program.os.cpu_count = lambda: 1
    program.SECONDS = os.devnull
    assert [test['name'] for test in program.longest_first([{'name': 'a'}, {'name': 'b'}])] == ['a', 'b']
    with tempfile.NamedTemporaryFile('w') as file:
        file.write('# words\n20 d\n100 c\n')
        file.flush()
        program.SECONDS = file.name
        sorted_ones = [test['name'] for test in program.longest_first([{'name': name} for name in 'abcd'])]
    assert sorted_ones == ['c', 'd', 'a', 'b'], sorted_ones
    begun, guard = [], threading.Barrier(3)

    def run(name):
        begun.append(name)
        guard.wait(60)  # three at once: what comes next is begun by whoever is free
        return name
    assert sorted(program.run_all(['lab1', 'lab2'], [f'other{i}' for i in range(1, 8)], run)) == sorted(begun), begun
    assert {'lab1', 'lab2', 'other1'} == set(begun[:3]) and {'other2', 'other3', 'other4'} == set(begun[3:6]), begun


failed = 0
print('1..2')
for number, (title, test) in enumerate((('failures-are-told-at-the-end', check), ('the-longest-are-begun-first', check_order)), 1):
    try:
        test()
        print(f'ok {number} /style/{title}')
    except AssertionError as error:
        failed = 1
        print(f'not ok {number} /style/{title}')
        print(''.join(f'# {line}\n' for line in str(error).splitlines()), end='')
sys.exit(failed)
