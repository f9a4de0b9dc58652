#!/usr/bin/env python3
"""The command line as people use it: a terminal (bar, Ctrl-C), a pipe, JSON, completion in shells, manual pages."""
import fcntl
import glob
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import tempfile
import termios

import e2e
from e2e import fettlelib, title, wait_until

lab = None
ESCAPE = '\x1b['


def on_terminal(*args, keys=(), env=None, timeout=60, columns=None):
    """Runs a command on a terminal of its own; `keys`: (text to wait for, bytes to type). Returns (exit code, output)."""
    pid, terminal = pty.fork()
    if pid == 0:
        if columns:
            fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack('HHHH', 24, columns, 0, 0))
        os.environ.update({'TERM': 'xterm', 'COLUMNS': '100', **(env or {})})
        os.execv(lab.fettle, [lab.fettle, '--root', lab.root('node1'), *args])
    output, left, patience = '', list(keys), fettlelib.Patience(timeout)
    while not patience.is_over():
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                data = os.read(terminal, 65536)
            except OSError:
                break
            output += data.decode(errors='replace')
        if left and left[0][0] in output:
            os.write(terminal, left.pop(0)[1])
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), output


@title('/cli/terminal/bar-with-rate-and-time-left')
def test_bar():
    code, out = on_terminal('test', 'delay', '4')
    assert code == 0 and 'Waited for 4 s.' in out, out
    assert re.search(r'wait  \[#+\.+\]   50 %  2 of 4 s  \d(\.\d)? s/s  [12] s left', out), out
    assert out.count(ESCAPE) > 2 and '\r' in out, out


@title('/cli/terminal/live-list-of-jobs')
def test_live():
    ended = lab.submit({'OP_ID': 'OP_TEST_DELAY', 'duration': 0})
    lab.wait_job(ended)
    job = lab.submit({'OP_ID': 'OP_TEST_DELAY', 'duration': 3})
    code, out = on_terminal('job', 'list', '--live', '-o', 'id,status,summary', keys=[('1 under way', b''), ('0 under way', b'\x03')])
    assert code == 0, (code, out)
    assert re.search(r'1 under way, 0 queued, \d+ ended\. Ctrl-C ends this\.', out), out
    assert f'{job}  running' in out.replace('   ', '  ') and out.count('\x1b[A\x1b[K') > 2, out
    # What was shown last stays, without the line below it.
    last = out.split(ESCAPE)[-1].splitlines()
    assert any(line.split()[:2] == [str(job), 'success'] for line in last), out
    assert any(line.split()[:2] == [str(ended), 'success'] for line in last) and 'Ctrl-C' not in last[-1], out
    # Not a terminal that can be drawn on: line by line.
    code, out = on_terminal('job', 'list', '--live', '-o', 'id,status', env={'TERM': 'dumb'}, keys=[(f'{job} ', b'\x03')])
    assert code == 0 and '\x1b' not in out and 'Ctrl-C' not in out, out


@title('/cli/terminal/no-color-no-bar')
def test_no_color():
    code, out = on_terminal('test', 'delay', '2', env={'NO_COLOR': '1'})
    assert code == 0 and ESCAPE not in out and '[#' not in out, out
    assert 'wait: 50 % (1 of 2 s)\r\n' in out, out
    code, out, err = lab.run('test', 'delay', '2')
    assert (out, err) == ('Waited for 2 s.\n', 'wait: 50 % (1 of 2 s)\nwait: 100 % (2 of 2 s)\n'), (out, err)
    assert '\x1b[32mrunning\x1b[0m' in on_terminal('instance', 'list')[1], 'a table on a terminal has colours'
    for text in (on_terminal('instance', 'list', env={'NO_COLOR': '1'})[1], lab.cli('instance', 'list')):
        assert 'running' in text and ESCAPE not in text, text


@title('/cli/terminal/ctrl-c-leaves-the-job')
def test_interrupt():
    code, out = on_terminal('test', 'delay', '6', keys=[('of 6 s', b'\x03')])
    found = re.search(r'fettle: job (\d+) goes on; come back to it with: fettle job watch \1\r\n', out)
    assert code == 130 and found, (code, out)
    job = found.group(1)
    assert lab.job_status(int(job))[0] == 'running'
    code, out, _ = lab.run('job', 'watch', job)
    assert (code, out) == (0, f'Job {job} has succeeded.\n'), out
    assert lab.json('job', 'watch', job)['status'] == 'success'
    assert lab.cli('why', job) == f'Job {job} has succeeded.\n'


@title('/cli/terminal/ctrl-c-leaves-the-jobs-of-a-job')
def test_interrupt_children():
    """A rule keeps the job that an evacuation gives out from its turn; who does not wait is told how to come back."""
    lab.cli('queue', 'filter', 'add', '--opcode', 'OP_INSTANCE_REPLACE_DISKS', 'PAUSE')
    try:
        code, out = on_terminal('node', 'evacuate', 'node3', keys=[('0 of 1 jobs have ended', b'\x03')])
        found = re.search(r'fettle: job (\d+) goes on; come back to it with: fettle job watch \1\r\n', out)
        assert code == 130 and found and '1 job is queued when this one has ended' in out, (code, out)
        lab.cli('job', 'cancel', found.group(1))
    finally:
        lab.cli('queue', 'filter', 'remove', lab.json('queue', 'filter', 'list')[0]['uuid'])


class Waiting:
    """A command that waits for jobs, with its output in files."""

    def __init__(self, *args):
        self.out, self.err = tempfile.TemporaryFile('w+'), tempfile.TemporaryFile('w+')
        self.process = subprocess.Popen([lab.fettle, '--root', lab.root('node1'), *args], stdout=self.out, stderr=self.err)

    def read(self, file):
        return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).decode()

    def wait(self, text, times=1):
        wait_until(f'"{text}" is said', lambda: self.read(self.err).count(text) >= times or self.process.poll() is not None, 40)
        assert self.read(self.err).count(text) >= times, self.read(self.err)

    def ended(self):
        """Returns (exit code, standard output, standard error as lines)."""
        code = self.process.wait(60)
        try:
            return code, self.read(self.out), self.read(self.err).splitlines()
        finally:
            self.out.close()
            self.err.close()


def kill_luxid():
    lab.lab('kill', 'luxid@node1')
    lab.luxi_connection = None


def running_job():
    rows = lab.json('job', 'list', '-o', 'id,status')
    return max(row['id'] for row in rows if row['status'] == 'running')


AWAY = ['luxid does not answer; it is asked again until it does', 'luxid answers again']


@title('/cli/who-waits-for-a-job-waits-on-when-luxid-is-restarted#LUX-16')
def test_restart():
    """The command that submitted the job, and one that watches it, through two restarts; nothing is said twice."""
    submitter = Waiting('test', 'delay', '20')
    submitter.wait('wait: 10 %')
    job = running_job()
    watcher, quiet = Waiting('job', 'watch', str(job)), Waiting('--json', 'job', 'watch', str(job))
    watcher.wait('wait: ')
    for times in (1, 2):
        kill_luxid()
        submitter.wait(AWAY[1], times)
        watcher.wait(AWAY[1], times)
    code, out, err = submitter.ended()
    assert (code, out) == (0, 'Waited for 20 s.\n'), (code, out, err)
    progress = [line for line in err if line not in AWAY]
    assert [line for line in err if line in AWAY] == AWAY * 2, err
    assert len(progress) == len(set(progress)) and progress[-1] == 'wait: 100 % (20 of 20 s)', err
    code, out, err = watcher.ended()
    assert (code, out) == (0, f'Job {job} has succeeded.\n') and err[-1] == progress[-1], (code, out, err)
    assert [line for line in err if line in AWAY] == AWAY * 2 and len(err) - 2 == len(set(err)), err
    code, out, err = quiet.ended()
    assert (code, json.loads(out)['status'], err) == (0, 'success', []), (code, out, err)


@title('/cli/who-waits-for-the-jobs-of-a-job-waits-on-when-luxid-is-restarted#LUX-16')
def test_restart_children():
    lab.cli('queue', 'filter', 'add', '--opcode', 'OP_INSTANCE_REPLACE_DISKS', 'PAUSE')
    try:
        before = {row['id'] for row in lab.json('job', 'list')}
        command, said = Waiting('node', 'evacuate', 'node3'), '1 job is queued when this one has ended'
        command.wait(said)
        child = wait_until('its job is queued', lambda: [row['id'] for row in lab.json('job', 'list', '-o', 'id,status')
                                                         if row['id'] not in before and row['status'] == 'queued'])[0]
        kill_luxid()
        command.wait(AWAY[1])
        lab.cli('job', 'cancel', str(child))
        code, out, err = command.ended()
        assert code == 1 and re.search(rf'^{child} .* canceled', out, re.M), (code, out, err)
        assert err.count(said) == 1 and [line for line in err if line in AWAY] == AWAY, err
        assert err[-1] == 'fettle: 1 of 1 jobs did not succeed; see what each did with: fettle job info ID', err
    finally:
        lab.cli('queue', 'filter', 'remove', lab.json('queue', 'filter', 'list')[0]['uuid'])


@title('/cli/ctrl-c-while-luxid-is-away-names-the-job')
def test_interrupt_away():
    command = Waiting('test', 'delay', '8')
    command.wait('wait: 10 %')
    job = running_job()
    kill_luxid()
    command.wait(AWAY[0])
    command.process.send_signal(signal.SIGINT)
    code, out, err = command.ended()
    assert (code, out) == (130, '') and err[-1] == f'fettle: job {job} goes on; come back to it with: fettle job watch {job}', (code, out, err)
    assert lab.wait_job(job)[0] == 'success'


@title('/cli/why-a-job-failed')
def test_why():
    wanted = [['watcher', 'a whim', 1], ['gnt:user', 'power', 2]]
    job = lab.submit({'OP_ID': 'OP_INSTANCE_STARTUP', 'instance_name': 'nobody', 'reason': wanted})
    lab.wait_job(job)
    said = lab.cli('why', str(job))
    assert said == f'Job {job} has failed: instance "nobody" does not exist\nwatcher wanted it: a whim\n' \
                   'gnt:user wanted it: power\n', said


@title('/cli/why-tells-what-people-have-done')
def test_why_people():
    lab.cli('instance', 'create', 'brief', '--disk-template', 'diskless', '--memory', '16M', '--pnode', 'node3', '--reason', 'a short one')
    lab.cli('instance', 'migrate', 'brief', '--target-node', 'node2', '--reason', 'new fans')
    text = lab.cli('why', 'brief')
    assert re.fullmatch(r'(.*\n)*\S+ \S+  Job \d+: INSTANCE_MIGRATE\(brief\): success\n    by +root\n +fettle:client: new fans\n(.*\n)*'
                        r'\S+ \S+  Job \d+: INSTANCE_CREATE\(brief\): success\n(.*\n)*Now: brief is running\.\n', text), text
    assert 'INSTANCE_MIGRATE(brief): success' in lab.cli('why', 'node2')
    lab.cli('instance', 'shutdown', 'brief', '--timeout', '0')
    lab.cli('instance', 'remove', 'brief', '--yes', '--reason', 'it is over')
    for row in lab.json('job', 'list', '--filter', '"brief" in subjects'):
        lab.cli('job', 'archive', str(row['id']))
    text = lab.cli('why', 'brief')
    assert re.match(r'\S+ \S+  Job \d+: INSTANCE_REMOVE\(brief\): success\n    by +root\n +fettle:client: it is over\n', text), text
    assert text.endswith('Now: there is no instance and no node brief any more.\n') and 'a short one' in text, text
    lab.cli('node', 'modify', 'node3', '--drained', 'yes', '--reason', 'new fans')
    assert re.search(r'^node3 is drained since \S+ \S+, by job \d+ of root; fettle:client: new fans$', lab.cli('why', 'node3'), re.M)
    lab.cli('node', 'modify', 'node3', '--drained', 'no')


def lines_on(columns, *args):
    code, out = on_terminal(*args, columns=columns)
    assert code == 0, (code, out)
    return re.sub('\x1b\\[[0-9;]*m', '', out).replace('\r', '').splitlines()


@title('/cli/terminal/tables-fit-into-80-columns')
def test_width():
    """Folded within their columns where they are too wide; elsewhere than on a terminal a row is a line."""
    lab.cli('instance', 'create', 'application-server-01', '--disk-template', 'mirror', '--disk', 'size=8',
            '--pnode', 'node2', '--snode', 'node3', '--no-start')
    for args in (('instance', 'list'), ('node', 'list'), ('job', 'list'), ('plan', 'drain', 'node2'), ('decision', 'list')):
        lines = lines_on(80, *args)
        assert max(map(len, lines)) <= 80 or args[0] == 'plan' and lines[-1].startswith('To do it'), lines
    assert len(lines_on(80, 'instance', 'list')) == len(lab.cli('instance', 'list').splitlines()), 'what is shown without -o fits'
    more = ('instance', 'list', '-o', 'name,status,pnode,snodes,replica.state,be/memory,machine_type')
    lines = lines_on(80, *more)
    assert 'State' in lines[1] and 'Replica ' in lines[0], lines
    assert any(line.startswith('application-server-01 ADMIN_down') for line in lines), lines
    assert lines_on(80, *more[:3], more[3] + ',disk_template')[-1] == 'No room for: disk_template (-o chooses)'
    wide = lines_on(200, *more)
    assert max(map(len, wide)) > 80 and len(wide) == len(lab.cli(*more).splitlines()), wide
    lab.cli('instance', 'remove', 'application-server-01')


@title('/cli/verify/says-what-a-person-has-stopped')
def test_verify_stopped():
    lab.cli('queue', 'drain')
    lab.cli('queue', 'pause-watcher', '600')
    out = lab.cli('cluster', 'verify')
    assert 'note: the queue is drained: ' in out and 'until: fettle queue undrain\n' in out, out
    assert 'note: the watcher is paused until ' in out and 'fettle queue pause-watcher 0\n' in out, out
    lab.cli('queue', 'undrain')
    lab.cli('queue', 'pause-watcher', '0')
    assert 'note: the ' not in lab.cli('cluster', 'verify')


@title('/cli/terminal/asks-before-data-is-lost')
def test_sure():
    lab.cli('instance', 'create', 'doomed', '--disk-template', 'file', '--disk', 'size=8', '--no-start')
    question = 'Instance doomed and all its disks will be removed, for good. Go on? [y/N] '
    for answer in (b'n\n', b'\n', b'\x04', b'yesterday\n'):
        code, out = on_terminal('instance', 'remove', 'doomed', keys=[('[y/N]', answer)])
        assert code == 17 and question in out and 'fettle: nothing was done; --yes does not ask' in out, (code, out)
    assert lab.instance('doomed', 'name')
    code, out = on_terminal('instance', 'reinstall', 'doomed', keys=[('[y/N]', b'n\n')])
    assert 'What is on the first disk of instance doomed will be lost, for good. Go on? [y/N] ' in out, out
    code, out = on_terminal('instance', 'remove', 'doomed', keys=[('[y/N]', b'y\n')])
    assert code == 0 and 'Instance doomed and its disks are removed.' in out, (code, out)
    lab.cli('instance', 'create', 'doomed', '--disk-template', 'diskless', '--no-start')
    code, out = on_terminal('instance', 'remove', 'doomed', '--yes')
    assert code == 0 and '[y/N]' not in out, (code, out)


@title('/cli/terminal/a-disk-goes-by-the-typed-name')
def test_sure_of_disks():
    lab.cli('instance', 'create', 'doomed', '--disk-template', 'file', '--disk', 'size=8', '--no-start')
    lab.cli('instance', 'modify', 'doomed', '--add-disk', 'size=1', '--add-disk', 'size=2')
    remove = ('instance', 'modify', 'doomed', '--remove-disk', '1', '--remove-disk', '2')
    question = 'Instance doomed loses disks 1, 2 and what is on them, for good. Type the name of the instance to go on: '
    for answer in (b'y\n', b'\n', b'\x04', b'web1\n'):
        code, out = on_terminal(*remove, keys=[('to go on:', answer)])
        assert code == 17 and question in out and 'fettle: that is not what was to be typed; nothing was done' in out, (code, out)
    code, _, err = lab.run(*remove, check=False)
    assert code == 2 and 'Nobody can be asked here: say --yes' in err, (code, err)
    lab.cli(*remove, '--dry-run')
    assert lab.instance('doomed', 'disk.count')['disk.count'] == 3
    code, out = on_terminal(*remove, keys=[('to go on:', b'doomed\n')])
    assert code == 0 and lab.instance('doomed', 'disk.count')['disk.count'] == 1, (code, out)
    lab.cli('instance', 'remove', 'doomed')


@title('/cli/json/every-answer-and-every-error')
def test_json():
    done = lab.json('test', 'delay', '0')
    assert done['status'] == 'success' and done['message'] == 'Waited for 0 s.' and done['job'] > 0, done
    queued = lab.json('test', 'delay', '0', '--submit', '--reason', 'a test', '--depends', str(done['job']))
    assert queued['status'] == 'queued', queued
    assert lab.json('job', 'wait', str(queued['job']))['result'] == [None]
    assert lab.json('cluster', 'verify') == {'message': 'The cluster is as it should be.', 'notes': [], 'problems': []}
    assert lab.json('cluster', 'info')['repair_storm_percent'] == 50
    for args, code, name in ((('instance', 'info', 'nope'), 3, 'unknown_entity'), (('instance', 'lst'), 2, 'wrong_input'),
                             (('instance', 'startup', 'nope'), 3, 'unknown_entity')):
        found, out, err = lab.run(*args, '--json', check=False)
        error = json.loads(err)['error']
        assert (found, out, error['code'], error['exit_code']) == (code, '', name, code), (found, out, err)


@title('/cli/info/what-a-person-reads')
def test_info():
    text = lab.cli('instance', 'info', 'web')
    for pattern in (r'^Instance web$', r'^  State +running, should be up$', r'^  Node +node2 \(group default\)$',
                    r'^  Replica +in-sync on node3, since ', r'^ +0: 8 MiB  raw  ', r'^  See its console: fettle instance console'):
        assert re.search(pattern, text, re.M), (pattern, text)
    lab.cli('node', 'modify', 'node3', '--drained', 'yes')
    text = lab.cli('node', 'info', 'node3')
    assert re.search(r'^  Role +drained$', text, re.M) and 'Empty it: fettle node evacuate node3' in text, text
    assert re.search(r'^node3 +drained ', lab.cli('node', 'list'), re.M)
    lab.cli('node', 'modify', 'node3', '--drained', 'no')


@title('/cli/info-of-instances-without-their-node')
def test_info_offline():
    """What there is to be done depends on where the disks are."""
    for name, template, disks in (('bare', 'diskless', []), ('shared', 'sharedfile', [{'size': 8}]), ('local', 'file', [{'size': 8}])):
        lab.do('OP_INSTANCE_CREATE', instance_name=name, disk_template=template, disks=disks, memory=8, pnode='node3')
    lab.lab('power', 'node3', 'off')
    lab.cli('node', 'modify', 'node3', '--offline', 'yes', '--statement', 'test: the power was cut')
    for name in ('bare', 'shared'):
        text = lab.cli('instance', 'info', name)
        assert f'  Run it on another node: fettle instance failover {name}\n' in text, text
    text = lab.cli('instance', 'info', 'local')
    assert '  Its disks are on node3, which is offline. See: fettle why local\n' in text, text
    for name in ('bare', 'shared'):
        lab.cli('instance', 'failover', name)
        assert 'running, should be up' in lab.cli('instance', 'info', name)
    lab.lab('power', 'node3', 'on')
    lab.cli('node', 'modify', 'node3', '--offline', 'no')
    for name in ('bare', 'shared', 'local'):
        lab.cli('instance', 'remove', name, '--shutdown-timeout', '0')
    lab.cli('instance', 'replace-disks', 'web')
    e2e.wait_healthy(lab, 'web')


def problems(*words):
    """What `node verify` or `cluster verify` finds; its exit code has to say the same."""
    code, out, err = lab.run(*words, '--json', check=False)
    said = json.loads(out or err)
    assert code == (1 if said['problems'] else 0), (code, said)
    return said['problems']


def node_finds(node, *wanted):
    """Waits until `node verify` says just this of a node, and checks that the cluster's says it too."""
    last = []
    def finds():
        last[:] = problems('node', 'verify', node)
        return len(last) == len(wanted) and all(re.fullmatch(pattern, line) for pattern, line in zip(wanted, last))
    try:
        wait_until(f'node verify {node} finds it', finds, 30, step=0.2)
    except TimeoutError as error:
        raise AssertionError(f'node verify {node}: {last}, expected {wanted}') from error
    everything = problems('cluster', 'verify')
    assert set(last) <= set(everything), (last, everything)


@title('/cli/verify/one-node#ARP-70')
def test_verify_node():
    """What the check of the cluster says, as far as it concerns the node; each of its instances is that of two nodes."""
    well = 'Node node2 is as it should be.'
    assert lab.run('node', 'verify', 'node2') == (0, well + '\n', '')
    uuid = lab.query('node', ['uuid'], ['=', 'name', 'node2'])[0]['uuid']
    assert lab.json('node', 'verify', uuid) == {'message': well, 'notes': [], 'problems': []}
    e2e.expect_cli_error(lab, 3, 'fettle: node "node9" does not exist', 'node', 'verify', 'node9')
    e2e.expect_cli_error(lab, 2, 'fettle: an argument is missing; usage: fettle node verify NODE', 'node', 'verify')
    stale = r'instance web: its replica is stale: .+'
    lab.lab('link', 'node3', 'down')
    try:
        node_finds('node3', 'node node3: does not answer', stale)
        code, out, _ = lab.run('node', 'verify', 'node3', check=False)
        assert code == 1 and out.startswith('node node3: does not answer\n') and out.endswith('\n2 things are not as it should be.\n'), out
        node_finds('node2', stale)
        node_finds('node1')
    finally:
        lab.lab('link', 'node3', 'up')
    node_finds('node3', stale)
    lab.cli('instance', 'replace-disks', 'web')
    e2e.wait_healthy(lab, 'web')
    node_finds('node3')
    lab.lab('pause', 'watcher@node1')  # which would start it again
    try:
        os.kill(lab.qemu_processes(e2e.uuid_of(lab, 'web'))[0], signal.SIGKILL)
        node_finds('node2', 'instance web: status is ERROR_down')
        node_finds('node3')
        node_finds('node1')
    finally:
        lab.lab('resume', 'watcher@node1')
    e2e.wait_healthy(lab, 'web')
    assert lab.run('node', 'verify', 'node2') == (0, well + '\n', '')


@title('/cli/verify/a-replica-without-image-is-for-the-check-of-its-instance#ARP-70')
def test_verify_apart():
    row = lab.instance('web', 'uuid', 'replica')
    folder = os.path.join(lab.root('node3'), 'var', 'disks')
    image, kept = os.path.join(folder, f'{row["uuid"]}.{row["replica"]}.disk0.raw'), os.path.join(folder, 'kept')
    assert lab.run('instance', 'verify', 'web')[:2] == (0, 'Instance web is as it should be.\n')
    os.rename(image, kept)
    try:
        found = lab.run('instance', 'verify', 'web', check=False)[:2]
        assert found == (1, 'node3 does not have the images of its replica\nInstance web has 1 problem.\n'), found
        node_finds('node3')
        node_finds('node2')
        assert problems('cluster', 'verify') == []
    finally:
        os.rename(kept, image)
    assert lab.run('instance', 'verify', 'web')[:2] == (0, 'Instance web is as it should be.\n')
    e2e.wait_healthy(lab, 'web')


def in_bash(*words):
    """What bash offers for a command line whose last word is being typed."""
    script = f'. {os.path.join(lab.build, "src/cli/fettle.bash")}; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _fettle; ' \
             'printf "%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(['bash', '-c', script, 'bash', lab.fettle, *words], capture_output=True, text=True, check=True,
                          env={**os.environ, 'FETTLE_ROOT': lab.root('node1')})
    assert not done.stderr, done.stderr
    return done.stdout.split()


@title('/cli/completion/bash')
def test_bash():
    assert in_bash('insta') == ['instance']
    assert in_bash('instance', 'sh') == ['shutdown']
    assert in_bash('instance', 'info', 'w') == ['web']
    assert in_bash('service', 'list', 'w') == ['watcher', 'wconfd']
    assert in_bash('advice', '') == ['list'] and in_bash('advice', 'list', '') == ['node1', 'node2', 'node3']
    assert in_bash('group', 'list', '') == ['default']
    assert in_bash('node', 'verify', '') == ['node1', 'node2', 'node3']
    assert in_bash('instance', 'create', 'x', '--disk-te') == ['--disk-template']
    assert in_bash('instance', 'create', 'x', '--disk-template', 'mi') == ['mirror']
    assert in_bash('instance', 'create', 'x', '--disk-template', '=', 'mi') == ['mirror']
    assert in_bash('instance', 'create', 'x', '--pnode', '') == ['node1', 'node2', 'node3']
    assert in_bash('node', 'modify', 'node2', '--offline', '') == ['yes', 'no']
    assert in_bash('tag', 'add', 'instance', '') == ['web']
    assert in_bash('repair', 'policy', '') == ['cluster', 'nodegroup', 'instance']
    assert in_bash('repair', 'policy', 'instance', '') == ['web']
    assert in_bash('repair', 'policy', 'instance', 'web', 'm') == ['migrate']
    assert in_bash('repair', 'suspend', '--for', '2h', 'nodegroup', '') == ['default']
    assert in_bash('cluster', 'master-failover', '--to', '') == ['node1', 'node2', 'node3']
    assert in_bash('cluster', 'engine', '') == ['status', 'etcd', 'sqlite', 'renew']
    assert in_bash('cluster', 'engine', 'renew', 'node1') == ['node1']
    assert in_bash('plan', 'drain', '') == ['node1', 'node2', 'node3']
    lab.cli('queue', 'filter', 'add', '--opcode', 'OP_INSTANCE_REBOOT', 'PAUSE')
    rule, = lab.query('filter', ['uuid'])
    assert in_bash('queue', 'filter', 'remove', '') == [rule['uuid']]
    lab.cli('queue', 'filter', 'remove', rule['uuid'])


@title('/cli/completion/zsh')
def test_zsh():
    script = f'_describe() {{ print -l "${{(@)found}}"; }}; words=({lab.fettle} instance in); CURRENT=3; ' \
             f'. {os.path.join(lab.build, "src/cli/_fettle")}'
    done = subprocess.run(['zsh', '-f', '-c', script], capture_output=True, text=True, check=True)
    assert done.stdout.startswith('info:Show an instance') and not done.stderr, done


@title('/cli/completion/quiet-and-quick-without-a-cluster')
def test_no_cluster():
    done = subprocess.run([lab.fettle, '--complete', 'instance', 'info', ''], capture_output=True, text=True, check=False,
                          env={**os.environ, 'FETTLE_ROOT': '/var/empty-fettle'})
    assert (done.returncode, done.stdout, done.stderr) == (0, '', ''), done
    lab.lab('pause', 'luxid@node1')
    lab.run('--complete', 'instance', 'info', '', check=False)  # ends although nobody answers it
    lab.lab('resume', 'luxid@node1')


@title('/cli/a-luxid-that-stands-still-is-told-from-one-that-is-slow')
def test_stopped():
    """Each kind of command that is under way when it stops, or begins then: none waits for ever, and each says what to do."""
    follower = Waiting('test', 'delay', '5')
    follower.wait('wait: 20 %')
    lab.lab('pause', 'luxid@node1')
    try:
        asking = [Waiting(*words.split()) for words in ('instance list', 'job list --live', 'event watch', 'queue info')]
        doing = Waiting('test', 'delay', '0')
        why = ('fettle-luxid of this node has answered nothing for 30 s, although it runs: what was asked for may still be done when it goes '
               f"on. It may be stopped or stand still: look at its log below {lab.root('node1')}, and start it anew; in a lab: fettle lab "
               'restart luxid@node1. Guests and jobs that run are not touched by that')
        for command in asking:
            code, out, err = command.ended()
            assert (code, out, err) == (19, '', [f'fettle: {why}']), (code, out, err)
        code, out, err = doing.ended()
        request = err[-1].split('--request-id ')[1].split(':')[0]
        assert (code, out, err) == (20, '', [
            f'fettle: it is not known whether the job was accepted: {why}. Look at `fettle job list`, or say the same again with '
            f'--request-id {request}: that gives one job, not two']), (code, out, err)
        follower.wait(AWAY[0])
    finally:
        lab.lab('resume', 'luxid@node1')
    code, out, err = follower.ended()
    assert (code, out, err[-1]) == (0, 'Waited for 5 s.\n', AWAY[1]) or AWAY[1] in err, (code, out, err)
    again = lab.json('test', 'delay', '0', '--request-id', request)
    assert sum(row['summary'] == ['TEST_DELAY(0)'] and row['id'] == again['job'] for row in lab.json('job', 'list')) == 1, again


@title('/cli/manual/rendered-without-a-warning')
def test_manual():
    pages = glob.glob(os.path.join(lab.build, 'src/cli/man/man*/*'))
    assert {'fettle.1', 'fettle-instance.1', 'fettle-noded.8'} <= {os.path.basename(page) for page in pages}, pages
    for page in pages:
        done = subprocess.run(['groff', '-man', '-ww', '-Tutf8', page], capture_output=True, text=True, check=True)
        assert not done.stderr and len(done.stdout) > 200, (page, done.stderr)


@title('/cli/no-sanitizer-report')
def test_logs():
    e2e.verify_clean(lab)
    e2e.check_logs(lab)


if __name__ == '__main__':
    with e2e.new_lab() as lab:
        lab.leaks = True
        lab.do('OP_INSTANCE_CREATE', instance_name='web', pnode='node2', snode='node3', **e2e.TICK)
        e2e.run(test_bar, test_live, test_no_color, test_interrupt, test_interrupt_children, test_restart, test_restart_children, test_interrupt_away,
                test_why, test_why_people, test_width, test_sure, test_sure_of_disks, test_json, test_info, test_info_offline, test_verify_node, test_verify_stopped, test_verify_apart,
                test_bash, test_zsh, test_stopped, test_no_cluster, test_manual, test_logs)
