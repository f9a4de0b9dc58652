#!/usr/bin/env python3
"""Master candidates with the engine sqlite: their copies, and a person who makes another one the master."""
import contextlib
import glob
import json
import os
import re
import sqlite3

import e2e
import test_join
from e2e import fettlelib, title, wait_until

lab = None
name = None  # of the cluster
old = {}  # the store of the first master, when its power was cut


def store(node):
    return e2e.store_of(lab, node)


def equal(*nodes):
    """Whether the stores of these nodes have the same content; their position, if so."""
    return e2e.equal_copies(lab, *nodes)


def change(tag):
    lab.cli('tag', 'add', 'cluster', tag)


def copies():
    return {copy['node']: copy for copy in lab.json('cluster', 'info')['copies']}


def wait_for_both(seconds):
    """A copy that was counted out, as in a lab that has just come up, is back with its next question."""
    wait_until('both are in reach', lambda: [copy['reachable'] for copy in copies().values()] == [True, True], seconds)


def recorded(node, job):
    """Status of a job on record in a candidate's own store."""
    path = os.path.join(lab.root(node), 'var', 'store.db')
    try:
        with contextlib.closing(sqlite3.connect(f'file:{path}?mode=ro', uri=True, timeout=5)) as db:
            row = db.execute("SELECT json FROM objects WHERE kind = 'job' AND key = ?", (str(job),)).fetchone()
    except sqlite3.OperationalError:
        return None
    return row and json.loads(row[0])['status']


@title('/candidates/a-job-ends-without-luxid#LUX-32')
def test_end_without_luxid():
    job = lab.submit({'OP_ID': 'OP_TEST_DELAY', 'duration': 3})
    wait_until('it runs', lambda: lab.job_status(job)[0] == 'running')
    lab.lab('pause', 'luxid@node1')
    try:
        for node in ('node1', 'node2', 'node3'):
            wait_until(f'its end is on {node}', lambda node=node: recorded(node, job) == 'success', 30)
    finally:
        lab.lab('resume', 'luxid@node1')
    assert lab.wait_job(job)[0] == 'success'


@title('/candidates/copies-follow#WCF-04,SAF-07')
def test_follow():
    wait_until('all copies are there', lambda: equal('node1', 'node2', 'node3'))
    change('one')
    wait_until('all copies have the change', lambda: equal('node1', 'node2', 'node3'), 30, step=0.01)
    wait_for_both(5)
    assert sorted(copies()) == ['node2', 'node3'], copies()
    assert store('node1')['role'] == '0' and store('node2')['role'] == '1', 'who is the engine'


@title('/candidates/standby#LUX-01,LUX-10')
def test_standby():
    lab.master = 'node2'
    try:
        e2e.expect_cli_error(lab, NOT_MASTER, 'fettle: node2 is not the master; the master is node1',
                             'node', 'list')
    finally:
        lab.master = 'node1'


@title('/candidates/catch-up#SAF-07')
def test_cut_off():
    lab.lab('link', 'node3', 'down')
    change('two')
    wait_until('node2 has it', lambda: equal('node1', 'node2'), 10)
    assert store('node3')['serial'] != store('node1')['serial']
    wait_until('node3 is counted out', lambda: not copies()['node3']['reachable'], 10)
    text = lab.cli('cluster', 'info')
    assert re.search(r'^  node3 +serial \d+, out of reach: no change waits for it$', text, re.M), text
    lab.lab('link', 'node3', 'up')
    wait_until('node3 has caught up', lambda: equal('node1', 'node2', 'node3'), 20)


def flushed(*flags):
    """{candidate: whether it has the newest change} when the call has returned, and that serial."""
    said = lab.json('cluster', 'flush', *flags)
    found = {copy['name']: copy['reachable'] for copy in said['copies']}
    for copy in said['copies']:
        if copy['reachable']:
            assert copy['serial'] >= said['serial'] and int(store(copy['name'])['serial']) >= said['serial'], said
    return found, said['serial']


def newest():
    return int(store('node1')['serial'])


@title('/candidates/verify-names-copies-that-lag#SAF-07')
def test_verify():
    """What is on no other candidate's disk would be lost with the master, and no check is green meanwhile."""
    e2e.verify_clean(lab)
    for node in ('node2', 'node3'):
        lab.lab('pause', f'wconfd@{node}')
    try:
        serials = {node: copy['serial'] for node, copy in copies().items()}
        change('on-one-disk')
        said = [f'node {node}: its copy of the configuration stands at serial {serials[node]}, and no change waits for it: as master it would '
                'lack what has changed since. See whether its fettle-wconfd runs, and what its log says' for node in ('node2', 'node3')]
        for words, wanted in ((('cluster', 'verify'), said), (('node', 'verify', 'node2'), said[:1])):
            code, out, _ = lab.run(*words, check=False)
            assert code == 1 and [line for line in out.splitlines() if 'its copy of' in line] == wanted, (code, out)
            assert 'node node2: its fettle-wconfd does not answer: ' in out, out
    finally:
        for node in ('node2', 'node3'):
            lab.lab('resume', f'wconfd@{node}')
    e2e.verify_clean(lab)


@title('/candidates/flush#WCF-04')
def test_flush():
    wait_for_both(30)
    before = newest()
    found, serial = flushed()
    assert found == {'node2': True, 'node3': True} and serial >= before, (found, serial, before)
    text = lab.cli('cluster', 'flush')
    assert re.search(r'^node2 +\d+ +has it\nnode3 +\d+ +has it\nSerial \d+ is on the disk of node2, node3\.$', text, re.M), text
    for words, message in (
            (('--timeout-ms', 'soon'), '--timeout-ms: "soon" is no number of milliseconds from 0 to 600000'),
            (('--timeout-ms', '600001'), '--timeout-ms: "600001" is no number of milliseconds from 0 to 600000'),
            (('--timeout-ms',), '--timeout-ms needs a value'),
            (('node2',), 'too many arguments; usage: fettle cluster flush [--timeout-ms MS]')):
        e2e.expect_cli_error(lab, WRONG_INPUT, f'fettle: {message}', 'cluster', 'flush', *words)
    lab.master = 'node2'
    try:
        e2e.expect_cli_error(lab, NOT_MASTER, 'fettle: node2 is not the master; the master is node1', 'cluster', 'flush')
    finally:
        lab.master = 'node1'


@title('/candidates/flush-waits-for-all-in-reach#WCF-04')
def test_flush_waits():
    wait_for_both(30)
    lab.cli('cluster', 'modify', '--copy-patience-ms', '60000')
    flushed()
    lab.lab('link', 'node3', 'down')
    change('flush-1')  # answered: node2 has it
    after = newest()
    code, _, err = lab.run('cluster', 'flush', '--timeout-ms', '300', check=False)
    found = re.fullmatch(r'fettle: serial (\d+) is stored, but after 300 ms not on the disk of every candidate in reach: node3 is at '
                         r'serial (\d+); they get it by themselves, ask again\n', err)
    assert code == TIMEOUT and found and int(found[1]) >= after > int(found[2]), (code, err)
    lab.lab('link', 'node3', 'up')
    found, serial = flushed('--timeout-ms', '60000')
    assert found == {'node2': True, 'node3': True} and serial >= after, (found, serial, after)

    # Out of reach: it is named, and not waited for.
    lab.cli('cluster', 'modify', '--copy-patience-ms', '1000')
    lab.lab('link', 'node3', 'down')
    change('flush-2')
    after = newest()
    found, serial = flushed()
    assert found == {'node2': True, 'node3': False} and serial >= after, (found, serial, after)
    text = lab.cli('cluster', 'flush')
    assert re.search(r'^node3 +\d+ +not up to date, or out of reach\n'
                     r'Serial \d+ is on the disk of node2\. Not up to date, or out of reach, and not waited for: node3\.$', text, re.M), text
    lab.lab('link', 'node3', 'up')
    wait_until('node3 has caught up', lambda: equal('node1', 'node2', 'node3'), 20)
    wait_until('it is in reach', lambda: flushed()[0]['node3'], 20)


def exported(node, *flags):
    """What `cluster export` says on that node."""
    return json.loads(lab.exec(node, lab.fettle, '--root', lab.root(node), 'cluster', 'export', *flags))


@title('/candidates/empty-copy#WCF-04')
def test_empty():
    path = os.path.join(lab.root('node3'), 'var', 'store.db')
    lab.lab('link', 'node3', 'down')
    for file in glob.glob(path + '*'):
        os.unlink(file)
    lab.lab('kill', 'wconfd@node3')
    wait_until('it has an empty copy', lambda: store('node3').get('history') == '0', 20)
    lab.master = 'node3'
    try:
        e2e.expect_cli_error(lab, TEMPORARY, f'fettle: {path} is empty: the copy of this host has not come from a master yet; give the '
                             'command on the master or another candidate', 'cluster', 'export')
    finally:
        lab.master = 'node1'
    lab.lab('link', 'node3', 'up')
    wait_until('it was filled', lambda: equal('node1', 'node3'), 20)


@title('/candidates/damaged-copy#WCF-04')
def test_damaged():
    path = os.path.join(lab.root('node3'), 'var', 'store.db')
    with contextlib.closing(sqlite3.connect(path, timeout=5, isolation_level=None)) as db:
        db.execute("UPDATE objects SET json=replace(json, 'node2', 'node9') WHERE kind='node'")
    lab.lab('kill', 'wconfd@node3')
    wait_until('the damaged copy is kept aside', lambda: os.path.exists(path + '.damaged'), 10)
    wait_until('it was filled anew', lambda: equal('node1', 'node3'), 10)


def about(node, backup):
    """What a restore says of it; without a person's word it does nothing else."""
    command = f'{lab.fettle} --root {lab.root(node)} cluster restore {backup} 2>&1 </dev/null; echo code $?'
    said = lab.exec(node, 'sh', '-c', command)
    assert 'restoring needs a person' in said and not said.endswith('code 0\n'), said
    return said


@title('/candidates/confd-on-each#RCF-01,RCF-04')
def test_confd():
    """Asked from outside of the lab: the command goes into the node's network by itself."""
    def answering():
        return [one['name'] for one in lab.json('confd', 'master')['candidates'] if one['answered']]
    wait_until('all answer', lambda: answering() == ['node1', 'node2', 'node3'], 10)
    lab.cli('node', 'modify', 'node3', '--master-candidate', 'no')
    wait_until('its copy is not used any more', lambda: store('node3')['role'] == '2', 10)
    wait_until('node3 does not answer', lambda: answering() == ['node1', 'node2'], 10)
    assert exported('node3')['store'] == 'retired' and exported('node1')['store'] == 'engine'
    backup = os.path.join(lab.root('node3'), 'backup')
    script = f'{lab.fettle} --root {{}} cluster backup --to {backup} 2>&1; echo code $?'
    said = lab.exec('node3', 'sh', '-c', script.format(lab.root('node3')))
    assert 'is not kept up to date any more, since node node3 is no master candidate' in said, said
    assert said.endswith('code 5\n') and not os.path.exists(backup), said
    said = lab.exec('node2', 'sh', '-c', script.format(lab.root('node2')))
    assert ", by this host's copy, is in " in said and said.endswith('code 0\n'), said
    assert 'on node node2 from its copy, which may have been behind the master; the engine was sqlite.\n' in about('node2', backup)
    os.unlink(backup)
    said = lab.exec('node1', 'sh', '-c', script.format(lab.root('node1')))
    assert 'copy, is in ' not in said and said.endswith('code 0\n'), said
    here = store('node1')
    text = about('node1', backup)
    assert f"{backup} has the configuration of lab, history {here['history']}, epoch {here['epoch']}, serial " in text, text
    assert "on node node1 from its store, which was the master's; the engine was sqlite.\n" in text, text
    os.unlink(backup)
    lab.cli('node', 'modify', 'node3', '--master-candidate', 'yes')
    wait_until('it answers again', lambda: answering() == ['node1', 'node2', 'node3'], 10)
    wait_until('and follows', lambda: equal('node1', 'node3'), 10)


def authority_key(node):
    """(mode, content) of the authority's key there; None: it has none."""
    path = os.path.join(lab.root(node), 'etc', 'ca.key')
    try:
        with open(path, encoding='utf-8') as file:
            return os.stat(path).st_mode & 0o7777, file.read()
    except FileNotFoundError:
        return None


@title('/candidates/authority-key')
def test_authority_key():
    key = authority_key('node1')
    assert key[0] == 0o600, key[0]
    for node in ('node2', 'node3'):
        wait_until('the key has come', lambda node=node: authority_key(node) == key, 10)
    wait_until('the master knows', lambda: all(copy['authority'] for copy in copies().values()), 30)
    lab.cli('node', 'modify', 'node3', '--master-candidate', 'no')
    wait_until('it is removed there', lambda: authority_key('node3') is None, 10)
    assert authority_key('node2') == key
    lab.cli('node', 'modify', 'node3', '--master-candidate', 'yes')
    wait_until('it has come again', lambda: authority_key('node3') == key, 20)
    wait_until('and follows', lambda: equal('node1', 'node3'), 10)
    os.unlink(os.path.join(lab.root('node2'), 'etc', 'ca.key'))
    wait_until('it is fetched anew', lambda: authority_key('node2') == key, 40)
    wait_until('the master knows', lambda: all(copy['authority'] for copy in copies().values()), 30)
    secret = key[1].splitlines()[1].encode()
    assert secret not in lab.cli('cluster', 'export').encode()
    for folder in ('log', 'node1/run', 'node2/run', 'node3/run', 'node1/var', 'node2/var', 'node3/var'):
        for path, _, files in os.walk(os.path.join(lab.directory, folder)):
            for one in files:
                where = os.path.join(path, one)
                if os.path.isfile(where):
                    with open(where, 'rb') as file:
                        assert secret not in file.read(), where


@title('/candidates/new-master-invites#SAF-07')
def test_invite():
    test_join.lab = lab
    host = test_join.Host(61)
    try:
        token = test_join.invite(host)
        code, _, err = host.join(token)
        assert code == 0, err
        host.start()
        wait_until('it is a node', lambda: 'host61' in lab.cli('node', 'list'), 20)
        wait_until('it answers', lambda: not lab.json('cluster', 'info')['nodes_pending'], 20)
        assert not os.path.exists(os.path.join(host.root, 'etc', 'ca.key'))
        lab.cli('node', 'remove', 'host61', '--yes')
    finally:
        host.remove()


@title('/candidates/no-failover-from-a-living-master#SAF-07')
def test_refused():
    try:
        for lab.master in ('node1', 'node2'):
            refused('node node1 is the master, and answers; power it off first if it cannot be master any more', UNSAFE)
        e2e.expect_cli_error(lab, WRONG_INPUT, 'fettle: too many arguments; usage: fettle cluster master-failover [--to NODE] [--alone '
                             '--statement TEXT] [--yes]', 'cluster', 'master-failover', 'node2')
    finally:
        lab.master = 'node1'
    e2e.expect_job_error(lab, 'node "node1" is the master, so it is a master candidate; make another node the master first',
                         'OP_NODE_SET_PARAMS', node_name='node1', master_candidate='no')
    e2e.expect_job_error(lab, 'master_candidate: must be yes or no, not "maybe"', 'OP_NODE_SET_PARAMS', node_name='node2',
                         master_candidate='maybe')


def followed(node):
    """Epochs of the masters that the scheduler of a node has followed, in order."""
    with open(os.path.join(lab.root(node), 'log', 'watcher.log'), encoding='utf-8', errors='replace') as file:
        return [int(epoch) for epoch in re.findall(r'the scheduler follows history \d+, epoch (\d+) from serial', file.read())]


@title('/candidates/schedulers-follow')
def test_schedulers():
    """On each candidate at once; deaths of those that they follow by change nothing."""
    epoch = int(store('node1')['epoch'])
    for node in ('node1', 'node2', 'node3'):
        wait_until(f'the scheduler of {node} follows', lambda node=node: followed(node)[-1:] == [epoch], 20)
    before = {node: len(followed(node)) for node in ('node1', 'node2', 'node3')}
    for daemon in ('wconfd@node1', 'noded@node2', 'noded@node1', 'watcher@node3'):
        lab.lab('restart', daemon)
    wait_until('a new process follows anew', lambda: followed('node3')[before['node3']:] == [epoch], 30)
    assert [len(followed(node)) for node in ('node1', 'node2')] == [before['node1'], before['node2']], 'the others have gone on'


@title('/candidates/failover#SAF-06,SAF-07,WCF-01,LUX-10,LUX-11')
def test_failover():
    lab.cli('instance', 'create', 'web1', '--disk-template', 'mirror', '--disk', 'size=8', '--memory', '8', '--os-type',
            'tick', '--pnode', 'node2', '--snode', 'node3')
    uuid = e2e.uuid_of(lab, 'web1')
    running = lab.submit({'OP_ID': 'OP_TEST_DELAY', 'duration': 300})
    wait_until('the job runs', lambda: lab.job_status(running)[0] == 'running')
    queued = lab.submit({'OP_ID': 'OP_TEST_DELAY', 'duration': 0.1, 'depends': [[running, []]]})
    wait_until('the copies have all that', lambda: equal('node1', 'node2', 'node3'), 10)
    old.update(store('node1'))
    lab.lab('power', 'node1', 'off')
    lab.luxi_connection = None
    lab.master = 'node2'
    wait_until('the master is gone', lambda: 'answers' not in lab.run(*FAILOVER, check=False)[2], 20, step=0.5)
    reads_without_master()
    refused('that is not what was to be typed; nothing was done; --yes does not ask', CANCELED, typed='yes\n')
    refused('node "node9" is no master candidate', UNKNOWN_ENTITY, '--to', 'node9')
    refused('wconfd of node node1 does not answer', WRONG_STATE, '--to', 'node1')
    refused('statement: --alone needs one: who says that the silent candidates are gone for good, and why', WRONG_INPUT,
            '--alone')
    refused('statement: goes with --alone only', WRONG_INPUT, '--statement', 'it burns')
    refused(r'statement: must have no control characters, has \n', WRONG_INPUT, '--alone', '--statement', 'it\nburns')
    _, text, asked = lab.run(*FAILOVER, typed=name + '\n')
    assert re.search(r'^node1 +does not answer', text, re.M) and 'is lost, for good' in asked, (text, asked)
    lab.master = re.search(r'^Node (node[23]) becomes the master, with serial \d+\.$', text, re.M).group(1)
    wait_until('it serves', serves, 20)
    assert lab.json('cluster', 'info')['master'] == lab.master
    epoch = int(store(lab.master)['epoch'])
    for node in ('node2', 'node3'):
        wait_until(f'the scheduler of {node} follows the new master', lambda node=node: followed(node)[-1:] == [epoch], 20)
    count = lab.printed('web1', uuid, 'node2')
    e2e.wait_counting(lab, 'web1', uuid, 'node2', above=count)
    assert e2e.running_copies(lab, uuid) == 1
    assert lab.job_status(running)[0] == 'waiting', f'{lab.job_status(running)}: nobody knows yet whether node1 is dead'
    lab.cli('node', 'modify', 'node1', '--offline', 'yes', '--statement', 'test: the power was cut')
    status, result = lab.wait_job(running, 20)
    assert status == 'error' and 'which ended with its master\'s restart or loss' in result[0], (status, result)
    assert lab.wait_job(queued, 20)[0] == 'success'
    assert 'made the master in the place of node node1' in lab.cli('why', lab.master)


def reads_without_master():
    """A candidate's copy can be read, and says of what moment it is; nobody takes that for a master's answer."""
    for node in ('node2', 'node3'):
        document, meta = exported(node), store(node)
        head = {key: str(document[key]) for key in ('history', 'epoch', 'serial')}
        assert head == {key: meta[key] for key in head} and document['store'] == 'follows', (head, meta, document['store'])
        assert head['history'] == old['history'] and head['epoch'] == old['epoch'], (head, old)
        assert int(head['serial']) >= int(old['serial']), (head, old)
        assert [one['name'] for one in document['objects']['instance'].values()] == ['web1'], document['objects']['instance']
        assert 'secret' not in document['objects']
    path = os.path.join(lab.directory, 'of-node2.json')
    said = lab.cli('cluster', 'export', '--to', path)
    assert said == f"The configuration of serial {store('node2')['serial']}, by this host's copy, is in {path}.\n", said
    e2e.expect_cli_error(lab, NOT_MASTER, 'fettle: node2 is not the master; the master is node1', 'node', 'list')
    e2e.expect_cli_error(lab, NOT_MASTER, 'fettle: node2 is not the master; the master is node1', 'cluster', 'flush')


def serves():
    return lab.run('node', 'list', check=False)[0] == 0


def refused(message, code, *flags, typed=None):
    """master-failover must end with this error; with --yes, if nothing is typed."""
    found, _, err = lab.run(*FAILOVER, *flags, *([] if typed else ['--yes']), check=False, typed=typed or '')
    assert found == code and err.endswith('fettle: ' + message + '\n'), (found, err)


@title('/candidates/old-master-returns#SAF-01,SAF-07')
def test_return():
    lab.lab('power', 'node1', 'on')
    aside = os.path.join(lab.root('node1'), 'var', f'store.db.epoch-{old["epoch"]}')
    wait_until('its store is kept aside', lambda: os.path.exists(aside), 30)
    lab.cli('node', 'modify', 'node1', '--offline', 'no')
    wait_until('it follows', lambda: equal('node1', 'node2', 'node3'), 20)
    assert store('node1')['role'] == '1'
    change('three')
    wait_until('it goes on following', lambda: equal('node1', 'node2', 'node3'), 30)
    wait_until('its scheduler does too', lambda: followed('node1')[-1:] == followed(lab.master)[-1:], 30)


@title('/candidates/others-are-gone#SAF-07')
def test_alone():
    others = [node for node in ('node1', 'node2', 'node3') if node != lab.master]
    for node in ('node1', 'node2', 'node3'):
        lab.lab('power', node, 'off')
    lab.lab('power', lab.master, 'on')
    wait_until('it waits for promises', lambda: 'becomes master by itself' in lab.run(*FAILOVER, '--yes', check=False)[2], 30)
    refused('this node has the store of the last master, and becomes master by itself when a majority of the candidates '
            'answers. If those that are silent are gone for good, say so: --alone --statement TEXT', WRONG_STATE)
    e2e.expect_cli_error(lab, TEMPORARY, 'fettle: this node is becoming the master; `fettle cluster master-failover` shows '
                         'what it waits for', 'node', 'list')
    text = lab.run(*FAILOVER, '--alone', '--statement', 'test: both burned', typed=name + '\n')[2]
    assert f'Node {lab.master} has the store of the last master, so nothing is lost' in text, text
    wait_until('it serves', serves, 20)
    assert 'without the candidates that are silent, by a person\'s word: test: both burned' in lab.cli('why', lab.master)
    assert copies() == {}, copies()
    for node in others:
        lab.lab('power', node, 'on')
    for node in others:
        wait_until('its copy is not used any more', lambda node=node: store(node).get('role') == '2', 30)
        lab.cli('node', 'modify', node, '--master-candidate', 'yes')
    wait_until('they follow again', lambda: equal('node1', 'node2', 'node3'), 20)
    e2e.check_logs(lab)


def go_alone(node):
    """By a person's word, on that node; the others that are silent burned."""
    lab.master = node
    wait_until('a person is asked', lambda: 'is not what was to be typed' in lab.run(*FAILOVER, '--alone', '--statement', 'x', typed='no\n',
                                                                                     check=False)[2], 60)
    lab.run(*FAILOVER, '--alone', '--statement', f'test: only {node} is left', typed=name + '\n')
    wait_until('it serves', serves, 40)


@title('/candidates/two-words#SAF-07,SAF-102')
def test_two_words():
    """Two nodes, each the master by a person's word and off the other's list of candidates: the one that comes back hears it from the
    others, who prove it, and ends."""
    first = lab.master
    second, third = (node for node in ('node1', 'node2', 'node3') if node != first)
    for node in (first, second, third):
        lab.lab('power', node, 'off')
    lab.lab('power', first, 'on')
    go_alone(first)
    assert copies() == {}, copies()
    lab.lab('power', first, 'off')
    lab.lab('power', second, 'on')
    go_alone(second)
    assert copies() == {}, copies()
    lab.lab('power', third, 'on')
    lab.lab('power', first, 'on')
    wait_until('the first one is a copy', lambda: store(first).get('role') == '2', 60)
    assert glob.glob(os.path.join(lab.root(first), 'var', 'store.db.epoch-*'))
    for node in (first, third):
        lab.cli('node', 'modify', node, '--master-candidate', 'yes')
    wait_until('they follow again', lambda: equal('node1', 'node2', 'node3'), 40)
    e2e.check_logs(lab)


NOT_MASTER, UNSAFE, WRONG_INPUT, WRONG_STATE, UNKNOWN_ENTITY, TEMPORARY, CANCELED, TIMEOUT = 9, 11, 2, 5, 3, 7, 17, 18
FAILOVER = ('cluster', 'master-failover')


def main():
    global lab, name  # pylint: disable=global-statement
    with e2e.new_lab(options=('--replica-lost-ms', '1000', '--watcher-interval-ms', '500', '--candidates', '3')) as lab:
        name = lab.json('cluster', 'info')['name']
        e2e.run(test_follow, test_end_without_luxid, test_standby, test_cut_off, test_verify, test_flush, test_flush_waits, test_empty, test_damaged, test_confd, test_authority_key, test_refused, test_schedulers, test_failover,
                test_invite, test_return, test_alone, test_two_words)


if __name__ == '__main__':
    main()
