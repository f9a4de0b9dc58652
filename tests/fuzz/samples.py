#!/usr/bin/env python3
"""A sample of every method, every LUXI call and every opcode is in the corpora (fuzz_method, fuzz_luxi, fuzz_opcode).

Made of the schema (tests/proto/schema.json); with FETTLE_BLESS=1 those that are missing are written.
"""
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
UUID = '11111111-1111-4111-8111-111111111111'
DEPTH = 3

with open(os.path.join(HERE, '..', 'proto', 'schema.json'), encoding='utf-8') as file:
    SCHEMA = json.load(file)


def number(field):
    return max(int(field.get('min', 0)), min(7, int(field.get('max', 7))))


def value(field, depth):
    kind = field['type']
    if kind in ('object', 'objects'):
        one = record(field['record'], depth + 1)
        return one if kind == 'object' else [one] if depth < DEPTH else []
    if kind == 'enum':
        return SCHEMA['enums'][field['words']][-1]
    if kind == 'string':
        return (field.get('default') or UUID if int(field.get('max', 36)) >= 36 else 'no')[:int(field.get('max', 36))]
    return {'bool': True, 'float': number(field) + 0.5, 'int': number(field), 'uint': number(field),
            'json': [['user', 'text', 1]], 'name': 'web1', 'strings': ['web1'], 'uuid': UUID}[kind]


def record(name, depth=0):
    return {field['name']: value(field, depth) for field in SCHEMA['records'][name]
            if field['required'] or depth < DEPTH}


def samples():
    """(corpus, what it is a sample of, the sample)"""
    for name, method in sorted(SCHEMA['methods'].items()):
        server, _, word = name.partition('/')
        yield 'method', f'{server} {word}', {'method': f'{server} {word}', 'args': record(method['args']),
                                             'answer': record(method['answer'])}
    for name, args in sorted(SCHEMA['luxi'].items()):
        yield 'luxi', name, {'method': name, 'args': list(record(args).values())}
    for name, params in sorted(SCHEMA['opcodes'].items()):
        yield 'opcode', name, {'OP_ID': name, **record(params)}


def known(corpus):
    """What there are samples of."""
    found = set()
    folder = os.path.join(HERE, 'corpus', corpus)
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), 'rb') as sample:
            try:
                found.add(json.loads(sample.read().rstrip(b'\3')).get({'opcode': 'OP_ID'}.get(corpus, 'method')))
            except (ValueError, AttributeError):
                pass
    return found


def main():
    there = {corpus: known(corpus) for corpus in ('method', 'luxi', 'opcode')}
    missing = [sample for sample in samples() if sample[1] not in there[sample[0]]]
    if os.environ.get('FETTLE_BLESS'):
        for corpus, what, sample in missing:
            path = os.path.join(HERE, 'corpus', corpus, what.replace(' ', '-'))
            with open(path, 'w', encoding='utf-8') as out:
                json.dump(sample, out, separators=(',', ':'))
        return 0
    for corpus, what, _ in missing:
        print(f'# corpus/{corpus} has no sample of {what}: FETTLE_BLESS=1 {__file__} makes one')
    print(f'1..1\n{"not ok" if missing else "ok"} 1 /fuzz/samples')
    return 1 if missing else 0


if __name__ == '__main__':
    sys.exit(main())
