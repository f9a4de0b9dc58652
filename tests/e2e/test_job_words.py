#!/usr/bin/env python3
"""Which jobs and objects commands are about: ids, states, filters; what is said of several at once."""
import json

import e2e
from e2e import title
from fake_luxid import Luxid


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
    assert server.filters()[-1] == ['<', 'priority', 0], server.filters()
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


e2e.run(test_filters, test_list, test_several, test_kinds, test_completion)
