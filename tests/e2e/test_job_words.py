#!/usr/bin/env python3
"""Which jobs and objects commands are about: ids, states, filters; what is said of several at once."""
import json
import queue
import signal
import time

import e2e
from e2e import title
from fake_luxid import Luxid, Refused


def row(number, status):
    return {'id': number, 'status': status, 'summary': ['TEST_DELAY(1)'], 'received_ts': [1, 0], 'end_ts': None}


def luxid():
    def cancel(job, _kill):
        return [job in (3, 4), 'Job successfully cancelled' if job in (3, 4) else 'Job 5 has ended already' if job == 5 else f'Job {job} not found in queue']

    return Luxid({'job': [row(3, 'queued'), row(4, 'running'), row(5, 'success')],
                  'instance': [{'name': 'web1', 'pnode': 'node1'}], 'waiter': []},
                 {'CancelJob': cancel, 'ChangeJobPriority': cancel, 'ArchiveJob': lambda job: job == 5})


def check(server, code, out, err, *args):
    assert server.run(*args) == (code, out, err), server.run(*args)


@title('/job-words/filters-of-lists')
def test_filters():
    server = luxid()
    code, _, err = server.run('-o', 'name,pnode', 'instance', 'list', '--filter', 'pnode == "node1" and not tags', 'web1')
    assert (code, err) == (0, '') and server.filters()[0] == [
        '&', ['|', ['=', 'name', 'web1']], ['&', ['==', 'pnode', 'node1'], ['!', ['?', 'tags']]]], (err, server.filters())
    server.run('instance', 'list', '-o', 'name', '--filter', '["?", "tags"]')
    assert server.filters()[-1] == ['?', 'tags'], server.filters()
    server.run('lock', 'waiters', '--filter', 'priority < 0')
    assert ['<', 'priority', 0] in server.filters(), server.filters()
    check(server, 2, '', 'fettle: --filter: expected a text in quotes, a number, true or false at: node1; as in: status == "running" and not '
          'tags\n', 'instance', 'list', '--filter', 'pnode == node1')
    check(server, 2, '', 'fettle: --filter needs a value\n', 'instance', 'list', '--filter')


@title('/job-words/list')
def test_list():
    server = luxid()
    code, out, err = server.run('job', 'list', '--no-headers', '-o', 'id,status', '3', '5', '--status', 'pending,error', '--filter', 'id > 2')
    assert (code, out, err) == (0, '3 queued\n4 running\n5 success\n', ''), (code, out, err)
    assert server.filters()[0] == ['&', ['&', ['>', 'id', 2], ['|', ['=', 'status', 'queued'], ['=', 'status', 'waiting'], ['=', 'status', 'error']]],
                                   ['|', ['=', 'id', 3], ['=', 'id', 5]]], server.filters()
    check(server, 3, '', 'fettle: job 9 does not exist\n', 'job', 'list', '3', '9')
    check(server, 2, '', 'fettle: "x" is no job id\n', 'job', 'list', 'x')
    check(server, 2, '', 'fettle: --status: "over" is no state of jobs: queued, waiting, canceling, running, canceled, success, error, pending '
          '(queued or waiting), ended (canceled, success or error)\n', 'job', 'list', '--status', 'over')
    check(server, 2, '', 'fettle: job list: --live follows all jobs: leave out ids, --status, --filter, --sort and --limit\n', 'job', 'list', '--live', '3')


@title('/job-words/several')
def test_several():
    server = luxid()
    check(server, 0, 'Job 4 is asked to give up. How it ends: fettle job watch 4\n', '', 'job', 'cancel', '4')
    # Each by itself, as far as it goes; the exit code is that of the first that did not.
    check(server, 5, 'Job 4 is asked to give up. How it ends: fettle job watch 4\n',
          'fettle: Job 5 has ended already\nfettle: job 9 does not exist\n', 'job', 'cancel', '5', '4', '9')
    check(server, 3, '', 'fettle: job 9 does not exist\n', 'job', 'change-priority', '9', 'low')
    check(server, 3, '', 'fettle: job 9 does not exist\n', 'job', 'cancel', '9')
    check(server, 0, 'Job 3 has priority -5 now.\nJob 4 has priority -5 now.\n', '', 'job', 'change-priority', '3', '4', '-5')
    check(server, 5, 'Job 5 is archived.\n', 'fettle: job 4 is running: only a job that has ended can be archived\n', 'job', 'archive', '5', '4')
    code, out, err = server.run('--json', 'job', 'cancel', '4', '5')
    assert (code, err) == (5, '') and json.loads(out) == [
        {'job': 4, 'status': 'running', 'message': 'Job 4 is asked to give up. How it ends: fettle job watch 4'},
        {'job': 5, 'error': {'code': 'wrong_state', 'message': 'Job 5 has ended already', 'exit_code': 5}}], (code, out, err)
    code, out, _ = server.run('--json', 'job', 'archive', '5')
    assert code == 0 and json.loads(out) == {'job': 5, 'archived': True, 'message': 'Job 5 is archived.'}, out


@title('/job-words/asked-already')
def test_asked():
    server = luxid()
    server.rows['job'][1].update(cancel=True)
    already = 'Job 4 has been asked already to give up. How it ends: fettle job watch 4\n'
    asked = 'Job 4 is asked to give up. How it ends: fettle job watch 4\n'
    check(server, 0, already, '', 'job', 'cancel', '4')
    check(server, 0, asked, '', 'job', 'cancel', '--kill', '4')
    server.rows['job'][1].update(kill_at=1000)
    check(server, 0, already, '', 'job', 'cancel', '--kill', '4')


@title('/job-words/kinds')
def test_kinds():
    server = luxid()
    server.rows['job'].pop()
    check(server, 2, '', 'fettle: Jobs 3, 4 will be canceled. Nobody can be asked here: say --yes\n', 'job', 'cancel', '--pending')
    assert [call['method'] for call in server.calls] == ['Query'], server.calls
    assert server.filters()[0] == ['|', ['=', 'status', 'queued'], ['=', 'status', 'waiting']], server.filters()
    code, out, err = server.run('job', 'change-priority', '--running', '--queued', '--yes', 'high')
    assert (code, out, err) == (0, 'Job 3 has priority -10 now.\nJob 4 has priority -10 now.\n', ''), (code, out, err)
    assert server.filters()[-1] == ['|', ['=', 'status', 'queued'], ['=', 'status', 'running']], server.filters()
    server.rows['job'] = []
    check(server, 0, 'There is no such job.\n', '', 'job', 'cancel', '--waiting')
    code, _, err = server.run('job', 'cancel', '--waiting', '3')
    assert code == 2 and err.startswith('fettle: too many arguments; usage: fettle job cancel '), err


@title('/job-words/completion')
def test_completion():
    server = luxid()
    def offered(*words):
        code, out, _ = server.run('--complete', *words)
        assert code == 0
        return {line.split('\t')[0] for line in out.splitlines()}

    assert {'--kill', '--queued', '--waiting', '--pending', '--running', '--yes'} <= offered('job', 'cancel', '-')
    assert {'--status', '--filter', '--archived', '--live'} <= offered('job', 'list', '-')
    assert '--filter' in offered('instance', 'list', '-')
    assert offered('job', 'cancel', '3', '') == {'3', '4', '5'}, offered('job', 'cancel', '3', '')
    assert {'low', 'normal', 'high'} <= offered('job', 'change-priority', '3', ''), offered('job', 'change-priority', '3', '')
    assert {'queued', 'ended'} <= offered('job', 'list', '--status', '')


def row_of_job(number):
    return ['success', [f'INSTANCE_SHUTDOWN(x{number})'], [None], [[]]]


def submitting(submit):
    """A luxid whose jobs are all well; `submit` gets the opcode of each."""
    return Luxid({'instance': [{'name': name} for name in ('web1', 'web2', 'web3')]},
                 {'SubmitJob': lambda ops: submit(ops[0]), 'QueryJobs': lambda ids, _fields: [row_of_job(number) for number in ids]})


def submitted(server, member):
    return [call['args'][0][0][member] for call in server.calls if call['method'] == 'SubmitJob']


@title('/job-words/several-objects')
def test_objects():
    server = submitting(lambda op: int(op['instance_name'][3:]))
    first = ('instance', 'shutdown', 'web1', 'web2', '--request-id', 'tonight')
    assert server.run(*first)[0] == 0 and server.run('instance', 'shutdown', 'web*', '--request-id', 'tonight')[0] == 0
    # The same for each the next time, whatever matches then.
    assert submitted(server, 'request_id') == [f'tonight.web{i}' for i in (1, 2, 1, 2, 3)], server.calls
    asked = len(server.calls)
    check(server, 2, '', f'fettle: --request-id: must have at most 128 characters with the name of each behind it, has 129: {"x" * 120}.web10000\n',
          'instance', 'shutdown', 'web1', 'web10000', '--request-id', 'x' * 120)
    check(server, 2, '', 'fettle: --statement is a word about one instance: say it of each by itself\n',
          'instance', 'startup', 'web1', 'web2', '--from-primary', '--statement', 'x')
    check(server, 2, '', 'fettle: --offline is a word about one node: say it of each by itself\n',
          'node', 'modify', 'node1', 'node2', '--offline', 'yes', '--statement', 'x')
    assert len(server.calls) == asked, server.calls


@title('/job-words/several-objects/refused')
def test_refused():
    """The exit code is that of the worst, also of what luxid has refused."""
    server = submitting(lambda op: 7 if op['instance_name'] == 'web2' else Refused('resource_not_available', 'the queue is full'))
    code, out, err = server.run('--json', 'instance', 'shutdown', 'web1', 'web2')
    jobs = json.loads(out)['jobs']
    assert code == 7 and [(one['job'], one['status'], one['code']) for one in jobs] == [
        (7, 'success', ''), (None, 'refused', 'resource_not_available')], (code, out, err)
    assert jobs[1]['error'] == 'web1: the queue is full', jobs
    check(server, 7, '', 'fettle: 1 of 2 jobs are submitted (7); web1: the queue is full\n', 'instance', 'shutdown', 'web1', 'web2', '--submit')


def pending(pid):
    """Whether Ctrl-C has not been taken yet."""
    with open(f'/proc/{pid}/status', encoding='ascii') as file:
        masks = dict(line.split(':', 1) for line in file)
    return int(masks['ShdPnd'], 16) >> signal.SIGINT - 1 & 1


@title('/job-words/several-objects/ctrl-c')
def test_interrupt():
    """While luxid takes the first one, so the others are left out."""
    processes = queue.Queue()

    def submit(_op):
        process = processes.get()
        process.send_signal(signal.SIGINT)
        while pending(process.pid):
            time.sleep(0.01)
        return 7

    server = submitting(submit)
    for words, expected in (
            (['--submit'], (17, 'fettle: 1 of 3 jobs are submitted (7); web2: left out by Ctrl-C\n')),
            ([], (130, 'fettle: job 7 goes on; come back to it with: fettle job watch 7; 2 of 3 are not submitted: web2: left out by Ctrl-C, …\n'))):
        server.calls.clear()
        process = server.start('instance', 'shutdown', '*', *words)
        processes.put(process)
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out, err) == (expected[0], '', 'instance shutdown: web1, web2, web3\n' + expected[1]), (process.returncode, out, err)
        assert submitted(server, 'instance_name') == ['web1'], server.calls


e2e.run(test_filters, test_list, test_several, test_asked, test_kinds, test_completion, test_objects, test_refused, test_interrupt)
