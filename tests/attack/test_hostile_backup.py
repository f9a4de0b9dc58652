#!/usr/bin/env python3
"""A backup that somebody else has written: whoever can make checksums can make any. What is wrong with it is said exactly, on the
terminal too, and nothing is changed, neither the store that is there nor anything else of the host.

Without a lab: a cluster of one host, whose daemons do not run.
"""
import contextlib
import hashlib
import json
import os
import shutil
import sqlite3
import struct
import sys
import tempfile
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'e2e'))
import e2e  # noqa: E402  pylint: disable=wrong-import-position
from e2e import fettlelib, title  # noqa: E402  pylint: disable=wrong-import-position

FAR = 9007199254740000
STRANGER = '99999999-9999-4999-8999-999999999999'
NAME = 'bare'

folder = None
good = None  # the header of a backup of this host, and its parts by name


# --- the host ---

def root():
    return os.path.join(folder, 'host')


def fettle(*args, at=None, leaks='0'):
    program = os.path.join(e2e.build(), 'src', 'cli', 'fettle')
    done = fettlelib.run_command([program, '--root', at or root(), *args], 60, env={**os.environ, 'ASAN_OPTIONS': f'detect_leaks={leaks}'})
    for text in (done.stdout, done.stderr):
        assert not e2e.REPORT.search(text), text
    return done.returncode, done.stdout, done.stderr


def tree(top):
    """All files with what is in them."""
    found = {}
    for at, folders, names in os.walk(top):
        for name in names:
            with open(os.path.join(at, name), 'rb') as file:
                found[os.path.relpath(os.path.join(at, name), top)] = hashlib.sha256(file.read()).hexdigest()
        found.update({os.path.relpath(os.path.join(at, name), top): 'folder' for name in folders})
    return found


def parse(path):
    with open(path, 'rb') as file:
        _, head, rest = file.read().split(b'\n', 2)
    header, parts = json.loads(head.split(b' ', 1)[1]), {}
    for part in header['parts']:
        parts[part['name']], rest = rest[:part['bytes']], rest[part['bytes']:]
    return header, parts


def write(header, parts, name='hostile'):
    """A backup with these parts, [(name, bytes)], whose checksums are all right; the header says of them what it says."""
    described = [{'name': one, 'bytes': len(data), 'sum': hashlib.sha256(data).hexdigest()} for one, data in parts]
    text = json.dumps({**good[0], 'parts': described, **header}, ensure_ascii=False).encode()
    path = os.path.join(folder, name)
    with open(path, 'wb') as file:
        file.write(b'fettle-backup 1\n' + hashlib.sha256(text).hexdigest().encode() + b' ' + text + b'\n' + b''.join(data for _, data in parts))
    return path


def parts_with(**changed):
    """Those of the good one; store=…, node_json=…"""
    names = {'store': 'store.db', 'node_json': 'etc/node.json', 'authority': 'etc/ca.crt'}
    return list({**good[1], **{names[key]: value for key, value in changed.items()}}.items())


def refused(code, line, path, at=None, before=None):
    """The restore ends with this last line, and the whole host is as it was."""
    at = at or root()
    before = tree(at)
    found, out, err = fettle('cluster', 'restore', path, '--confirm', NAME, at=at)
    assert '\x1b' not in out + err, err
    last = err.strip().splitlines()[-1]
    assert (found, last) == (code, 'fettle: ' + line.replace('FILE', path).replace('STORE', os.path.join(at, 'var/store.db.restore')).replace('F-I-L-E', 'FILE')), \
        f'expected {code} and\n  {line}\ngot {found} and\n  {last}'
    after = tree(at)
    for found in (before, after):  # empty folders, and what says that nobody else has the store
        for made in [path for path, what in found.items() if what == 'folder' or path == 'var/store.db.lock']:
            del found[made]
    assert after == before, {key for key, _ in after.items() ^ before.items()}


# --- the file ---

NAME_RULE = "must be a name: 1 to 63 of a-z, 0-9, '.' and '-' (no upper case), the first a letter or digit"


@title('/attack/backup/header')
def test_header():
    parts = parts_with()
    sums = [{'name': one, 'bytes': len(data), 'sum': hashlib.sha256(data).hexdigest()} for one, data in parts]
    for header, line in (
            ({'parts': [{**sums[0], 'bytes': 1 << 62}]}, 'parts[0].bytes: must be at most 1073741824'),
            ({'parts': [{**sums[0], 'bytes': -1}]}, 'parts[0].bytes: must be at least 0'),
            ({'parts': sums * 10}, f'parts: must have at most 16 elements, has {10 * len(sums)}'),
            ({'parts': {}}, 'parts: must be a list of objects'),
            ({'name': 'a\x1b[2J'}, f'name: {NAME_RULE}'),
            ({'name': '../../x'}, f'name: {NAME_RULE}'),
            ({'cluster': 5}, 'cluster: must be a text'),
            ({'history': -1}, 'history: must be at least 0'),
            ({'serial': 1 << 62}, 'serial: must be at most 9007199254740992')):
        refused(2, f'FILE: its header: {line}', write(header, parts))
    refused(23, 'FILE is damaged: its header is cut off; nothing was changed, take another backup', write({'more': 'x' * 70000}, parts))
    refused(22, 'FILE: its header: JSON is nested deeper than 32 levels', write({'more': json.loads('[' * 40 + ']' * 40)}, parts))
    refused(5, 'the backup has no store.db; nothing was changed', write({}, parts[1:]))
    refused(5, f'this host (node n1) belongs to the cluster {good[0]["cluster"]}, and the backup is of {NAME} ({STRANGER}); nothing was changed',
            write({'cluster': STRANGER}, parts))
    identity = os.path.join(root(), 'etc/node.json')
    os.rename(identity, identity + '.away')
    refused(5, f'{os.path.join(root(), "etc/ca.crt")} is another one than that of the backup; nothing was changed',
            write({}, parts_with(authority=b'x')))
    os.rename(identity + '.away', identity)
    # What the header says of places and versions moves no cursor either.
    code, out, err = fettle('cluster', 'restore', write({'node_name': 'a\x1b[2J', 'engine': 'b\x1b', 'fettle': 'c\x1b'}, parts), '--confirm', 'no')
    assert code == 17 and '\x1b' not in out + err and 'on node a\\x1b[2J' in err, (code, err)


# --- the store ---

def sum_bytes(total, data):
    for byte in data:
        total = (total ^ byte) * 0x100000001b3 & (1 << 64) - 1
    return total


def sum_of(*values):
    total = 0xcbf29ce484222325
    for value in values:
        total = sum_bytes(total, struct.pack('<Q', value) if isinstance(value, int) else value.encode() + b'\0')
    return total


@contextlib.contextmanager
def store_db(data=None):
    """The store of the good backup as a database to be changed; `made` has its bytes after that."""
    path = os.path.join(folder, 'store.db')
    with open(path, 'wb') as file:
        file.write(data or good[1]['store.db'])
    database = sqlite3.connect(path, isolation_level=None)
    database.execute('PRAGMA journal_mode=DELETE')
    made = []
    yield database, made
    database.close()
    with open(path, 'rb') as file:
        made.append(file.read())
    os.unlink(path)


def sqlite_of_another():
    with store_db() as (database, made):
        database.execute('PRAGMA application_id=7')
    return made[0]


ENDLESS = 'AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM n) SELECT'
SCHEMAS = (
    ('trigger "trap"', 'CREATE TRIGGER trap AFTER INSERT ON objects BEGIN UPDATE objects SET version=version+1; END'),
    ('trigger "trap"', 'CREATE TRIGGER trap AFTER INSERT ON meta BEGIN DELETE FROM commits; END'),
    ('index "slow"', 'CREATE INDEX slow ON objects(json)'),
    ('table "more"', 'CREATE TABLE more(a)'),
    ('view "more"', f'CREATE VIEW more {ENDLESS} x FROM n'),
    ('view "objects"', 'DROP TABLE objects; '
     f"CREATE VIEW objects {ENDLESS} 'node' AS kind, 'x' AS key, 1 AS version, '{{}}' AS json, x AS sum FROM n WHERE x < 0"),
    ('view "meta"', f"DROP TABLE meta; CREATE VIEW meta {ENDLESS} 'node' AS key, 'x' AS value FROM n WHERE x < 0"),
    ('table "more"', 'CREATE VIRTUAL TABLE more USING fts5(a)'),
    ('table "ids"', 'DROP TABLE ids; CREATE TABLE ids(serial INTEGER PRIMARY KEY, commit_id TEXT NOT NULL UNIQUE, '
     'sum INTEGER NOT NULL CHECK (length(zeroblob(900000000)) > 0))'),
)
ADVICE = ('The cluster does not start from it. Look at the disk it is on. If another candidate has a copy: systemctl stop fettle.target here, then '
          'fettle cluster master-failover there. If none has: fettle cluster restore F-I-L-E, with a backup')
NO_USE = 'the store in the backup is of no use, and nothing was changed: '


@title('/attack/backup/schema')
def test_schema():
    """What would run when we read or write: before anything of it is read."""
    for what, script in SCHEMAS:
        with store_db() as (database, made):
            database.executescript(script)
        refused(5, f'{NO_USE}STORE is damaged: its {what} is none of a store. {ADVICE}', write({}, parts_with(store=made[0])))
    with store_db() as (database, made):
        database.executescript('ANALYZE')  # as a person may; it is none of that
    code, _, err = fettle('cluster', 'restore', write({}, parts_with(store=made[0])), '--confirm', NAME)
    assert code == 0, err
    for data, what in ((b'garbage', 'file is not a database'), (sqlite_of_another(), 'it is not a store of Fettle'),
                       (good[1]['store.db'][:-4096], 'database disk image is malformed')):
        refused(5, f'{NO_USE}STORE is damaged: {what}. {ADVICE}', write({}, parts_with(store=data)))


def rewrite(database, objects=None, **numbers):
    """All of the store anew, with its checksums: other objects, {(kind, key): text}, other numbers; its log is empty, as a copy's may be."""
    meta = dict(database.execute('SELECT key, value FROM meta'))
    had = {(kind, key): text for kind, key, text in database.execute('SELECT kind, key, json FROM objects')}
    objects = {**had, **(objects or {})}
    meta.update({key: int(meta[key]) for key in ('history', 'serial', 'epoch')}, **numbers)
    meta.update(log_from=meta['serial'], role=1, digest=0, versions=0)
    for table in ('meta', 'objects', 'changes', 'commits', 'ids'):
        database.execute(f'DELETE FROM {table}')
    for (kind, key), text in objects.items():
        if text is None:
            continue
        total = sum_of(kind, key, 1, text)
        meta['digest'] ^= total
        meta['versions'] ^= sum_bytes(sum_of(kind, key), struct.pack('<Q', 1))
        database.execute('INSERT INTO objects VALUES(?,?,1,?,?)', (kind, key, text, total - (1 << 64 if total >> 63 else 0)))
    meta['check'] = sum_of(*(meta[key] for key in ORDER))
    database.executemany('INSERT INTO meta VALUES(?,?)', [(key, str(value)) for key, value in meta.items()])


ORDER = ('history', 'serial', 'digest', 'log_from', 'versions', 'role', 'epoch', 'node', 'boot_id', 'journal_id')


def rewritten(header=None, objects=None, **numbers):
    with store_db() as (database, made):
        rewrite(database, objects, **numbers)
    return write({**{key: value for key, value in numbers.items() if key in ('history', 'serial', 'epoch')}, **(header or {})},
                 parts_with(store=made[0]))


@title('/attack/backup/numbers#SAF-103')
def test_numbers():
    for name, told in (('history', FAR + 1), ('epoch', FAR + 1), ('serial', FAR + 1000000001)):
        refused(5, f'no other node would believe this restore, and nothing was changed: {name} {told} is beyond any clock', rewritten(**{name: FAR}))
    for name in ('history', 'epoch', 'serial'):
        refused(5, 'the store in the backup is not the one of its header', rewritten({name: 77}))
    restored()


def restored(at=None, **objects):
    """The sums of this test are right: with nothing else in it the backup is put back, and can be read."""
    at = at or root()
    code, _, err = fettle('cluster', 'restore', rewritten(**objects), '--confirm', NAME, at=at)
    assert code == 0, err
    code, out, err = fettle('cluster', 'export', at=at)
    assert code == 0, err
    shutil.rmtree(at)
    shutil.copytree(root() + '.kept', at)
    return json.loads(out)


@title('/attack/backup/objects')
def test_objects():
    with store_db() as (database, _):
        had = {(kind, key): json.loads(text) for kind, key, text in database.execute('SELECT kind, key, json FROM objects')}
    node = next(key for key in had if key[0] == 'node')
    cluster = next(key for key in had if key[0] == 'cluster')
    one = str(uuid.uuid4())
    for objects, line in (
            ({('nosuch', 'x'): '{}'}, f'{NO_USE}kind: "nosuch" is no kind of object'),
            ({node: json.dumps({**had[node], 'name': '../../../x'})}, f'{NO_USE}node {node[1]}: name: {NAME_RULE}'),
            ({node: json.dumps({**had[node], 'name': 'a\x1b[2J'})}, f'{NO_USE}node {node[1]}: name: {NAME_RULE}'),
            ({node: json.dumps({**had[node], 'primary_ip': 5})}, f'{NO_USE}node {node[1]}: primary_ip: must be a text'),
            ({('instance', one): json.dumps({'uuid': one, 'name': 'a/b'})}, f'{NO_USE}instance {one}: name: {NAME_RULE}'),
            ({('node', one): json.dumps(had[node])}, f'{NO_USE}node {one}: the object says that its key is {node[1]}'),
            ({('counter', 'job'): '{"value": 9223372036854775807}'}, f'{NO_USE}counter job: value: must be at most 9007199254740992'),
            # It can be read, and what a restore adds to it could not.
            ({('counter', 'job'): '{"value": 9007199254740992}'}, f'{NO_USE}counter job: value: must be at most 9007199254740992'),
            ({node: None}, f'this host (node {node[1]}) is no node of the cluster in the backup; restore it on one that was a node then'),
            ({cluster: None}, 'the backup has no cluster in it')):
        refused(5, line, rewritten(objects=objects))
    for text in ('[' * 4000, '5', ''):
        refused(5, f'{NO_USE}STORE is damaged: object cluster {cluster[1]} is no JSON object. It is a copy: look at the disk it is on; wconfd puts it '
                'away as STORE.damaged and makes it anew from the master, when there is one', rewritten(objects={cluster: text}))
    # Whoever it says is the master: it is this host from now on.
    assert restored(objects={cluster: json.dumps({**had[cluster], 'master_node': one})})['objects']['cluster'][cluster[1]]['master_node'] == node[1]


@title('/attack/backup/new-host')
def test_new_host():
    """A host without an identity takes that of the backup: only what belongs into etc/, and only where nothing is."""
    fresh = os.path.join(folder, 'fresh')
    identity = json.loads(good[1]['etc/node.json'])
    inside = 'etc/node.json in the backup: '
    for change, line in (
            (b'garbage', f"{inside}broken JSON at byte 7 (line 1): '[' or '{{' expected near 'garbage'"),
            (b'[' * 60000, f'{inside}JSON is nested deeper than 32 levels'),
            ({'name': '../x'}, f'{inside}name: {NAME_RULE}'),
            ({'port': 70000}, f'{inside}port: must be at most 65535'),
            ({'address': 'x\x1b'}, f'{inside}address: "x\\x1b" is no IP address'),
            ({'cluster_uuid': STRANGER}, f'this host (node n1) belongs to the cluster {STRANGER}, and the backup is of {NAME} '
             f'({good[0]["cluster"]}); nothing was changed'),
            ({'node_uuid': STRANGER}, f'this host (node {STRANGER}) is no node of the cluster in the backup; restore it on one that was a node then')):
        os.makedirs(fresh)
        data = change if isinstance(change, bytes) else json.dumps({**identity, **change}).encode()
        refused(5, line, write({}, parts_with(node_json=data)), at=fresh)
        shutil.rmtree(fresh)
    os.makedirs(fresh)
    outside = [('../escaped', b'x'), ('etc/../../escaped', b'x'), ('/var/tmp/escaped', b'x'), ('etc/cron.d', b'x'), ('etc/ca.crt', b'another one')]
    code, _, err = fettle('cluster', 'restore', write({}, [*parts_with(), *outside]), '--confirm', NAME, at=fresh)
    assert code == 0, err
    made = {path for path in tree(fresh) if not path.startswith(('run', 'log', 'var/'))}
    assert made == {'etc', 'var', *good[1]} - {'store.db'}, made
    with open(os.path.join(fresh, 'etc/ca.crt'), 'rb') as file:
        assert file.read() == good[1]['etc/ca.crt']  # of two with one name the first
    assert sorted(os.listdir(folder)) == ['fresh', 'good', 'host', 'host.kept', 'hostile'] and not os.path.exists('/var/tmp/escaped')


@title('/attack/backup/renewed-since#SAF-94')
def test_renewed():
    """A node of this cluster whose keys were renewed since keeps them; no old one comes back beside them."""
    at = os.path.join(folder, 'renewed')
    shutil.copytree(root() + '.kept', at)
    with open(os.path.join(at, 'etc/ca.crt'), 'wb') as file:
        file.write(b'the new one')
    os.remove(os.path.join(at, 'etc/ca.key'))
    before = {path: what for path, what in tree(at).items() if path.startswith('etc')}
    code, _, err = fettle('cluster', 'restore', os.path.join(folder, 'good'), '--confirm', NAME, at=at)
    assert code == 0, err
    assert {path: what for path, what in tree(at).items() if path.startswith('etc')} == before


if __name__ == '__main__':
    with tempfile.TemporaryDirectory(prefix='fettle-backup-', dir='/var/tmp') as folder:
        os.mkdir(root())
        for words in (('cluster', 'init', NAME, '--node-name', 'n1', '--primary-ip', '127.0.0.1'),
                      ('cluster', 'backup', '--to', os.path.join(folder, 'good'))):
            code, _, err = fettle(*words)
            assert code == 0, err
        good = parse(os.path.join(folder, 'good'))
        shutil.copytree(root(), root() + '.kept')
        e2e.run(test_header, test_schema, test_numbers, test_objects, test_new_host, test_renewed)
