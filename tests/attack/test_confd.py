#!/usr/bin/env python3
"""ConfD and whoever is on the management network, has seen its datagrams, or was a candidate once: what a captured question gives, what a
forged answer does to who asks, what a flood does, and who has the key.

Forged answers come from an ordinary node, whose address a client was told to ask: a server of our own stands there.
"""
import contextlib
import json
import os
import socket
import stat
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'e2e'))
import bus  # noqa: E402  pylint: disable=wrong-import-position
import e2e  # noqa: E402  pylint: disable=wrong-import-position
import test_confd as confd  # noqa: E402  pylint: disable=wrong-import-position
from e2e import fettlelib, title, wait_until  # noqa: E402  pylint: disable=wrong-import-position

PORT = 1814
ATTACKER = 'node3'

lab = None
key = None  # as whoever was a candidate knows it


def address(node):
    return fettlelib.address(int(node[4:]))


def exchange(datagram, from_node=ATTACKER, to='node1', timeout=60):
    """The reply to a datagram as it is; None: silence."""
    with bus.network_socket(lab, from_node, socket.SOCK_DGRAM) as client:
        client.settimeout(timeout)
        client.sendto(datagram, (address(to), PORT))
        try:
            return client.recv(1 << 16)
        except TimeoutError:
            return None


# --- questions ---

@title('/attack/confd/captured-question')
def test_replay():
    """As long as its time is it gives what it gave, to anybody who sends it, and nothing else; then silence."""
    captured = confd.seal(key, confd.message(1, 'node1', 'seen on the wire'))
    first = exchange(captured, 'node2')
    assert [exchange(captured, node) for node in ('node2', 'node3', 'node1')] == [first] * 3
    assert json.loads(first[4:])['salt'] == 'seen on the wire'  # whoever asks with another salt takes it for no answer
    for seconds in (-301, 301):
        assert exchange(confd.seal(key, confd.message(1, 'node1'), str(int(time.time()) + seconds)), timeout=0.5) is None, seconds
    # Another question under its signature, or its time anew.
    envelope = json.loads(captured[4:])
    for change in ({'msg': envelope['msg'].replace('node1', 'node2')}, {'salt': str(int(envelope['salt']) + 1)}):
        assert exchange(b'plj0' + json.dumps({**envelope, **change}).encode(), timeout=0.5) is None, change


@title('/attack/confd/flood-of-what-is-not-signed')
def test_flood():
    """Nothing of it is answered, and who has the key is answered meanwhile."""
    junk = [confd.seal(b'wrong', confd.message(0, None)), b'plj0' + b'[' * 16000, b'plj0{"msg":"' + b'x' * 15000 + b'","salt":"","hmac":""}',
            b'\0' * 60000, b'plj0' + b'{"a":' * 3000, confd.seal(b'wrong', '[' * 8000)]
    pid = bus.pid_of(lab, 'rconfd')
    done = threading.Event()
    sent, answers = [0], []
    def flood():
        with bus.network_socket(lab, ATTACKER, socket.SOCK_DGRAM) as client:
            client.connect((address('node1'), PORT))
            while not done.is_set():
                client.send(junk[sent[0] % len(junk)])
                sent[0] += 1
            client.settimeout(0.5)
            with contextlib.suppress(TimeoutError):
                answers.append(client.recv(1000))
    thread = threading.Thread(target=flood)
    thread.start()
    try:
        asked = 0
        while thread.is_alive() and (asked < 10 or sent[0] <= 100):
            wait_until('it is answered', lambda: exchange(confd.seal(key, confd.message(0, None)), 'node2', timeout=0.5), 20)
            asked += 1
    finally:
        done.set()
        thread.join()
    assert sent[0] > 100 and not answers and bus.pid_of(lab, 'rconfd') == pid, (sent, answers)


# --- answers ---

@contextlib.contextmanager
def forger(forge):
    """Stands at the attacker's address: sends what forge(salt, the message it was asked) gives, a list of datagrams."""
    server = bus.network_socket(lab, ATTACKER, socket.SOCK_DGRAM)
    server.bind((address(ATTACKER), PORT))
    server.settimeout(0.1)
    done = threading.Event()
    def serve():
        while not done.is_set():
            with contextlib.suppress(TimeoutError):
                asked, whom = server.recvfrom(1 << 16)
                message = json.loads(json.loads(asked[4:])['msg'])
                for datagram in forge(message, whom):
                    server.sendto(datagram, whom)
    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        server.close()


def reply(answer, serial=99, **more):
    return json.dumps({'protocol': 1, 'status': 0, 'answer': answer, 'serial': serial, **more})


def client(*candidates, limit_ms=400):
    """What a person on node2 gets who asks these for the master."""
    asked = ','.join(map(address, candidates))
    code, out, err = confd.in_network('confd', 'master', '--timeout-ms', str(limit_ms), '--candidates', asked, node='node2')
    return code, out, err.replace(f'within {limit_ms} ms', 'in time')


def answered(*candidates):
    """Likewise; has a busy machine not given one of them its time, there is more of it."""
    for limit_ms in (400, 4000, 40000):
        found = client(*candidates, limit_ms=limit_ms)
        if 'no answer' not in found[2]:
            break
    return found


def untrusted(fault):
    return f'{address(ATTACKER)}: an answer that cannot be trusted ({fault})'


@title('/attack/confd/forged-answers')
def test_forged():
    """None of them is taken, whatever it says, and the answer of another candidate counts beside it."""
    old = confd.seal(key, reply('node3'), 'the salt of another question')
    deep = '[' * 5000 + ']' * 5000
    cases = (
        ('hmac', lambda asked: confd.seal(b'wrong', reply('node3'), asked['rsalt'])),
        ('hmac', lambda asked: confd.seal(b'', reply('node3'), asked['rsalt'])),
        ('hmac', lambda asked: b'plj0' + json.dumps({'msg': reply('node3'), 'salt': asked['rsalt'], 'hmac': ''}).encode()),
        ('salt', lambda asked: old),
        ('salt', lambda asked: confd.seal(key, reply('node3'), asked['rsalt'] + ' ')),
        ('salt', lambda asked: confd.seal(key, reply('node3'))),
        ('request', lambda asked: confd.seal(key, reply('node3', protocol=2), asked['rsalt'])),
        ('request', lambda asked: confd.seal(key, reply('node3', status=3), asked['rsalt'])),
        ('request', lambda asked: confd.seal(key, reply('node3', serial=-1), asked['rsalt'])),
        ('request', lambda asked: confd.seal(key, reply('node3', serial='9'), asked['rsalt'])),
        ('request', lambda asked: confd.seal(key, json.dumps(asked), asked['rsalt'])),  # the question itself
        ('request', lambda asked: confd.seal(key, deep, asked['rsalt'])),
        ('form', lambda asked: b'plj0' + deep.encode()),
        ('form', lambda asked: b'plj0' + b'\xff\xfe\0' * 1000),
        ('magic', lambda asked: b'plj1' + confd.seal(key, reply('node3'), asked['rsalt'])[4:]),
        ('magic', lambda asked: b''),
        ('size', lambda asked: confd.seal(key, reply('x' * 62000), asked['rsalt'])),
    )
    for fault, forge in cases:
        with forger(lambda asked, whom, forge=forge: [forge(asked)]):
            code, out, err = answered(ATTACKER)
            assert (code, out, err) == (19, '', f'fettle: no candidate has answered in time: {untrusted(fault)}\n'), (fault, err)
    with forger(lambda asked, whom: [old]):
        code, out, err = answered(ATTACKER, 'node1')
        assert (code, out) == (0, 'node1\n') and untrusted('salt') in err, (code, out, err)


@title('/attack/confd/answer-of-who-was-not-asked')
def test_elsewhere():
    """Signed well, but from another port than the question went to; and silence there."""
    with bus.network_socket(lab, ATTACKER, socket.SOCK_DGRAM) as other:
        def forge(asked, whom):
            other.sendto(confd.seal(key, reply('node3'), asked['rsalt']), whom)
            return []
        with forger(forge):
            code, out, err = client(ATTACKER)
    assert (code, out, err) == (19, '', f'fettle: no candidate has answered in time: {address(ATTACKER)}: no answer\n'), (code, err)


@title('/attack/confd/answer-of-who-has-the-key#SAF-108')
def test_key_holder():
    """Whoever has the key says what it likes, by design; but it moves no cursor, and to ask without it gives nothing."""
    with forger(lambda asked, whom: [confd.seal(key, reply('node3\x1b[2J\n', (1 << 63) - 1), asked['rsalt'])]):
        code, out, _ = answered(ATTACKER, 'node1')
        assert (code, out) == (0, 'node3\\x1b[2J\\n\n'), (code, out)
    with forger(lambda asked, whom: [confd.seal(key, reply('gone\x1b[2J', status=1), asked['rsalt'])]):
        code, out, err = answered(ATTACKER)
        assert code == 2 and '\x1b' not in out + err and 'gone\\x1b[2J' in err, (code, out, err)


# --- the key ---

def key_file(node):
    return os.path.join(lab.root(node), 'var', 'confd.key')


@title('/attack/confd/who-has-the-key#SAF-101')
def test_key():
    """Candidates, for root alone. Who is none any more gives it back, and answers nobody; who was none never had it."""
    assert stat.S_IMODE(os.stat(key_file('node2')).st_mode) == 0o600
    assert not os.path.exists(key_file('node3'))
    lab.cli('node', 'modify', 'node2', '--master-candidate', 'no')
    wait_until('it has no key any more', lambda: not os.path.exists(key_file('node2')), 20)
    assert confd.exchange(confd.seal(key, confd.message(0, None)), 'node2') == 'ConnectionRefusedError'
    lab.cli('node', 'modify', 'node2', '--master-candidate', 'yes')
    wait_until('it has it again', lambda: os.path.exists(key_file('node2')), 60)
    assert confd.key_of('node2') == key == confd.key_of('node1')


@title('/attack/confd/no-sanitizer-report')
def test_logs():
    e2e.check_logs(lab)


if __name__ == '__main__':
    with e2e.new_lab(options=('--replica-lost-ms', '1000', '--watcher-interval-ms', '500', '--candidates', '2')) as lab:
        confd.lab = lab
        wait_until('both candidates have the key', lambda: all(map(os.path.exists, map(key_file, ('node1', 'node2')))), 60)
        key = confd.key_of()
        e2e.run(test_replay, test_flood, test_forged, test_elsewhere, test_key_holder, test_key, test_logs)
