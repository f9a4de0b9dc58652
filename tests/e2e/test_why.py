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


@title('/why/a-dry-run-is-no-deed')
def test_dry():
    ended = job(status='success', ops=[{'dry_run': True}, {'dry_run': True}])
    assert said(ended) == 'Job 17, a dry run, which changes nothing, has succeeded.\n'
    assert said({**ended, 'ops': [{'dry_run': True}, {}]}) == 'Job 17 has succeeded.\n'


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


UNTOLD = 'fettle: which jobs were about node2 is not told: luxid is of a version that cannot tell\n'


def about(name, rows, pause=None, pending=(), newest=100):
    base = {'instance': [], 'decision': [], 'job': [], 'node': [], 'policy': [], 'brake': [], 'waiter': []}
    server = Luxid({**base, **rows}, {'QueryConfigValues': lambda names: [pause],
                                      'QueryClusterInfo': lambda: {'epoch': 5, 'nodes_pending': list(pending), **({'jobs_newest': newest} if newest else {})}})
    code, out, err = server.run('why', name)
    assert (code, err) == (0, '' if newest else UNTOLD), (code, out, err)
    assert newest or 'job' not in [call['args'][0] for call in server.calls if call['method'] == 'Query'], server.calls
    return out


def past(number, at, *ops, **more):
    return {'id': number, 'status': 'success', 'user': 'alice', 'received_ts': [at, 0], 'archived': False, 'epoch': 5,
            'summary': [f'{op["OP_ID"][3:]}(x)' for op in ops], 'ops': list(ops), **more}


@title('/why/job-of-a-master-that-is-over')
def test_over():
    row = job(status='waiting', summary=['TEST_DELAY(1)'], opstatus=['waiting'], opexec=[None], epoch=4)
    server = Luxid({'job': [row], 'waiter': []}, {'QueryClusterInfo': lambda: {'epoch': 5, 'nodes_pending': ['node3']}})
    code, out, err = server.run('why', '17')
    assert (code, err) == (0, ''), (code, out, err)
    check(r'Job 17 is waiting\n'
          r'  is at TEST_DELAY\(1\), since WHEN\n'
          r'  began under a master that is over. It ends by itself, in an error, once every node has heard of this one; to cancel it changes nothing\n'
          r'  waits for node node3 to answer this master\n'
          r'  ends once node node3 answers, or, if it is dead, is marked offline: fettle node modify node3 --offline yes --statement "…"\n', out)
    assert 'waits for no locks' in said({**row, 'epoch': None})
    assert 'Job 17 waits for node3: fettle why 17\n' in about(
        'node3', {'node': [{'name': 'node3', 'mtotal': 1}], 'job': [{**past(17, 50, {'OP_ID': 'OP_TEST_DELAY'}), 'status': 'waiting'}]}, pending=['node3'])


@title('/why/people-beside-decisions')
def test_people():
    web = {'name': 'web1', 'status': 'ADMIN_down', 'pnode': 'node1', 'guest.late': None, 'tags': []}
    decisions = [{'at': 100, 'serial_no': 7, 'subject_name': 'web1', 'state': 'Running', 'verdict': 'done', 'summary': 'It runs as it should.',
                  'evidence': ['its guest runs'], 'policy': '', 'rejected': [], 'repair_id': '', 'jobs': ['12'], 'next_check': ''}]
    jobs = [past(11, 90, {'OP_ID': 'OP_INSTANCE_MIGRATE', 'target_node': 'node2', 'reason': [['fettle:client', 'new disks', 1], ['gnt:opcode:x', '', 2]]}),
            past(12, 95, {'OP_ID': 'OP_INSTANCE_STARTUP'}), past(14, 200, {'OP_ID': 'OP_INSTANCE_SHUTDOWN'}, status='error', user=None)]
    out = about('web1', {'instance': [web], 'decision': decisions, 'job': jobs}, pause=5000)
    check(r'WHEN  Job 14: INSTANCE_SHUTDOWN\(x\): error\n'
          r'    by         an account that is not on record\n'
          r'    more       fettle why 14\n'
          r'WHEN  Running: It runs as it should.\n'
          r'    seen       its guest runs\n'
          r'    job        12\n'
          r'WHEN  Job 11: INSTANCE_MIGRATE\(x\): success\n'
          r'    by         alice\n'
          r'               fettle:client: new disks\n'
          r'               target_node: node2\n'
          r'Now: web1 is ADMIN_down.\n'
          r'The watcher is paused until WHEN: nothing is decided and nothing repaired before. To end that: fettle queue pause-watcher 0\n', out)
    out = about('web1', {'instance': [web], 'job': [past(i, i, {'OP_ID': 'OP_TEST_DELAY'}) for i in range(1, 61)]})
    assert out.count('  Job ') == 50 and "… and 10 older jobs: fettle job list --archived --filter '\"web1\" in subjects'\n" in out, out
    out = about('web1', {'job': jobs[:1]})
    assert out.endswith('Now: there is no instance and no node web1 any more.\n') and 'Job 11' in out, out


@title('/why/who-drained-a-node')
def test_drained():
    node = {'name': 'node2', 'drained': True, 'mtotal': 1}
    jobs = [past(3, 50, {'OP_ID': 'OP_NODE_SET_PARAMS', 'drained': 'yes', 'reason': [['fettle:client', 'new fans', 1]]}),
            past(4, 60, {'OP_ID': 'OP_NODE_SET_PARAMS', 'drained': 'yes'}, status='error', user='bob')]
    check(r'(.*\n)*node2 is drained since WHEN, by job 3 of alice; fettle:client: new fans\n', about('node2', {'node': [node], 'job': jobs}))
    said_so = [past(i, 50 + i, {'OP_ID': 'OP_NODE_SET_PARAMS', 'drained': word}) for i, word in ((2, 'yes'), (3, 'no'), (4, 'yes'), (5, 'yes'))]
    assert 'by job 4 of alice\n' in about('node2', {'node': [node], 'job': said_so})
    assert 'The job that has done it is none of the newest' in about('node2', {'node': [node]})
    # Of a job that does something to several each is told its own.
    both = [past(3, 50, {'OP_ID': 'OP_NODE_SET_PARAMS', 'node_name': 'node2', 'drained': 'yes'}, {'OP_ID': 'OP_NODE_SET_PARAMS', 'node_name': 'node1', 'drained': 'no'})]
    assert (out := about('node2', {'node': [node], 'job': both})).endswith('by job 3 of alice\n') and 'drained: no' not in out, out
    # A dry run has done nothing, and says so.
    dry = [*jobs, past(5, 70, {'OP_ID': 'OP_NODE_SET_PARAMS', 'drained': 'yes', 'dry_run': True}, user='bob')]
    out = about('node2', {'node': [node], 'job': dry})
    check(r'WHEN  Job 5: .*: success\n    by         bob\n               drained: yes \(dry run\)\n(.*\n)*node2 is drained since WHEN, by job 3 of alice; '
          r'fettle:client: new fans\n', out)
    # Of decisions a luxid of the version before tells all the same.
    decision = {'at': 100, 'serial_no': 7, 'subject_name': 'node2', 'state': 'Online', 'verdict': 'done', 'summary': 'It answers.', 'jobs': []}
    out = about('node2', {'node': [node], 'decision': [decision], 'job': jobs}, newest=None)
    assert 'Online: It answers.\n' in out and out.endswith('node2 is drained. Which job has done it is not known here.\n'), out
    assert about('node2', {'node': [{**node, 'drained': False}], 'job': jobs}).endswith('Now: node2 is online and answers.\n')


class Empty(Luxid):
    """Knows the fields of its rows, and finds none."""
    def answer(self, method, args):
        answer = super().answer(method, args)
        return {**answer, 'data': []} if method == 'Query' else answer


@title('/lists/empty-by-a-field-that-nobody-has')
def test_empty():
    fields = ['at', 'subject_name', 'state', 'verdict', 'summary', 'author', 'jobs']
    server = Empty({'job': [{**past(1, 1), 'end_ts': None, 'held': None}], 'decision': [dict.fromkeys(fields)]})
    code, out, err = server.run('job', 'list', '--filter', 'held == "x"')
    assert code == 0 and err == ('fettle: archived jobs were not looked through; --archived does that\n'
                                 'fettle: no job has anything in the field "held"\n'), (code, out, err)
    code, out, err = server.run('decision', 'list', '--filter', 'subject_name == "web1"')
    assert code == 0 and err.endswith('fettle: what people have had done is no decision of the cluster; fettle why NAME tells of both\n'), (code, out, err)


e2e.run(test_running, test_dry, test_canceling, test_node_pending, test_locks, test_texts, test_over, test_people, test_drained, test_empty)
