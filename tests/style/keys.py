#!/usr/bin/env python3
"""Who holds a certificate or a secret of the cluster is a table (src/proto/keys.def), and the code has no other. Prints TAP."""
import fnmatch
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NAME_IN_CODE = re.compile(r'"(?:[^"\s]*/)?([\w%.-]+\.(?:key|crt|psk))"')
ENGINE_FILE = re.compile(r'#define ENGINE_FILE_\w+ "(\w+)" /\*')
SECRET = re.compile(r'"secret", "(\w+)"|bootstrap_secret\("(\w+)"')
SIGNS = re.compile(r'\(\*((?:sign|make)\w*)\)')
COLUMNS = ('name', 'files', 'signed by', 'holders', 'opens', 'renewed', 'waits')
points = []


def read(name):
    with open(os.path.join(ROOT, name), encoding='utf-8') as file:
        return file.read()


def table():
    text = re.sub(r'/\*.*?\*/', '', read('src/proto/keys.def'), flags=re.S)
    rows = [re.findall(r'"([^"]*)"', row) for row in re.findall(r'KEY\((.*?)\)\n', text, re.S)]
    return [dict(zip(COLUMNS, row)) for row in rows if len(row) == len(COLUMNS)], len(rows)


def sources():
    for folder, _, files in os.walk(os.path.join(ROOT, 'src')):
        for file in files:
            if file.endswith(('.c', '.h')):
                path = os.path.relpath(os.path.join(folder, file), ROOT)
                yield path, read(path)


def listed(row, column):
    return [one for one in row[column].split('|') if one]


def wanting(rows, texts):
    """What the code has and no row."""
    files = {os.path.basename(name) for row in rows for name in listed(row, 'files')}
    signed = {name for row in rows for name in listed(row, 'signed by')}
    found = set()
    for path, text in texts:
        for name in NAME_IN_CODE.findall(text):
            if not any(fnmatch.fnmatch(name.replace('%s', 'X'), pattern) for pattern in files):
                found.add(f'{path}: the file {name}')
        for name in ENGINE_FILE.findall(text):
            found |= {f'{path}: the file {name}.{kind}' for kind in ('crt', 'key') if f'{name}.{kind}' not in files}
        for name in (one or other for one, other in SECRET.findall(text)):
            if not any(f'secret/{name}' in listed(row, 'files') for row in rows):
                found.add(f'{path}: the secret {name}')
        if path == 'src/proto/authority.h':
            found |= {f'{path}: {name}()' for name in SIGNS.findall(text) if name not in signed}
    return sorted(found)


def point(name, problems):
    points.append(not problems)
    print(('ok' if not problems else 'not ok'), len(points), '-', name)
    for problem in problems:
        print('#', problem)


rows, count = table()
point('keys/each-row-is-whole', [] if rows and len(rows) == count and all(row['name'] and row['holders'] and row['opens'] and row['renewed'] for row in rows)
      else [f'{count} rows, {len(rows)} of {len(COLUMNS)} texts'])
point('keys/each-certificate-and-secret-has-a-row', wanting(rows, sources()))
planted = [('src/io/x.c', 'open("etc/rapid.key"); put("secret", "lease")'), ('src/proto/authority.h', 'bool (*sign_witness)(int x);'),
           ('src/io/engine_file.h', '#define ENGINE_FILE_X "other" /* of others */')]
missed = {'src/io/x.c: the file rapid.key', 'src/io/x.c: the secret lease', 'src/proto/authority.h: sign_witness()', 'src/io/engine_file.h: the file other.crt',
          'src/io/engine_file.h: the file other.key'} ^ set(wanting(rows, planted))
point('keys/a-purpose-without-a-row-is-found', sorted(missed))
guide = read('docs/guide/security.md')
point('keys/the-guide-names-each', [f'docs/guide/security.md: nothing of "{row["name"]}"' for row in rows if f'| {row["name"]} |' not in guide])
print(f'1..{len(points)}')
sys.exit(0 if all(points) else 1)
