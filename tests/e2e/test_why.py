#!/usr/bin/env python3
"""What `fettle why JOB` says of jobs in states that are hard to bring about: a luxid of a few lines answers as it is told."""
import json
import re

import e2e
from e2e import title
from fake_luxid import Luxid
from spoiler import EVIL, SHOWN

WHEN = r'\d{4}-\d\d-\d\d \d\d:\d\d:\d\d'


def job(**more):
    return {'id': 17, 'status': 'running', 'summary': ['TEST_DELAY(1)', 'INSTANCE_CREATE(web1)'], 'ops': [{}, {}], 'held': None, 'held_since': None,
            'held_by': None, 'holds': None, 'opstatus': ['success', 'running'], 'opstart': [[100, 0], [200, 0]], 'opexec': [[100, 0], [300, 0]],
            'cancel': False, 'kill_at': None, 'oplog': [[], []], **more}


def said(row, waiters=(), options=()):
    code, out, err = Luxid({'job': [row], 'waiter': list(waiters)}).run(*options, 'why', '17')
    assert (code, err) == (0, ''), (code, err)
    return out


def check(expected, text):
    assert re.fullmatch(expected.replace('WHEN', WHEN), text), text


@title('/why/running')
def test_running():
    log = [[[1, [100, 0], 'message', 'an old one']], [[2, [310, 0], 'message', 'makes the disk'], [3, [320, 0], 'progress', {
        'what': 'copy to node3', 'done': 3, 'total': 10, 'unit': 'MiB'}]]]
    check(r'Job 17 is running\n'
          r'  is at INSTANCE_CREATE\(web1\), step 2 of 2, since WHEN\n'
          r'  said last, at WHEN: copy to node3: 3 of 10 MiB\n'
          r'  waits for no locks\n'
          r'  to end it: fettle job cancel 17\n', said(job(oplog=log)))
    log[1].pop()
    check(r'(.*\n)+  said last, at WHEN: makes the disk\n(.*\n)+', said(job(oplog=log)))
    told, = json.loads(said(job(oplog=log), options=['--json']))
    assert told['log'] == [2, [310, 0], 'message', 'makes the disk'] and told['cancel'] is False and told['kill_at'] is None, told


@title('/why/canceling')
def test_canceling():
    check(r'Job 17 is running\n'
          r'  is at INSTANCE_CREATE\(web1\), step 2 of 2, since WHEN\n'
          r'  waits for no locks\n'
          r'  has been asked to give up, and does at its next safe point; to end it in any case: fettle job cancel --kill 17\n',
          said(job(cancel=True)))
    check(r'Job 17 is canceling\n(.*\n)+'
          r'  has been asked to give up; if it has not by then, its process is killed at WHEN\n',
          said(job(status='canceling', opstatus=['success', 'canceling'], cancel=True, kill_at=330)))


@title('/why/node-pending')
def test_node_pending():
    waiter = {'job': '17', 'since': 250, 'blockers': [], 'nodes': ['node3']}
    check(r'Job 17 is waiting\n'
          r'  is at TEST_DELAY\(1\), since WHEN\n'
          r'  has waited for locks since WHEN:\n'
          r'  waits for node node3 to answer this master\n'
          r'  goes on once node node3 answers, or, if it is dead, is marked offline: fettle node modify node3 --offline yes --statement "…"\n'
          r'  to end it: fettle job cancel 17\n',
          said(job(status='waiting', summary=['TEST_DELAY(1)'], opstatus=['waiting'], opexec=[None]), [waiter]))


@title('/why/waits-for-locks')
def test_locks():
    waiters = [{'job': '17', 'since': 250, 'nodes': [], 'blockers': [['12', 'instance/x', 'exclusive', False, 240],
                                                                     ['12', 'instance/y', 'exclusive', False, 240],
                                                                     ['14', 'instance/z', 'shared', True, 245],
                                                                     ['watcher', 'node/n', 'shared', False, 200]]},
               {'job': '14', 'since': 245, 'nodes': [], 'blockers': [['11', 'instance/z', 'exclusive', False, 230]]}]
    check(r'Job 17 is waiting\n'
          r'  is at INSTANCE_CREATE\(web1\), step 2 of 2, since WHEN\n'
          r'  has waited for locks since WHEN:\n'
          r'  waits for instance/x, held by job 12 \(exclusive\) since WHEN\n'
          r'  waits for instance/y, held by job 12 \(exclusive\) since WHEN\n'
          r'  waits for instance/z, wanted first by job 14 \(shared\) since WHEN, which\n'
          r'    waits for instance/z, held by job 11 \(exclusive\) since WHEN\n'
          r'  waits for node/n, held by watcher \(shared\) since WHEN\n'
          r'  goes on once job 12 has ended\n'
          r'  what that one is at: fettle why 12; to end it: fettle job cancel 12\n'
          r'  goes on once job 14 has ended, or has had its locks and wants them no more\n'
          r'  what that one is at: fettle why 14; to end it: fettle job cancel 14\n'
          r'  goes on once watcher has let go of it, by itself\n'
          r'  has been asked to give up, and does at its next safe point; to end it in any case: fettle job cancel --kill 17\n',
          said(job(status='waiting', opstatus=['success', 'waiting'], opexec=[[100, 0], None], cancel=True), waiters))


@title('/why/texts-of-others#SAF-108')
def test_texts():
    log = [[[2, [310, 0], 'message', 'says ' + EVIL], [3, [320, 0], 'progress', {'what': EVIL, 'done': 3, 'total': 10, 'unit': 'MiB'}]], []]
    out = said(job(oplog=log, summary=['TEST_DELAY(1)', EVIL]))
    assert EVIL not in out and 'said last, at' in out and out.count(SHOWN) == 2, out
    repair = {'started': 1, 'ended': None, 'type': 'failover', 'state': 'pending', 'jobs': [17], 'id': 'abcd', 'instance': 'web1'}
    server = Luxid({'repair': [repair], 'job': [job(end_ts=None, summary=[EVIL])], 'instance': [],
                    'decision': [{'at': 100, 'state': 'Needs repair', 'summary': EVIL, 'jobs': [17]}]})
    code, out, err = server.run('repair', 'show', 'abcd')
    assert EVIL not in out + err and out.count(SHOWN) == 2, (code, out, err)
    code, out, _ = server.run('--json', 'repair', 'show', 'abcd')
    told = json.loads(out)
    assert code == 0 and told['decisions'][0]['summary'] == EVIL and told['job_details'][0]['summary'] == [EVIL], told
    assert not re.search('[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]', out), out


e2e.run(test_running, test_canceling, test_node_pending, test_locks, test_texts)
