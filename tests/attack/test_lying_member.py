#!/usr/bin/env python3
"""What an ordinary node that was taken over can do with one frame: it announces a mastership of its own, with numbers of its choice.
Nobody believes it, and nothing moves.

The attacker speaks with the node's own certificate, from the node's own network.
"""
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'e2e'))
import bus  # noqa: E402  pylint: disable=wrong-import-position
import e2e  # noqa: E402  pylint: disable=wrong-import-position
import test_join  # noqa: E402  pylint: disable=wrong-import-position
from e2e import title, wait_until  # noqa: E402  pylint: disable=wrong-import-position

ATTACKER = 'node4'
NODES = ('node1', 'node2', 'node3')
LATE = 9007199254740000

lab = None


def announced(node):
    return bus.announced(lab, node)


def identity(node):
    return bus.id_of(lab, node)


def speak(target, method, args, role='wconfd'):
    """The answer of a node to one frame of the attacker's, in the name of the mastership that it lies about."""
    return bus.ask(lab, ATTACKER, target, role, method, args, stamp=args)


def refused(target, **numbers):
    lie = {**announced(target), 'master_node': identity(ATTACKER), **numbers}
    return speak(target, 'announce', lie).get('error')


def state():
    """All that may not move."""
    def of(node):
        told = announced(node)
        return told['history'], told['epoch'], told['master_node']
    return {node: of(node) for node in (*NODES, ATTACKER)}


def same_mastership(change):
    """The same master, of the same epoch, in the same process, before and after it."""
    before = state(), bus.pid_of(lab, 'wconfd', lab.master)
    change()
    e2e.verify_clean(lab)  # which a master answers, and who is in its way is named
    lab.cli('tag', 'add', 'cluster', f'still{len(done)}')
    done.append(change)
    assert (state(), bus.pid_of(lab, 'wconfd', lab.master)) == before


done = []


def lie_to_all():
    told = announced('node2')
    no_candidate = {'code': 'permission_denied', 'message': f'node "{ATTACKER}" is no master candidate; announcements of a mastership are '
                    'taken from candidates only'}
    for target in NODES:
        for numbers in ({'history': told['history'] + 1}, {'epoch': told['epoch'] + 1}, {'serial': told['serial'] + 1000, 'epoch': told['epoch'] + 7}):
            assert refused(target, **numbers) == no_candidate, target
        for field in ('history', 'epoch', 'serial'):
            message = f'{field} {LATE} is beyond any clock; not believed (from {ATTACKER})'
            numbers = {'epoch': told['epoch'] + 1, field: LATE}
            assert refused(target, **numbers) == {'code': 'wrong_input', 'message': message}, target
        # A signature that it cannot make, and one of another's word.
        assert refused(target, epoch=told['epoch'] + 1, signature='bm90IGEgc2lnbmF0dXJl') == no_candidate


def ask_for_promises():
    me = identity(ATTACKER)
    told = announced('node2')
    for target in NODES:
        wish = {'history': told['history'], 'epoch': told['epoch'] + 1, 'since': told['epoch'], 'node': me}
        answer = speak(target, 'promise_epoch', wish)
        assert answer.get('error') == {'code': 'permission_denied', 'message': f'node "{ATTACKER}" is no master candidate; promises are given '
                                       'to candidates only'}, answer
        # What is known there it is told, as any member: so learns who was replaced.
        answer = speak(target, 'promise_epoch', {**wish, 'since': 0})['result']
        assert (answer['granted'], answer['history'], answer['begun']) == (False, told['history'], True), answer


@title('/lying-member/announcements#SAF-102,SAF-103')
def test_announcements():
    same_mastership(lie_to_all)


@title('/lying-member/promises#SAF-102')
def test_promises():
    same_mastership(ask_for_promises)


@title('/lying-member/engine-etcd#SAF-102,SAF-103')
def test_etcd():
    lab.cli('cluster', 'engine', 'etcd', '--yes', timeout=600)
    lab.find_master()
    e2e.verify_clean(lab)
    same_mastership(lie_to_all)


# --- the way back ---

def forget(host, *words):
    return host.run(test_join.NODED, '--root', host.root, '--forget-mastership', *words)


def refuse_master(host):
    """It answers each announcement as of an epoch that is over: its master goes on, and a person is told."""
    before = state(), bus.pid_of(lab, 'wconfd', lab.master)
    host.start()
    lab.cli('cluster', 'modify', '--replica-lost-ms', '1001')  # which all nodes are told
    wait_until('the master counts it as silent', lambda: f'node {host.name} says that a later mastership has begun, and does not prove it: it '
               'counts as silent. If no other node follows that one, let it forget it there: fettle-noded --forget-mastership' in
               e2e.verify(lab)[1], 60)
    assert f'node {host.name}: has not answered this epoch yet' not in e2e.verify(lab)[1]  # it had, before it was misled
    lab.cli('tag', 'add', 'cluster', 'refused')
    assert (state(), bus.pid_of(lab, 'wconfd', lab.master)) == before
    host.stop()


@title('/lying-member/forget#SAF-102,SAF-103')
def test_forget():
    """A node that has taken over what nobody else follows moves nobody by that, and hears its master again after a person's word, and only
    then."""
    host = test_join.Host(53)
    says = ('--statement', 'node4 was taken over; Jo, 12 May')
    file = os.path.join(host.root, 'var', 'node', 'state.json')
    try:
        assert host.join(test_join.invite(host))[0] == 0
        host.start()
        e2e.verify_clean(lab)
        code, out, err = forget(host, *says)
        assert (code, out) == (26, ''), (code, out, err)
        assert err.startswith('fettle-noded: it asks in place of the node daemon, which must not run meanwhile (systemctl stop fettle.target): '
                              'cannot listen on ') and '; free the port, or change ' in err, err
        code, out, err = forget(host)  # what is wrong with the words comes before what is in the way
        assert (code, out) == (2, '') and err.startswith('fettle-noded: statement: must not be empty; '), err
        host.stop()
        code, out, err = forget(host, *says)
        assert code == 5 and ', and this node has seen nothing later: there is nothing to forget' in err, (code, out, err)
        with open(file, encoding='utf-8') as told:
            good = json.load(told)
        history, epoch = good['history'], good['epoch']
        false = {**good, 'history': history + 1000, 'master_node': identity(ATTACKER)}
        del false['check']
        with open(file, 'w', encoding='utf-8') as told:
            json.dump(false, told)
        refuse_master(host)
        # What a person has to say, and what is in the way.
        for words, expected, message in (
                ((), 2, 'statement: must not be empty; who says that what this node has seen is nobody\'s mastership, and why'),
                (('--statement', 'a\x1b[2J'), 2, 'statement: must have no control characters; who says that what this node has seen is '
                 'nobody\'s mastership, and why')):
            assert forget(host, *words) == (expected, '', f'fettle-noded: {message}\n'), words
        code, _, err = host.run(test_join.NODED, '--root', host.root, *says)
        assert (code, err) == (2, 'fettle-noded: --statement and --alone go with --forget-mastership\n'), (code, err)
        guest = os.path.join(host.root, 'var', 'node', 'guests', '11111111-1111-4111-8111-111111111111.json')
        os.makedirs(os.path.dirname(guest), exist_ok=True)
        with open(guest, 'w', encoding='utf-8') as record:
            json.dump({'history': history + 1}, record)
        code, _, err = forget(host, *says)
        assert re.fullmatch(rf'fettle-noded: var/node/guests/\S+ is of history {history + 1}, later than what node node[1-3] follows; nothing '
                            'was changed\n', err), (code, err)
        os.unlink(guest)
        lab.lab('link', 'node3', 'down')
        code, _, err = forget(host, *says)
        assert err.startswith('fettle-noded: silent: node3 (') and err.endswith('so: --alone. Nothing was changed\n'), err
        with open(file, encoding='utf-8') as told:
            assert {key: value for key, value in json.load(told).items() if key != 'check'} == false
        code, out, err = forget(host, *says, '--alone')
        assert code == 0 and re.search(rf'This node had seen history {history + 1000} epoch {epoch}, and follows history {history} epoch '
                                       rf'{epoch} now, as node node[12] does\.', out) and ' Silent: node3 (' in out, (code, out, err)
        lab.lab('link', 'node3', 'up')
        kept = f'{file}.of-{history + 1000}-{epoch}'
        with open(kept, encoding='utf-8') as told:
            assert json.load(told)['history'] == history + 1000
        host.start()
        e2e.verify_clean(lab)
        lab.do('OP_INSTANCE_CREATE', instance_name='there', pnode=host.name, disk_template='diskless', memory=8, start=False)
        lab.do('OP_INSTANCE_REMOVE', instance_name='there')
        lab.cli('node', 'remove', host.name)
    finally:
        host.remove()


@title('/lying-member/no-sanitizer-report')
def test_logs():
    e2e.check_logs(lab)


if __name__ == '__main__':
    with e2e.new_lab(nodes=4, options=('--replica-lost-ms', '1000', '--watcher-interval-ms', '500', '--candidates', '3')) as lab:
        test_join.lab = lab
        e2e.run(test_announcements, test_promises, test_forget, test_etcd, test_logs)
