#!/usr/bin/env python3
"""Every command of the command line, by its own description (`fettle help --json`).

A command that becomes a job has the flags of every job, and each does what it says: a dry run checks and changes nothing, a
submitted job is on record with its reason, priority and dependencies. Every other command prints one JSON document, and
refuses those flags instead of passing them over. The reasons of the few exceptions stand in the tables below.
"""
import json
import os
import re
import signal
import stat
import subprocess

import e2e
from e2e import fettlelib, title, wait_until
from spoiler import EVIL, SHOWN, Spoiler

UUID = '11111111-2222-4333-8444-555555555555'
CHECKED = 'Checked only, nothing was changed: it could be done now.'
FLAGS = ('--dry-run', '--priority', '--reason', '--depends')
lab = None
described = {}   # (noun, verb) -> the command's description
blocker = None   # job that runs for long

# Words with which each opcode could be carried out in the lab of main().
OPCODES = {
    ('node', 'add'): ['host8', '--primary-ip', fettlelib.address(8), '--node-uuid', UUID],
    ('node', 'remove'): ['node3'],
    ('node', 'modify'): ['node3', '--drained', 'yes'],
    ('node', 'migrate'): ['node2'],
    ('node', 'evacuate'): ['node2'],
    ('node', 'invite --withdraw'): ['host9'],
    ('node', 'advise'): ['node3', '--author', 'a test'],
    ('network', 'add'): ['lan2', '--network', '192.0.2.16/28'],
    ('network', 'modify'): ['lan', '--gateway', '192.0.2.1'],
    ('network', 'remove'): ['lan'],
    ('backend', 'add'): ['dir2', '--nodes', 'node1,node2', '--path', '/mnt/dir2'],
    ('backend', 'modify'): ['dir1', '--nodes', 'node2'],
    ('backend', 'remove'): ['dir1'],
    ('volume', 'attach'): ['data', 'old'],
    ('volume', 'detach'): ['data'],
    ('instance', 'create'): ['new', '--disk-template', 'file', '--disk', 'size=8'],
    ('instance', 'modify'): ['old', '--vnc-bind-address', '127.0.0.1'],
    ('instance', 'remove'): ['old'],
    ('instance', 'startup'): ['old'],
    ('instance', 'shutdown'): ['web'],
    ('instance', 'reboot'): ['web'],
    ('instance', 'failover'): ['web'],
    ('instance', 'migrate'): ['web'],
    ('instance', 'replace-disks'): ['web'],
    ('instance', 'grow-disk'): ['web', '0', '8'],
    ('instance', 'activate-disks'): ['still'],
    ('instance', 'deactivate-disks'): ['still'],
    ('instance', 'recreate-disks'): ['blank'],
    ('instance', 'reinstall'): ['old'],
    ('instance', 'settle'): ['still'],
    ('recovery', 'reset'): ['instance', 'still', 'stopped'],
    ('instance', 'verify'): ['web'],
    ('tag', 'add'): ['instance', 'web', 'new'],
    ('tag', 'remove'): ['cluster', 'seen'],
    ('test', 'delay'): ['0'],
    ('cluster', 'modify'): ['--job-archive-age-s', '600'],
    ('repair', 'continue'): [],
}
# What a dry run finds in the way here: of what is well nothing is made anew, or released.
IN_THE_WAY = {
    ('instance', 'recreate-disks'): ('unsafe', 'node1 has the disks of instance "blank"; they are not given up (to write an image onto '
                                               'them: fettle instance reinstall blank)'),
    ('recovery', 'reset'): ('wrong_state', 'instance "still": nothing is stuck'),
    ('instance', 'settle'): ('wrong_state', 'instance "still" is neither half made nor half removed; nothing is to be settled'),
    ('backend', 'remove'): ('wrong_state', 'back end dir1 has 1 volume; delete it first'),
    ('volume', 'detach'): ('wrong_state', 'volume data is not attached to anything'),
    ('repair', 'continue'): ('wrong_state', 'auto-repair is not stopped; there is nothing to release'),
}
# Opcodes whose command is not only a job.
SPECIAL = {
    ('cluster', 'init'): 'there is no queue before there is a cluster',
    ('node', 'invite'): 'its token is made of what the job answers',
}
# Commands that make opcodes of their own (tags), with the flags of every job.
MAKERS = {
    ('repair', 'policy'): ['instance', 'web', 'failover'],
    ('repair', 'suspend'): ['instance', 'web'],
    ('repair', 'resume'): ['instance', 'still'],
}
# All others: words with which they print one JSON document.
ANSWERS = {
    ('cluster', 'info'): [], ('cluster', 'verify'): [], ('cluster', 'engine'): ['status'], ('cluster', 'flush'): [], ('cluster', 'keys'): [],
    ('cluster', 'export'): [], ('cluster', 'backup'): ['--to', '{folder}/backup'],
    ('cluster', 'import'): ['{folder}/export', '--dry-run'],
    ('instance', 'list'): [], ('instance', 'info'): ['web'], ('node', 'list'): [], ('node', 'info'): ['node2'],
    ('node', 'verify'): ['node2'],
    ('node', 'invite --list'): [], ('network', 'list'): [], ('network', 'info'): ['lan'],
    ('tag', 'list'): ['cluster'], ('repair', 'list'): [], ('repair', 'history'): ['web'], ('decision', 'list'): [],
    ('event', 'list'): ['--since', '1h'], ('recovery', 'list'): [], ('recovery', 'findings'): [],
    ('reservation', 'list'): [], ('service', 'list'): [], ('group', 'list'): [], ('advice', 'list'): [], ('export', 'list'): [],
    ('brake', 'list'): [], ('metrics', 'list'): [], ('lock', 'list'): [], ('lock', 'waiters'): [], ('query-fields', None): ['instance'],
    ('job', 'list'): [], ('job', 'info'): ['{done}'], ('job', 'watch'): ['{done}'], ('job', 'wait'): ['{done}'],
    ('job', 'change-priority'): ['{blocker}', '1'], ('job', 'autoarchive'): ['1d'], ('job', 'archive'): ['{done}'],
    ('job', 'cancel'): ['{extra}'],
    ('queue', 'info'): [], ('queue', 'filter list'): [], ('queue', 'filter add'): ['--user', 'nobody', 'PAUSE'],
    ('queue', 'filter replace'): ['{filter}', '--user', 'nobody', 'ACCEPT'], ('queue', 'filter remove'): ['{filter}'],
    ('queue', 'pause-watcher'): ['0'], ('queue', 'drain'): [], ('queue', 'undrain'): [],
    ('recovery', 'plan'): [], ('recovery', 'collect'): ['instance', 'web'],
    ('backend', 'list'): [], ('backend', 'verify'): ['dir1'],
    ('volume', 'list'): [], ('worker', 'list'): [], ('storage-service', 'list'): [], ('volume-type', 'list'): [], ('volume-type', 'info'): ['fast'],
    ('volume', 'info'): ['data'], ('snapshot', 'list'): [], ('snapshot', 'info'): ['before'], ('backup', 'list'): [], ('backup', 'info'): ['b1'], ('image', 'list'): [], ('image', 'info'): ['tick'], ('cleanup', None): [], ('storage-service', 'disable'): ['node1@dir1'], ('storage-service', 'enable'): ['node1@dir1'],
    ('why', None): ['web'], ('plan', 'fail'): ['node2'], ('plan', 'drain'): ['node2'], ('help', None): [],
}
# Kinds of rows that another command than `KIND list` shows.
SHOWN_BY = {
    'waiter': ('lock', 'waiters'), 'filter': ('queue', 'filter list'), 'invitation': ('node', 'invite --list'),
    'policy': ('repair', 'policy'), 'task': ('recovery', 'list'), 'fault': ('recovery', 'list'), 'stuck': ('recovery', 'list'),
    'storage_service': ('storage-service', 'list'), 'volume_type': ('volume-type', 'list'),
}
# Commands that are walked elsewhere, or have no document to print.
ELSEWHERE = {
    'api': 'makes files of a front end, and asks them (test_api)',
    'webhook': 'has a receiver, and is about another daemon (test_webhooks)',
    'rapi': 'asks for passwords, and is about another daemon (test_rapid)',
    'lab': 'makes clusters, and has no cluster to ask (test_power, test_demo)',
    'completion': 'prints a script for a shell (test_cli)',
    ('ganeti-root', None): 'lays out a folder, and asks nobody (test_ganeti)',
    ('cluster', 'renew-keys'): 'waits for every node (test_keys)',
    'confd': 'asks without a master, with a key of its own (test_confd)',
    ('instance', 'console'): 'is a terminal (test_console)',
    ('cluster', 'import-ganeti'): 'needs the file of another cluster (test_archive)',
    ('cluster', 'restore'): 'needs a host whose daemons are stopped (test_archive)',
    ('cluster', 'master-failover'): 'changes the master (test_mastership)',
    ('repair', 'show'): 'needs a repair (test_repair)',
    ('event', 'watch'): 'ends with Ctrl-C (test_lists)',
    ('recovery', 'show'): 'needs what is stuck (test_disks)',
    ('volume', 'create'): 'asks fettle-wconfd of the master (test_volumes)',
    ('volume', 'delete'): 'asks fettle-wconfd of the master (test_volumes)',
    ('volume', 'extend'): 'asks fettle-wconfd of the master (test_volumes)',
    ('volume', 'migrate'): 'asks fettle-wconfd of the master (test_volumes)',
    ('volume', 'retype'): 'asks fettle-wconfd of the master (test_volumes)',
    ('volume', 'rename'): 'asks fettle-wconfd of the master (test_volumes)',
    ('volume', 'modify'): 'asks fettle-wconfd of the master (test_volumes)',
    ('volume', 'reset-state'): 'asks fettle-wconfd of the master (test_volumes)',
    ('image', 'save'): 'needs an image with bytes (test_image_streams)',
    ('volume-type', 'create'): 'asks fettle-wconfd of the master (test_volumes)',
    ('volume-type', 'modify'): 'asks fettle-wconfd of the master (test_volumes)',
    ('volume-type', 'delete'): 'asks fettle-wconfd of the master (test_volumes)',
    ('snapshot', 'create'): 'asks fettle-wconfd of the master (test_volumes)',
    ('snapshot', 'delete'): 'asks fettle-wconfd of the master (test_volumes)',
    ('snapshot', 'rename'): 'asks fettle-wconfd of the master (test_volumes)',
    ('snapshot', 'reset-state'): 'asks fettle-wconfd of the master (test_volumes)',
    ('backup', 'create'): 'asks fettle-wconfd of the master (test_backups)',
    ('backup', 'restore'): 'asks fettle-wconfd of the master (test_backups)',
    ('backup', 'delete'): 'asks fettle-wconfd of the master (test_backups)',
    ('backup', 'reset-state'): 'asks fettle-wconfd of the master (test_backups)',
    ('image', 'create'): 'asks fettle-wconfd of the master (test_images)',
    ('image', 'modify'): 'asks fettle-wconfd of the master (test_images)',
    ('image', 'delete'): 'asks fettle-wconfd of the master (test_images)',
    ('image', 'reset-state'): 'asks fettle-wconfd of the master (test_images)',
    ('recovery', 'retry'): 'needs what is stuck (test_recovery_calls)',
}


def describe():
    """The tables, as the program tells them."""
    document = json.loads(lab.cli('help', '--json'))
    for noun in document['nouns']:
        for command in noun['commands']:
            described[noun['noun'], command['verb']] = command
    return document


def words_of(key):
    return [key[0], *(key[1] or '').split()]


def made(words, **more):
    return [word.format(**more) if '{' in word else word for word in words]


def configuration():
    """Everything on record but what happened."""
    objects = lab.json('cluster', 'export')['objects']
    return {kind: rows for kind, rows in objects.items() if kind not in ('job', 'decision', 'counter')}


def assert_same(before):
    after = configuration()
    changed = {kind: (before.get(kind), after.get(kind)) for kind in {*before, *after} if before.get(kind) != after.get(kind)}
    assert not changed, changed


def record(job):
    row, = lab.query('job', ['status', 'ops'], ['=', 'id', job])
    return row


@title('/commands/tables-no-command-lacks-a-flag')
def test_tables():
    document = describe()
    opcodes = {key for key, command in described.items() if 'flags' in command}
    assert opcodes == set(OPCODES) | set(SPECIAL), opcodes ^ (set(OPCODES) | set(SPECIAL))
    for key in opcodes - {('cluster', 'init')}:
        flags = {flag['name'] for flag in described[key]['flags'] if flag['common']}
        assert flags >= set(FLAGS), (key, flags)
    assert not [flag for flag in described['cluster', 'init']['flags'] if flag['common']]
    assert {flag['name'] for flag in document['job_flags']} == {'--submit', '--yes'}, document['job_flags']
    known = set(MAKERS) | set(ANSWERS) | set(ELSEWHERE)
    others = {key for key in described if key not in opcodes and key[0] not in ELSEWHERE}
    assert others == {key for key in known if isinstance(key, tuple)}, others ^ known
    for key in MAKERS:
        assert 'Takes --dry-run, --submit, --priority, --reason and --depends' in described[key]['doc'], key


@title('/commands/help-shows-what-is-taken')
def test_help():
    for key in described:
        text = lab.cli(*words_of(key), '--help')
        has = {flag: f' {flag} ' in text.replace('--[no-]', '--').replace(',', ' ').replace('\n', ' ') for flag in (*FLAGS, '--submit')}
        if key in OPCODES or key in MAKERS:
            assert all(has.values()), (key, has)
        elif key == ('node', 'invite'):
            assert not has.pop('--submit') and all(has.values()), has
        elif key == ('cluster', 'init'):
            assert not any(has.values()), has


@title('/commands/dry-run-of-every-opcode')
def test_dry_run():
    before, wrong = configuration(), []
    for key, words in {**OPCODES, **MAKERS}.items():
        code, out, err = lab.run(*words_of(key), *words, '--dry-run', '--reason', 'only to see', '--priority', 'high', '--json', check=False)
        said = json.loads(out or err)
        if key in IN_THE_WAY:
            error = said['error']
            job = int(re.search(r' \(job (\d+)\)$', error['message']).group(1))
            expected = (code, error['code'], error['message']) == (error['exit_code'], IN_THE_WAY[key][0], f'{IN_THE_WAY[key][1]} (job {job})')
        else:
            job = said.get('job')
            expected = said.get('status') == 'success' and said['message'] == CHECKED
        if not expected:
            wrong.append((key, said))
            continue
        ops = record(job)['ops']
        assert all(op['dry_run'] and op['priority'] == -10 and op['reason'][0][1] == 'only to see' for op in ops), (key, ops)
    assert not wrong, wrong
    said = lab.json('node', 'invite', 'host7', '--primary-ip', fettlelib.address(7), '--dry-run')
    assert said == {'node': 'host7', 'message': CHECKED}, said
    assert_same(before)


@title('/commands/submit-of-every-opcode')
def test_submit():
    jobs, before = {}, configuration()
    for key, words in {**OPCODES, **MAKERS}.items():
        flags = ('--submit', '--depends', f'{blocker}:success+error', '--priority=-3', '--reason', 'later', '--yes', '--json')
        said = json.loads(lab.cli(*words_of(key), *words, *(flag for flag in flags if key not in MAKERS or flag != '--yes')))
        job = said['job']
        assert said == {'job': job, 'status': 'queued',
                        'message': f'Job {job} is submitted; follow it with: fettle job watch {job}'}, (key, said)
        jobs[key] = job
    for key, job in jobs.items():
        row = record(job)
        assert row['status'] == 'queued', (key, row)
        for op in row['ops']:
            assert op['depends'] == [[blocker, ['success', 'error']]] and op['priority'] == -3, (key, op)
            assert op['reason'][0][:2] == ['fettle:client', 'later'] and not op.get('dry_run'), (key, op)
    for job in jobs.values():
        assert lab.json('job', 'cancel', str(job)) == {'job': job, 'status': 'canceled', 'message': f'Job {job} is canceled.'}
    assert_same(before)


BAD = {
    '--priority=99': '--priority: must be at most 19',
    '--priority=soon': '--priority: must be a whole number, not "soon"',
    '--depends=x': '--depends: must be job ids, each with the states that are wanted if it is not success, such as '
                   '12,15:success+error; not "x"',
    '--depends=1:done': '--depends: "done" is no state that a job ends in; it must be success, error, canceled or any',
    '--dry-run=maybe': '--dry-run: must be true or false, not "maybe"',
    '--reason': '--reason: needs a value',
}


@title('/commands/bad-values-of-every-flag')
def test_bad_values():
    # One code reads them: each is given to some of the commands, with FETTLE_LONG=1 to all.
    for number, (key, words) in enumerate({**OPCODES, **MAKERS}.items()):
        for at, (flag, message) in enumerate(BAD.items()):
            if e2e.LONG or (number + at) % 4 == 0:
                e2e.expect_cli_error(lab, 2, f'fettle: {message}', *words_of(key), *words, flag)
    for words, message in (
            (('test', 'delay', '0', '--submit=1'), '--submit: takes no value'),
            (('repair', 'policy', 'instance', 'web', 'failover', '--submit=1'), '--submit: takes no value'),
            (('test', 'delay', '0', '--priority', '1', '--priority', '2'), '--priority: is given twice'),
            (('repair', 'policy', '--dry-run'), 'the flags of every job are for a change of the policy, and none is given; usage: fettle '
             'repair policy [(cluster|nodegroup NAME|instance NAME) [fix-storage|migrate|failover|reinstall|none]]'),
            (('node', 'invite', 'host7', '--primary-ip', fettlelib.address(7), '--submit'),
             '--submit: the token is made of what the job answers, so this command always waits for it'),
            (('cluster', 'init', 'c2', '--node-name', 'n1', '--primary-ip', fettlelib.address(1), '--dry-run'),
             '--dry-run: unknown flag; see "fettle cluster init --help"')):
        e2e.expect_cli_error(lab, 2, f'fettle: {message}', *words)
    e2e.expect_cli_error(lab, 3, 'fettle: --depends: job 999999 does not exist', 'test', 'delay', '0', '--depends', '999999')
    code, out, err = lab.run('test', 'delay', '0', '--priority', '99', '--json', check=False)
    assert (code, out) == (2, '') and json.loads(err) == {
        'error': {'code': 'wrong_input', 'message': '--priority: must be at most 19', 'exit_code': 2}}, (code, out, err)


def answer_of(key, words):
    """What a command answers with --json."""
    text = lab.cli(*words_of(key), *words, '--json')
    try:
        return json.loads(text)
    except ValueError as error:
        raise AssertionError(f'{key}: no JSON: {text[:200]}') from error


@title('/commands/json-of-every-query')
def test_answers():
    export = f'{lab.directory}/export'
    lab.cli('cluster', 'export', '--to', export)
    names = {'folder': lab.directory, 'blocker': str(blocker), 'done': str(lab.do('OP_TEST_DELAY', duration=0)),
             'extra': str(lab.submit({'OP_ID': 'OP_TEST_DELAY', 'duration': 0, 'depends': [[blocker, ['success']]]}))}
    for key, words in ANSWERS.items():
        said = answer_of(key, made(['{folder}/export', '--dry-run'] if key == ('cluster', 'import') else words, **names))
        assert isinstance(said, (dict, list)), (key, said)
        if key == ('queue', 'filter add'):
            names['filter'] = said['uuid']
        if key[1] and key[1].endswith('list') and key != ('tag', 'list'):
            assert isinstance(said, list), (key, said)


# Commands that print what others wrote, whatever the lab is at.
TEXTS = {
    ('why', None): ['still'], ('job', 'info'): ['{done}'], ('job', 'watch'): ['{done}'], ('tag', 'list'): ['cluster'],
    ('instance', 'list'): ['-o', 'name,tags'], ('instance', 'info'): ['web'], ('node', 'list'): ['-o', 'name,tags'],
    ('node', 'invite --list'): [], ('decision', 'list'): [], ('advice', 'list'): [],
    ('queue', 'filter list'): [], ('cluster', 'verify'): [], ('instance', 'startup'): ['web'], ('test', 'delay'): ['0'],
}
# Of which both the forms that people read and that programs read are seen here.
SHOWING = {('why', None), ('job', 'info'), ('tag', 'list'), ('instance', 'list'), ('instance', 'info'), ('node', 'list'), ('decision', 'list'),
           ('advice', 'list'), ('queue', 'filter list'), ('plan', 'fail')}


def texts_of(document):
    if isinstance(document, str):
        yield document
    for item in document.values() if isinstance(document, dict) else document if isinstance(document, list) else ():
        yield from texts_of(item)


CONTROL = re.compile('[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]')


@title('/commands/texts-of-others-move-no-cursor#SAF-108')
def test_texts():
    names = {'folder': lab.directory, 'blocker': str(blocker), 'filter': UUID, 'extra': '999999',
             'done': str(lab.do('OP_TEST_DELAY', duration=0, comment='what somebody says'))}
    lab.cli('queue', 'filter', 'add', '--user', 'nobody', '--reason', 'as somebody says', 'PAUSE')
    lab.cli('tag', 'add', 'instance', 'web', 'somebodys')
    lab.cli('tag', 'add', 'node', 'node2', 'somebodys')
    lab.cli('node', 'advise', 'node3', '--author', 'some body')
    spoiler, showed, exact = Spoiler(lab.root('node1')), set(), set()
    subjects = ['web'], ['node2'], ['cluster'], [names['done']], ['backup', 'b1'], ['image', 'tick']
    for key, words in [*ANSWERS.items(), *TEXTS.items(), *((('why', None), subject) for subject in subjects)]:
        code, out, err = spoiler.run(*words_of(key), *made(words, **names))
        assert not CONTROL.search(out + err) and EVIL not in out + err, (key, out, err)
        if SHOWN in out + err:
            showed.add(key)
        code, out, err = spoiler.run(*words_of(key), *made(words, **names), '--json')
        assert not CONTROL.search(out + err), (key, out, err)
        if any(EVIL in text for text in texts_of(json.loads(out or err))):
            exact.add(key)
    assert showed >= SHOWING and exact >= SHOWING, (showed, exact)
    lab.cli('tag', 'remove', 'instance', 'web', 'somebodys')
    lab.cli('tag', 'remove', 'node', 'node2', 'somebodys')
    lab.cli('node', 'advise', 'node3', '--author', 'some body', '--withdraw')
    for row in lab.json('queue', 'filter', 'list'):
        lab.cli('queue', 'filter', 'remove', row['uuid'])


@title('/commands/every-query-has-its-command')
def test_queries():
    code, _, err = lab.run('query-fields', 'planet', check=False)
    known = re.fullmatch(r'fettle: QueryFields: what: unknown resource "planet"; known are (.*)', err.strip())
    assert code == 2 and known, (code, err)
    kinds = set(known.group(1).split(', '))
    lacking = [kind for kind in kinds if SHOWN_BY.get(kind, (kind, 'list')) not in described]
    assert not lacking, lacking
    lists = {noun for noun, verb in described if verb == 'list'}
    assert lists - {'tag', 'recovery', 'storage-service', 'volume-type', 'metrics', 'webhook'} <= kinds, lists - kinds


def lines(*words):
    return [line.split() for line in lab.cli(*words).splitlines()]


@title('/commands/lists-of-groups')
def test_groups():
    assert lines('group', 'list') == [['Name', 'Nodes', 'Guests', 'Tags'], ['default', '3', '4', '-']]
    found, = lab.json('-o', '+node_list,uuid', 'group', 'list', 'default')
    uuid = found.pop('uuid')
    assert found == {'name': 'default', 'node_cnt': 3, 'pinst_cnt': 4, 'tags': [], 'node_list': ['node1', 'node2', 'node3']}, found
    assert lab.cli('--no-headers', '--separator', ';', '-o', 'name,uuid', 'group', 'list') == f'default;{uuid}\n'
    e2e.expect_cli_error(lab, 3, 'fettle: group "east" does not exist', 'group', 'list', 'default', 'east')
    e2e.expect_cli_error(lab, 2, 'fettle: unknown option --all; usage: fettle group list [--filter FILTER] [--sort FIELD,…] [--limit N] [NAME…]', 'group', 'list', '--all')
    code, _, err = lab.run('-o', 'colour', 'group', 'list', check=False)
    assert code == 2 and err.startswith('fettle: -o: group has no field "colour"; see fettle query-fields group'), (code, err)


@title('/commands/lists-of-advice#ARP-69')
def test_advice():
    assert lab.json('advice', 'list') == []
    for node, author, more in (('node3', 'ops', ['--why', 'new disks']), ('node2', 'ops', ['--until', '4000000000']), ('node3', 'alarm', [])):
        lab.cli('node', 'advise', node, '--author', author, *more)
    said = lines('advice', 'list')
    assert said[0] == ['Node', 'Advice', 'Author', 'Reason', 'Until'], said
    assert [line[:3] for line in said[1:]] == [['node2', 'avoid', 'ops'], ['node3', 'avoid', 'alarm'], ['node3', 'avoid', 'ops']], said
    assert said[2][3:] == ['-', '-'] and said[3][3:] == ['new', 'disks', '-'] and said[1][4].startswith('2096-'), said
    assert lab.json('advice', 'list', 'node2', 'node1') == [
        {'node': 'node2', 'advice': 'avoid', 'author': 'ops', 'reason': '', 'until': 4000000000}]
    assert lab.json('-o', 'author', 'advice', 'list', 'node3') == [{'author': 'alarm'}, {'author': 'ops'}]
    e2e.expect_cli_error(lab, 3, 'fettle: node "node9" does not exist', 'advice', 'list', 'node3', 'node9')
    e2e.expect_cli_error(lab, 2, 'fettle: unknown option --all; usage: fettle advice list [--filter FILTER] [--sort FIELD,…] [--limit N] [NODE…]', 'advice', 'list', '--all')
    for node, author in (('node3', 'ops'), ('node2', 'ops'), ('node3', 'alarm')):
        lab.cli('node', 'advise', node, '--author', author, '--withdraw')
    assert lines('advice', 'list') == said[:1]


@title('/commands/lists-that-are-empty')
def test_empty_lists():
    assert lab.cli('export', 'list').split() == ['Node', 'Export'] and lab.json('export', 'list', 'node1') == []
    e2e.expect_cli_error(lab, 3, 'fettle: node "node9" does not exist', 'export', 'list', 'node9')
    assert lab.cli('brake', 'list').split() == ['Since', 'Nodes', 'Why'] and lab.json('brake', 'list') == []
    e2e.expect_cli_error(lab, 2, 'fettle: too many arguments; usage: fettle brake list [--filter FILTER] [--sort FIELD,…] [--limit N]', 'brake', 'list', 'node1')
    assert lab.json('lock', 'list', 'nobody/holds-it') == []


@title('/commands/other-commands-pass-no-flag-over')
def test_not_passed_over():
    """A dry run of what has none would change something after all."""
    names = {'folder': lab.directory, 'blocker': str(blocker), 'done': '1', 'extra': '1', 'filter': UUID}
    takes = {('cluster', 'import'): ('--dry-run',)}
    before, wrong = configuration(), []
    for key, words in ANSWERS.items():
        for flag in ('--dry-run', '--submit'):
            if key == ('help', None) or flag in takes.get(key, ()):
                continue
            code, out, err = lab.run(*words_of(key), *made(words, **names), flag, check=False)
            line = err.strip().splitlines()[-1] if err.strip() else out
            if code != 2 or flag not in line:
                wrong.append((key, flag, code, line))
    assert not wrong, wrong
    assert_same(before)


# What is done although nobody hears of it, and what is said then.
FULL, CLOSED, GONE = 'No space left on device', 'Bad file descriptor', 'Broken pipe'
CODE = 30


def unheard(out, *words):
    """With a standard output that cannot be written; its exit code and its lines on standard error."""
    if out == CLOSED:
        command = ['sh', '-c', 'exec "$@" >&-', 'sh']
    else:
        command = ['sh', '-c', 'exec "$@" >/dev/full', 'sh']
    done = subprocess.run([*command, lab.fettle, '--root', lab.root('node1'), *words], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          text=True, timeout=120, check=False, env={**os.environ, 'ASAN_OPTIONS': 'detect_leaks=0'})
    return done.returncode, done.stderr.splitlines()


PAIRED = ('queue', 'storage-service')  # one command of them takes back what another does


def lost_names():
    lab.cli('queue', 'filter', 'add', '--user', 'nobody', 'PAUSE')
    return {'folder': lab.directory, 'blocker': str(blocker), 'done': str(lab.do('OP_TEST_DELAY', duration=0)),
            'extra': str(lab.submit({'OP_ID': 'OP_TEST_DELAY', 'duration': 0, 'depends': [[blocker, ['success']]]})),
            'filter': lab.json('queue', 'filter', 'list')[0]['uuid']}


def drop_filters():
    for row in lab.json('queue', 'filter', 'list'):
        lab.cli('queue', 'filter', 'remove', row['uuid'])


@title('/commands/output-that-cannot-be-written')
def test_unwritable():
    """Every command, on a full file system or with a closed descriptor, for people or as JSON (FETTLE_LONG=1: both): a failure, with its sentence."""
    assert stat.S_ISCHR(os.stat('/dev/full').st_mode)
    wrong = []
    for turn, (why, more) in enumerate(((FULL, ()), (CLOSED, ('--json',)))):
        names = lost_names()
        dry = {key: [*words, '--dry-run'] for key, words in {**OPCODES, **MAKERS}.items() if key not in IN_THE_WAY}
        help_of = {key: ['--help'] for key in described if key[0] in ELSEWHERE or key in ELSEWHERE or key in SPECIAL}
        for number, (key, words) in enumerate([*ANSWERS.items(), *(dry if not more else help_of).items()]):
            if key in ANSWERS and key[0] not in PAIRED and number % 2 != turn and not e2e.LONG:
                continue
            words = ['{folder}/export', '--dry-run'] if key == ('cluster', 'import') else words
            code, err = unheard(why, *words_of(key), *made(words, **names), *more)
            message = err[-1] if err else ''
            if more and message.startswith('{'):
                error = json.loads(message)['error']
                message = f'fettle: {error["message"]}' if (error['code'], error['exit_code']) == ('output_lost', CODE) else message
            if code != CODE or not re.fullmatch(rf'fettle: standard output: {why}(\. What is now true: .+)?', message):
                wrong.append((key, more, code, err))
        drop_filters()
        lab.cli('queue', 'undrain')
    assert not wrong, wrong
    assert unheard(FULL, '--json') == (2, ['{"error":{"code":"wrong_input","exit_code":2,"message":"no command is given; see fettle help"}}'])
    for words in ((), ('--help',), ('--version',), ('instance', '--help'), ('lab', 'status', '--dir', lab.directory)):
        assert unheard(FULL, *words) == (CODE, [f'fettle: standard output: {FULL}']), words
    # What has nothing to answer loses nothing.
    code, err = unheard(FULL, 'instance', 'info', 'nope')
    assert (code, err) == (3, ['fettle: instance "nope" does not exist']), (code, err)


def said_of(*words, why=FULL):
    """What is now true, by the one line on standard error that is no log of a job."""
    code, err = unheard(why, *words)
    found = re.fullmatch(rf'fettle: standard output: {why}\. What is now true: (.+)', err[-1])
    assert code == CODE and found, (words, code, err)
    return found.group(1), err[:-1]


@title('/commands/what-was-done-and-could-not-be-said')
def test_unsaid():
    said, _ = said_of('test', 'delay', '0')
    job = re.fullmatch(r'Job (\d+) has succeeded: Waited for 0 s\.', said).group(1)
    assert lab.job_status(int(job))[0] == 'success'
    assert said_of('job', 'watch', job) == (f'Job {job} has succeeded.', [])
    said, _ = said_of('test', 'delay', '0', '--submit', why=CLOSED)
    job = re.fullmatch(r'Job (\d+) is submitted; follow it with: fettle job watch \1', said).group(1)
    assert lab.wait_job(int(job))[0] == 'success'
    said, _ = said_of('repair', 'suspend', 'instance', 'web')
    assert re.fullmatch(r'Job \d+ has succeeded\.', said), said
    lab.cli('repair', 'resume', 'instance', 'web')
    said, _ = said_of('queue', 'filter', 'add', '--user', 'nobody', 'PAUSE')
    assert said == f'Filter {lab.json("queue", "filter", "list")[0]["uuid"]} is in force.', said
    drop_filters()
    jobs = [str(lab.submit({'OP_ID': 'OP_TEST_DELAY', 'duration': 0, 'depends': [[blocker, ['success']]]})) for _ in range(2)]
    assert said_of('job', 'cancel', *jobs) == (f'Job {jobs[0]} is canceled. Job {jobs[1]} is canceled.', [])


@title('/commands/a-token-that-nobody-has-seen')
def test_lost_token():
    for verb, why, more in (('invite', FULL, ()), ('add', CLOSED, ()), ('invite', FULL, ('--json',))):
        words = ('node', verb, 'host7', '--primary-ip', fettlelib.address(7), *more)
        back = 'fettle node invite --withdraw host7'
        sentence = f'standard output: {why}. What is now true: The token of host7 was made and cannot be shown again; take it back with: {back}'
        expected = json.dumps({'error': {'code': 'output_lost', 'exit_code': CODE, 'message': sentence}}, separators=(',', ':'))
        assert unheard(why, *words) == (CODE, [expected if more else f'fettle: {sentence}'])
        assert [row['name'] for row in lab.json('node', 'invite', '--list') if row['name'] == 'host7'] == ['host7']
        lab.cli(*back.split()[1:])


@title('/commands/output-of-a-full-file-system')
def test_full_disk():
    """The answer is larger than the room for it; the shell's `&&` must not take it for whole."""
    place = os.path.join(lab.directory, 'full')
    os.makedirs(place, exist_ok=True)
    script = 'mount -t tmpfs -o size=8k none "$0" && "$@" > "$0/out"; code=$?; umount "$0"; exit $code'
    done = subprocess.run(['unshare', '--mount', 'sh', '-c', script, place, lab.fettle, '--root', lab.root('node1'), 'cluster', 'export'],
                          stderr=subprocess.PIPE, text=True, timeout=120, check=False, env={**os.environ, 'ASAN_OPTIONS': 'detect_leaks=0'})
    assert (done.returncode, done.stderr) == (CODE, f'fettle: standard output: {FULL}\n'), done


@title('/commands/what-follows-ends-with-its-reader')
def test_followers():
    assert unheard(FULL, 'job', 'list', '--live') == (CODE, [f'fettle: standard output: {FULL}'])
    assert unheard(CLOSED, 'job', 'list', '--live') == (CODE, [f'fettle: standard output: {CLOSED}'])
    assert unheard(FULL, 'instance', 'console', 'web') == (CODE, [f'fettle: standard output: {FULL}'])
    # As `| head -1` ends it: silently, whether it has something to say or not.
    with subprocess.Popen([lab.fettle, '--root', lab.root('node1'), 'job', 'list', '--live'], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as live:
        assert live.stdout.readline()
        live.stdout.close()
        lab.do('OP_TEST_DELAY', duration=0)
        assert (live.wait(60), live.stderr.read()) == (-signal.SIGPIPE, b'')


# Commands that do not ask the master, or not luxid: they have to work where it does not.
OTHER_DOORS = {
    ('cluster', 'engine'): 'says how the members of etcd are, also without a master',
    ('cluster', 'flush'): 'waits for the copies of the configuration, of which fettle-wconfd knows',
    ('cluster', 'import'): 'writes what no job may: fettle-wconfd works out what it would do',
    ('cluster', 'export'): 'reads the store of this host, also when no daemon runs',
    ('cluster', 'backup'): 'the same',
    ('cluster', 'keys'): 'prints a table that is the same everywhere',
    ('metrics', 'list'): 'the same',
    ('cleanup', None): 'is one commit of fettle-wconfd, and no job',
    ('storage-service', 'disable'): 'the same',
    ('storage-service', 'enable'): 'the same',
    ('help', None): 'needs no cluster',
}
CONNECT = re.compile(r'connect\(\d+, \{sa_family=(\w+)(?:, sun_path="([^"]*)")?')


def doors(*words):
    """What a command connects to: paths of sockets, or the family of an address."""
    trace = os.path.join(lab.directory, 'trace')
    # The leak checker cannot work beside strace.
    subprocess.run(['strace', '-f', '-qq', '-e', 'trace=connect', '-o', trace, lab.fettle, '--root', lab.root('node1'), *words],
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False,
                   env={**os.environ, 'ASAN_OPTIONS': 'detect_leaks=0'})
    with open(trace, encoding='utf-8') as file:
        found = CONNECT.findall(file.read())
    return {path or family for family, path in found if not path.startswith('/var/run/nscd')}


@title('/commands/reach-the-cluster-through-luxid-only#LUX-15')
def test_doors():
    luxid = os.path.join(lab.root('node1'), 'run', 'luxid.sock')
    names = {'folder': lab.directory, 'blocker': str(blocker), 'done': '1', 'extra': '1', 'filter': UUID}
    wrong = {}
    for key, words in {**OPCODES, **MAKERS, **ANSWERS}.items():
        if key in OTHER_DOORS:
            continue
        more = ('--dry-run',) if key in OPCODES or key in MAKERS else ()
        found = doors(*words_of(key), *made(words, **names), *more)
        if found != {luxid}:
            wrong[key] = found
    assert not wrong, wrong
    for key in (('cluster', 'export'), ('help', None)):
        assert doors(*words_of(key)) == set(), key


@title('/commands/no-sanitizer-report')
def test_logs():
    lab.call('CancelJob', blocker)
    lab.wait_job(blocker)
    e2e.verify_clean(lab)
    e2e.check_logs(lab)


def prepare():
    """What the words of OPCODES speak of."""
    global blocker
    lab.do('OP_INSTANCE_CREATE', instance_name='web', pnode='node2', snode='node1', **e2e.TICK)
    lab.do('OP_INSTANCE_CREATE', instance_name='still', pnode='node2', snode='node1', start=False, **e2e.TICK)
    for name in ('old', 'blank'):
        lab.do('OP_INSTANCE_CREATE', instance_name=name, pnode='node1', start=False, **{**e2e.TICK, 'disk_template': 'file'})
    lab.cli('network', 'add', 'lan', '--network', '192.0.2.0/28')
    os.mkdir(os.path.join(lab.directory, 'shared', 'dir1'))
    # The disk of a lab is small.
    lab.cli('backend', 'add', 'dir1', '--nodes', 'node1', '--path', os.path.join(lab.directory, 'shared', 'dir1'), '--overcommit', '100000', '--backups', 'yes', '--images', 'yes')
    lab.cli('volume', 'create', 'data', '--size', '1')
    lab.cli('volume-type', 'create', 'fast')
    lab.cli('snapshot', 'create', 'before', '--volume', 'data')
    lab.cli('backup', 'create', 'data', '--name', 'b1')
    lab.cli('image', 'create', 'tick', '--volume', 'data')
    lab.cli('tag', 'add', 'cluster', 'seen')
    lab.cli('node', 'invite', 'host9', '--primary-ip', fettlelib.address(9))
    lab.cli('repair', 'suspend', 'instance', 'still')
    blocker = lab.submit({'OP_ID': 'OP_TEST_DELAY', 'duration': 3000})
    wait_until('the long job runs', lambda: lab.job_status(blocker)[0] == 'running')


def main():
    global lab
    with e2e.new_lab() as lab:
        lab.leaks = True
        prepare()
        e2e.run(test_tables, test_help, test_dry_run, test_submit, test_bad_values, test_answers, test_texts, test_queries,
                test_groups, test_advice, test_empty_lists, test_not_passed_over, test_unwritable, test_unsaid, test_lost_token, test_full_disk, test_followers,
                test_doors, test_logs)


if __name__ == '__main__':
    main()
