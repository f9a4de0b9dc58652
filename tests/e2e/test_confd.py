#!/usr/bin/env python3
"""ConfD in a lab: recorded exchanges by an independent client, every other daemon stopped, what is dropped, roles, the
newest of several answers. The client below knows the protocol only from its description, not from our code."""
import hashlib
import hmac
import json
import os
import re
import socket
import sqlite3
import subprocess
import time
import uuid

import bus
import e2e
from e2e import fettlelib, title, wait_until

EXCHANGES = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'confd-exchanges.txt')
INSTANCE = {'disk_template': 'diskless', 'memory': 8, 'start': False}
PATIENT = ('--timeout-ms', '60000')
lab = None


# --- an independent client ---

def sign(key, salt, msg):
    return hmac.new(key, (salt + msg).encode(), hashlib.sha1).hexdigest()


def seal(key, msg, salt=None):
    salt = salt if salt is not None else str(int(time.time()))
    return b'plj0' + json.dumps({'msg': msg, 'salt': salt, 'hmac': sign(key, salt, msg)}).encode()


def exchange(datagram, node='node1', timeout=60):
    """The reply's bytes, 'TimeoutError', or 'ConnectionRefusedError'; asked from within node1's network."""
    with bus.network_socket(lab, 'node1', socket.SOCK_DGRAM) as client:
        client.settimeout(timeout)
        client.connect((fettlelib.address(int(node[4:])), 1814))
        try:
            client.send(datagram)
            return client.recv(65536)
        except (TimeoutError, ConnectionRefusedError) as error:
            return type(error).__name__


def key_of(node='node1'):
    with open(os.path.join(lab.root(node), 'var/confd.key'), 'rb') as file:
        return file.read()


def message(kind, query, rsalt='r-1'):
    return json.dumps({'protocol': 1, 'type': kind, 'query': query, 'rsalt': rsalt})


def ask(kind, query=None, node='node1'):
    rsalt = str(uuid.uuid4())
    reply = exchange(seal(key_of(), message(kind, query, rsalt)), node)
    if isinstance(reply, str):
        return reply
    assert reply[:4] == b'plj0', reply
    envelope = json.loads(reply[4:])
    assert set(envelope) == {'msg', 'salt', 'hmac'}, envelope
    assert envelope['salt'] == rsalt, envelope
    assert envelope['hmac'] == sign(key_of(), envelope['salt'], envelope['msg']), envelope
    return json.loads(envelope['msg'])


def status(node='node1'):
    return json.loads(subprocess.run([lab.fettle, '--root', lab.root(node), 'confd', 'status', '--json'], check=True,
                                     capture_output=True, text=True, stdin=subprocess.DEVNULL).stdout)


def in_network(*words, node='node1'):
    """`fettle WORDS` in node1's network; (code, stdout, stderr)."""
    done = fettlelib.run_command(['nsenter', f'--net=/run/netns/{lab.namespace(node)}', lab.fettle, '--root', lab.root(node), *words], 60)
    return done.returncode, done.stdout, done.stderr


# --- the tests ---

def shape(value):
    """What kind of value it is, down to the keys of objects and the first element of lists."""
    if isinstance(value, dict):
        return {key: shape(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return 'number' if isinstance(value, (int, float)) and not isinstance(value, bool) else type(value).__name__


def fits(ours, recorded):
    """Ours has all that the recorded answer has; more is allowed, lists may be empty."""
    if isinstance(recorded, dict) and isinstance(ours, dict):
        free = not recorded or all(isinstance(v, dict) for v in recorded.values())
        return free or all(key in ours and fits(ours[key], recorded[key]) for key in recorded)
    if isinstance(recorded, list) and isinstance(ours, list):
        return not recorded or not ours or fits(ours[0], recorded[0])
    return ours == recorded


def exchanges():
    with open(EXCHANGES, encoding='utf-8') as file:
        text = file.read()
    for sent, got in re.findall(r'^>>> to \S+ plj0(.*)\n<<< (.*)$', text, re.M):
        yield json.loads(sent)['msg'], got


@title('/confd/replays-recorded-exchanges#RCF-07')
def test_recorded():
    replayed = 0
    for msg, got in exchanges():
        inner = json.loads(msg)
        # The very words that were recorded; names of that cluster stand for those of this one.
        reply = exchange(seal(key_of(), msg), timeout=1 if 'Timeout' in got else 60)
        if 'Timeout' in got:
            if inner['type'] != 0:  # that ping went to a node without ConfD
                assert reply == 'TimeoutError', (msg, reply)
            continue
        recorded = json.loads(json.loads(got[4:])['msg'])
        envelope = json.loads(reply[4:])
        assert list(envelope) == list(json.loads(got[4:])), envelope
        assert envelope['salt'] == inner['rsalt'] == json.loads(got[4:])['salt']
        ours = json.loads(envelope['msg'])
        assert list(ours) == list(recorded), (ours, recorded)
        assert ours['status'] == recorded['status'] and fits(shape(ours), shape(recorded)), (msg, ours, recorded)
        if inner['type'] == 0 or inner['query'] == {'0': ['0']} or recorded['status']:
            assert ours['answer'] == recorded['answer'], (ours, recorded)
        replayed += 1
    assert replayed == 13, replayed


@title('/confd/wrong-key-changed-byte-old-salt-are-silent#RCF-07')
def test_silence():
    answered = status()['answered']
    ask(0)
    wait_until('the status is newer than all that came before', lambda: status()['answered'] > answered, 15)
    before = status()['dropped']
    good = seal(key_of(), message(0, None))
    for bad in (seal(b'wrong', message(0, None)), good[:-20] + (b'1' if good[-20:-19] == b'0' else b'0') + good[-19:],
                seal(key_of(), message(0, None), str(int(time.time()) - 400)),
                seal(key_of(), message(0, None), str(int(time.time()) + 400)),
                b'plj1' + good[4:], good[:-1], b'', b'plj0' + b'[' * 2000, b'x' * 40000, seal(key_of(), '{}')):
        assert exchange(bad, timeout=0.3) == 'TimeoutError', bad[:80]
    def counted():
        now = status()['dropped']
        return {k: now[k] - before[k] for k in now} == {'size': 1, 'magic': 2, 'form': 2, 'hmac': 2, 'salt': 2, 'request': 1}
    wait_until('all of it is counted', counted, 15)
    assert ask(0)['status'] == 0


def pause_all():
    lab.luxi_connection = None
    for node in lab.status()['nodes']:
        for daemon in node['daemons']:
            if daemon['name'] != 'rconfd':
                lab.lab('pause', f'{daemon["name"]}@{node["name"]}')


def resume_all():
    for node in lab.status()['nodes']:
        for daemon in node['daemons']:
            if daemon['name'] != 'rconfd':
                lab.lab('resume', f'{daemon["name"]}@{node["name"]}')


@title('/confd/answers-show-each-change#RCF-03,D-17')
def test_changes():
    serial = ask(8, 'node2')['serial']
    lab.do('OP_INSTANCE_CREATE', instance_name='new', pnode='node2', **INSTANCE)
    answer = ask(8, 'node2')
    assert [i['name'] for i in answer['answer'][0]] == ['new'] and answer['serial'] > serial, answer
    def all_new():
        now = lab.call('QueryClusterInfo')['serial']
        return {ask(kind, query)['serial'] for kind, query in ((0, None), (1, 'node1'), (9, 'new'))} == {now}
    wait_until('all answers are as new as the configuration', all_new, 10)  # the watcher commits too


@title('/confd/all-other-daemons-stopped#RCF-02,RCF-03')
def test_alone():
    questions = ((1, 'node2'), (3, None), (4, None), (5, None), (8, 'node2'), (9, 'new'), (10, 'cluster/cluster_name'))
    before = [ask(*question) for question in questions]
    pause_all()
    try:
        now = [ask(*question) for question in questions]
        assert [one['answer'] for one in now] == [one['answer'] for one in before]  # of a serial that may be newer
        lab.lab('kill', 'rconfd@node1')
        wait_until('it is back', lambda: ask(0) != 'ConnectionRefusedError', 15)
        assert [ask(*question) for question in questions] == now
        code, out, err = in_network('confd', 'master', *PATIENT)
        assert (code, out) == (0, 'node1\n') and err == f'From node1, serial {now[0]["serial"]}.\n', (code, out, err)
    finally:
        resume_all()
    lab.do('OP_TEST_DELAY', duration=0)


@title('/confd/command-says-what-is-wrong')
def test_command():
    def expect(code, line, *words):
        found, out, err = in_network('confd', *words)
        assert (found, err.strip().splitlines()[-1] if err.strip() else '') == (code, line), (words, found, out, err)
    serial = ask(0)['serial']
    code, _, err = in_network('confd', 'node-role', 'nosuch', *PATIENT)
    assert code == 3 and err.endswith('Node name nosuch not found\n') and int(re.search(r'node1 \(serial (\d+)\): ', err).group(1)) >= serial, err
    expect(2, 'fettle: usage: fettle confd node-role NODE', 'node-role')
    expect(2, 'fettle: usage: fettle confd ping', 'ping', 'x')
    expect(2, 'fettle: unknown flag "--x"; usage: fettle confd config PATH', 'config', '--x')
    expect(2, 'fettle: "9" is no field of the master: 0 name, 1 address of the cluster, 2 address of the node',
           'master', '9')
    expect(2, 'fettle: --timeout-ms: "soon" is no number of milliseconds from 1 to 86400000', 'ping', '--timeout-ms', 'soon')
    expect(2, 'fettle: --candidates: "node1" is no IP address, or address and port', 'ping', '--candidates', 'node1')
    expect(19, f'fettle: no candidate has answered within 2000 ms: {fettlelib.address(2)}: nobody answers ConfD there', 'ping',
           '--candidates', fettlelib.address(2))
    wrong = os.path.join(lab.directory, 'wrong.key')
    with open(wrong, 'w', encoding='utf-8') as file:
        file.write('wrong')
    expect(19, f'fettle: no candidate has answered within 400 ms: node1 ({fettlelib.address(1)}): no answer', 'ping', '--key', wrong,
           '--timeout-ms', '400')
    key = os.path.join(lab.root('node2'), 'var/confd.key')
    code, _, err = in_network('confd', 'ping', node='node2')
    assert (code, err) == (3, f'fettle: there is no {key}: only master candidates have the key of ConfD; ask there, or name '
                              'a copy of it with --key\n'), (code, err)
    code, out, _ = in_network('confd', 'config', 'instances/new/beparams', '--json', *PATIENT, '--key',
                              os.path.join(lab.root('node1'), 'var/confd.key'), node='node3')
    found = json.loads(out)
    assert found['answer']['vcpus'] == 1 and found['from'] == 'node1' and found['serial'] >= serial, found
    assert [one['answered'] for one in found['candidates']] == [True], found


def copy_store(to):
    """Gives a node a copy of node1's store."""
    path = os.path.join(lab.root(to), 'var', 'store.db')
    source = sqlite3.connect(os.path.join(lab.root('node1'), 'var', 'store.db'))
    target = sqlite3.connect(path + '.new')
    source.backup(target)
    target.close()
    source.close()
    os.rename(path + '.new', path)


@title('/confd/copy-comes-and-goes')
def test_copy():
    """Only the copy of a node decides, and a node that is no candidate by its own copy has no socket."""
    assert ask(0, node='node2') == 'ConnectionRefusedError'
    assert status('node2')['why'] == 'there is no copy of the configuration here', status('node2')
    copy_store('node2')
    wait_until('the copy is read', lambda: status('node2')['why'] == 'this node is no master candidate', 10)
    assert ask(0, node='node2') == 'ConnectionRefusedError'
    os.unlink(os.path.join(lab.root('node2'), 'var', 'store.db'))
    wait_until('it is gone', lambda: 'no copy' in status('node2')['why'], 10)


@title('/confd/no-sanitizer-report')
def test_logs():
    e2e.check_logs(lab)


if __name__ == '__main__':
    with e2e.new_lab() as lab:
        lab.do('OP_INSTANCE_CREATE', instance_name='instance1', pnode='node1', **INSTANCE)
        wait_until('ConfD answers', lambda: status()['answers'], 15)
        e2e.run(test_recorded, test_silence, test_changes, test_alone, test_command, test_copy, test_logs)
