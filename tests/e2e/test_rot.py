#!/usr/bin/env python3
"""Rows that rot on the disk under a running cluster with the engine sqlite: found while others still have them whole, by
the way that docs/guide/candidates.md describes."""
import contextlib
import os
import re
import sqlite3

import e2e
from e2e import title, wait_until

lab = None


def path_of(node):
    return os.path.join(lab.root(node), 'var', 'store.db')


def pid(node):
    return next(daemon['pid'] for one in lab.status()['nodes'] if one['name'] == node for daemon in one['daemons'] if daemon['name'] == 'wconfd')


def equal(*nodes):
    seen = {(meta.get('history'), meta.get('serial'), meta.get('versions')) for meta in (e2e.store_of(lab, node) for node in nodes)}
    return len(seen) == 1 and (None, None, None) not in seen


def log_of(node):
    with open(os.path.join(lab.directory, 'log', node, 'wconfd.log'), encoding='utf-8', errors='replace') as file:
        return file.read()


def rot(node, word):
    """A bit of a row becomes another, wherever the store of the node has it, past all that it has in memory."""
    found = 0
    for ending in ('', '-wal'):
        with open(path_of(node) + ending, 'r+b') as file:
            data = file.read()
            for match in re.finditer(re.escape(word.encode()), data):
                file.seek(match.end() - 1)
                file.write(bytes([data[match.end() - 1] ^ 1]))
                found += 1
    assert found, f'{word} is nowhere on {node}'


@title('/rot/copy#SAF-07')
def test_copy():
    lab.cli('tag', 'add', 'cluster', 'rots-on-node3')
    wait_until('the copies are there', lambda: equal('node1', 'node2', 'node3'))
    before = pid('node3')
    rot('node3', 'rots-on-node3')
    wait_until('the damaged copy is kept aside', lambda: os.path.exists(path_of('node3') + '.damaged'), 120)
    wait_until('it was filled anew', lambda: equal('node1', 'node3'), 30)
    log = log_of('node3')
    assert re.search(r'the copy of the configuration does not count any more: \S+/store\.db is damaged: .* does not match its checksum\. '
                     r'It is a copy: look at the disk it is on; wconfd puts it away as \S+/store\.db\.damaged and makes it anew', log), log
    assert pid('node3') == before, 'it was restarted'
    lab.cli('tag', 'add', 'cluster', 'goes-on')
    wait_until('it follows', lambda: equal('node1', 'node2', 'node3'), 10)


def replace(node, old, new):
    with contextlib.closing(sqlite3.connect(path_of(node), timeout=5, isolation_level=None)) as db:
        done = db.execute("UPDATE objects SET json=replace(json, ?, ?) WHERE kind='tag' AND json LIKE ?", (old, new, f'%{old}%'))
        assert done.rowcount == 1, done.rowcount


@title('/rot/whole-again#SAF-08')
def test_whole_again():
    """What was found is said until all is read again and is whole."""
    lab.cli('tag', 'add', 'cluster', 'now-and-then')
    replace('node1', 'now-and-then', 'now-and-them')
    wait_until('cluster verify says so', lambda: 'store.db is damaged: ' in e2e.verify(lab)[1], 120)
    replace('node1', 'now-and-them', 'now-and-then')
    wait_until('it says so no more', lambda: 'store.db is damaged: ' not in e2e.verify(lab)[1], 120)
    assert 'the store was read anew and is whole' in log_of('node1')


@title('/rot/master#SAF-07,SAF-08')
def test_master():
    lab.cli('tag', 'add', 'cluster', 'rots-on-node1')
    wait_until('the copies are there', lambda: equal('node1', 'node2', 'node3'))
    rot('node1', 'rots-on-node1')
    wait_until('cluster verify says so', lambda: 'store.db is damaged: ' in e2e.verify(lab)[1], 120)
    assert 'The cluster does not start from it.' in log_of('node1')
    lab.cli('tag', 'add', 'cluster', 'goes-on-in-memory')
    wait_until('the copies have it', lambda: all('goes-on-in-memory' in export(node) for node in ('node2', 'node3')), 10)


def export(node):
    return lab.exec(node, lab.fettle, '--root', lab.root(node), 'cluster', 'export')


@title('/rot/way-out#SAF-07')
def test_way_out():
    """As the guide says: the damaged node off, the word on a candidate, and on again."""
    lab.lab('power', 'node1', 'off')
    lab.master = 'node2'
    lab.cli('cluster', 'master-failover', '--yes')
    wait_until('it serves', lambda: lab.run('node', 'list', check=False)[0] == 0, 60)
    assert 'goes-on-in-memory' in export('node2')
    lab.lab('power', 'node1', 'on')
    wait_until('the damaged store is put away', lambda: any(name.startswith('store.db.epoch-') for name in
                                                            os.listdir(os.path.dirname(path_of('node1')))), 60)
    wait_until('the old master follows', lambda: equal('node1', 'node2', 'node3'), 60)


def main():
    global lab  # pylint: disable=global-statement
    with e2e.new_lab(options=('--replica-lost-ms', '1000', '--watcher-interval-ms', '500', '--candidates', '3')) as lab:
        e2e.run(test_copy, test_whole_again, test_master, test_way_out)


if __name__ == '__main__':
    main()
