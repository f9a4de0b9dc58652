#!/usr/bin/env python3
"""The guide to cleanups has its headings, and names each option with the default that the code has (CLN-67); the page about
new work that is tracked names where it is declared (CLN-68). Prints TAP."""
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OPTIONS = ('service_down_time', 'report_interval', 'auto_cleanup_enabled', 'auto_cleanup_checks', 'upgrading')
HEADINGS = ('Mechanism', 'On request', 'By itself', 'Reset-state in an active/active cluster')


def read(name):
    with open(os.path.join(ROOT, name), encoding='utf-8') as file:
        return file.read()


cluster = re.search(r'RECORD_BEGIN\(cluster,(.*?)RECORD_END', read('src/proto/records.def'), re.S).group(1)
code = {name: default for name, default in re.findall(r'FIELD\(\w+, (\w+), OPTIONAL, "([^"]*)"', cluster) if name in OPTIONS}
guide = read('docs/guide/storage-cleanup.md')
told = {name.replace('-', '_'): default for name, default in re.findall(r'^\| `--([\w-]+)` \| (\w+) \|', guide, re.M)}
points = [('headings', [heading for heading in HEADINGS if f'\n## {heading}\n' not in guide]),
          ('options-and-defaults', [] if set(code) == set(OPTIONS) and told == code else [f'the code has {code}, the guide {told}'])]
page = read('docs/design/adding-tracked-work.md')
missing = [word for word in ('src/proto/tasks.def', 'WORK row', 'SETTLED') if word not in page]
for number, (name, problems) in enumerate(points, 1):
    print('not ok' if problems else 'ok', number, f'- /cleanup-guide/{name}#CLN-67')
    for problem in problems:
        print('#', problem)
print('not ok' if missing else 'ok', len(points) + 1, '- /adding-tracked-work/names-the-declaration#CLN-68')
for word in missing:
    print('# docs/design/adding-tracked-work.md does not name', word)
print(f'1..{len(points) + 1}')
sys.exit(1 if missing or any(problems for _, problems in points) else 0)
