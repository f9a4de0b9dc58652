#!/usr/bin/env python3
"""`fettle instance console` as people use it: on a terminal and through a pipe, while the guest moves and the host fails."""
import os
import pty
import re
import select
import signal
import subprocess
import termios

import e2e
from e2e import fettlelib, title, wait_until

lab = None
LEAVE = b'\x1dq'


class Terminal:
    """The command on a terminal of its own; the terminal stays open when it ends, so that one can look at it."""

    def __init__(self, *args, out=None):
        self.master, self.slave = pty.openpty()
        self.before = termios.tcgetattr(self.slave)
        self.output, self.old = b'', 0
        self.process = subprocess.Popen([lab.fettle, '--root', lab.root('node1'), *args], stdin=self.slave,
                                        stdout=out or self.slave, stderr=self.slave, start_new_session=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.master)
        os.close(self.slave)

    def read(self, seconds=0.05):
        while select.select([self.master], [], [], seconds)[0]:
            self.output += os.read(self.master, 65536)
            seconds = 0
        return self.output

    def wait_for(self, pattern, timeout=60):
        return wait_until(f'{pattern} on the terminal', lambda: re.search(pattern, self.read()), timeout, step=0)

    def type(self, data):
        os.write(self.master, data)

    def is_raw(self):
        return not termios.tcgetattr(self.slave)[3] & (termios.ICANON | termios.ECHO | termios.ISIG)

    def end(self, timeout=20):
        """Waits for the end; returns the exit status. The terminal must be as it was."""
        wait_until('the console ends', lambda: self.read() is not None and self.process.poll() is not None, timeout)
        self.read()
        assert termios.tcgetattr(self.slave) == self.before, 'the terminal was not given back as it was'
        return self.process.returncode

    def counts(self):
        return [int(number) for number in fettlelib.COUNT.findall(self.read())]


def console(name='web', **more):
    terminal = Terminal('instance', 'console', name, **more)
    terminal.wait_for(rb'COUNT \d+\r\n')
    terminal.old = len(terminal.counts()) - 1
    assert terminal.is_raw()
    return terminal


def place(name='web'):
    return lab.instance(name, 'pnode')['pnode']


def check_unbroken(terminal, above):
    """Nothing lost, nothing twice, from what it began with up to a count that was printed after all that happened."""
    wait_until(f'a count above {above}', lambda: terminal.counts()[-1] > above, 60)
    counts = terminal.counts()[terminal.old:]
    assert counts == list(range(counts[0], counts[-1] + 1)), counts


@title('/console/follows-a-live-migration')
def test_migration():
    with console() as terminal:
        for _ in range(2):
            old = place()
            lab.cli('instance', 'migrate', 'web')
            terminal.wait_for(f'web has moved from {old} to {place()}'.encode())
            check_unbroken(terminal, lab.printed('web', e2e.uuid_of(lab, 'web'), place()))
            terminal.type(b'!')
            terminal.wait_for(rb'!')
            e2e.wait_healthy(lab, 'web')
        notes = re.findall(rb'\r\n\[(.*)\]\r\n', terminal.read())
        assert notes == [b'web has moved from node2 to node3', b'web has moved from node3 to node2'], notes
        terminal.type(LEAVE)
        assert terminal.end() == 0
        assert terminal.output.endswith(b'The console of web was left; the guest goes on.\r\n'), terminal.output


@title('/console/keys-are-the-guests')
def test_keys():
    """Ctrl-C, Ctrl-Z and Ctrl-\\ too; Ctrl-] twice is one; the guest echoes what it gets."""
    with console() as terminal:
        assert b'Console of web. Leave it with Ctrl-] and then q.\r\n' in terminal.output, terminal.output
        for typed, echoed in ((b'\x03', b'\x03'), (b'\x1a', b'\x1a'), (b'\x1c', b'\x1c'), (b'\x1d\x1d', b'\x1d'),
                              (b'\x1dx', b'\x1d(?s:.*)x'), (b'\x04', b'\x04'), (b'\x11\x13', b'\x11(?s:.*)\x13')):
            seen = len(terminal.read())
            terminal.type(typed)
            wait_until(f'{typed} is echoed', lambda s=seen, e=echoed: re.search(e, terminal.read()[s:]), 30, step=0)
            assert terminal.process.poll() is None, f'{typed} ended the console'
        terminal.type(b'\x1dQ')
        assert terminal.end() == 0


@title('/console/terminal-is-given-back-on-every-way-out')
def test_signals():
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        with console() as terminal:
            terminal.process.send_signal(number)
            assert terminal.end() == -number, f'{number!r}: exit status {terminal.process.returncode}'
            assert b'The console of web was left; the guest goes on.' in terminal.output
    with console() as terminal:
        terminal.process.send_signal(signal.SIGTSTP)
        seen = terminal.counts()[-1]
        wait_until('it goes on', lambda: terminal.counts()[-1] > seen, 30)
        assert terminal.is_raw()
        terminal.type(LEAVE)
        assert terminal.end() == 0
    with Terminal('instance', 'console', 'nope') as terminal:
        assert terminal.end() == 3 and (b'fettle: instance "nope" does not exist\r\nWhat there is: fettle instance list\r\n'
                                        in terminal.output), terminal.output


@title('/console/its-reader-is-gone')
def test_broken_pipe():
    reader, writer = os.pipe()
    with Terminal('instance', 'console', 'web', out=writer) as terminal:
        os.close(writer)
        assert select.select([reader], [], [], 30)[0] and os.read(reader, 1)
        os.close(reader)
        assert terminal.end() == 30
        assert b'fettle: standard output: Broken pipe' in terminal.output, terminal.output


@title('/console/daemons-fail-meanwhile')
def test_daemons():
    """luxid is restarted, then the node's daemon: the line is heard again and nothing is missing."""
    uuid = e2e.uuid_of(lab, 'web')
    with console() as terminal:
        lab.lab('kill', 'luxid@node1')
        e2e.wait_counting(lab, 'web', uuid, place(), lab.printed('web', uuid, place()) + 3)
        check_unbroken(terminal, lab.printed('web', uuid, place()))
        lab.lab('kill', f'noded@{place()}')
        e2e.wait_counting(lab, 'web', uuid, place(), lab.printed('web', uuid, place()) + 3)
        check_unbroken(terminal, lab.printed('web', uuid, place()))
        terminal.type(LEAVE)
        assert terminal.end() == 0


@title('/console/left-while-its-node-is-silent')
def test_paused():
    """A node daemon that answers nothing holds up neither Ctrl-] q nor a signal, also with something typed."""
    lab.lab('pause', f'noded@{place()}')
    try:
        for leave in (lambda t: t.type(LEAVE), lambda t: t.process.terminate()):
            with Terminal('instance', 'console', 'web') as terminal:
                wait_until('it is raw', terminal.is_raw, 20)
                terminal.type(b'ls\r')
                terminal.read(0.5)
                leave(terminal)
                assert terminal.end(20) in (0, -signal.SIGTERM)
    finally:
        lab.lab('resume', f'noded@{place()}')


def through_pipe(data, name='web', timeout=60):
    done = fettlelib.run_command([lab.fettle, '--root', lab.root('node1'), 'instance', 'console', name], timeout, data, text=False)
    return done.returncode, done.stdout, done.stderr.decode()


@title('/console/through-a-pipe')
def test_pipe():
    code, out, err = through_pipe(b'=')
    assert code == 0 and b'=' in out and not err, (code, out, err)
    more = lab.json('instance', 'console', 'web')
    assert more['node'] == place() and more['instance'] == 'web' and more['offset'] > 0, more


@title('/console/of-a-guest-that-does-not-run')
def test_stopped():
    """What it said last is shown; what is typed is refused with the reason, once."""
    lab.cli('instance', 'create', 'off', '--disk-template', 'diskless', '--memory', '8', '--pnode', 'node2', '--no-start')
    code, out, err = through_pipe(b'x', 'off')
    assert (code, err) == (5, 'fettle: instance "off" has printed nothing on node2 yet\n'), (code, err)
    lab.cli('instance', 'shutdown', 'web', '--timeout', '60')
    code, out, err = through_pipe(b'x')
    refusal = f'instance "web" does not run on {place()} now; see: fettle instance info web'
    assert code == 5 and err == f'fettle: {refusal}\n', (code, err)
    with Terminal('instance', 'console', 'web') as terminal:
        terminal.wait_for(rb'POWEROFF')
        terminal.type(b'a')
        terminal.wait_for(re.escape(f'\r\n[what is typed is lost: {refusal}]\r\n').encode())
        terminal.type(b'b')
        terminal.read(1)
        assert terminal.output.count(b'what is typed is lost') == 1, terminal.output
        lab.cli('instance', 'startup', 'web')
        terminal.wait_for(rb'BOOT ')
        terminal.type(LEAVE)
        assert terminal.end() == 0
    lab.cli('instance', 'remove', 'off')


@title('/console/follows-a-failover-and-ends-with-the-instance')
def test_failover():
    uuid = e2e.uuid_of(lab, 'web')
    e2e.wait_healthy(lab, 'web')
    with console() as terminal:
        old = place()
        lab.lab('power', old, 'off')
        lab.cli('node', 'modify', old, '--offline', 'yes', '--statement', 'test: the power was cut')
        lab.cli('instance', 'failover', 'web')
        terminal.wait_for(f'web has moved from {old} to {place()}'.encode())
        terminal.wait_for(rb'(?s)has moved.*BOOT .*START \d+')
        last = max(lab.printed('web', uuid, old), 1)
        wait_until('it counts on', lambda: terminal.counts()[-1] > last, 60)
        lab.lab('power', old, 'on')
        lab.cli('node', 'modify', old, '--offline', 'no')
        lab.cli('instance', 'remove', 'web', '--shutdown-timeout', '0')
        assert terminal.end(30) == 3
        assert b'fettle: instance "web" has been removed\r\n' in terminal.output, terminal.output[-300:]


@title('/console/no-sanitizer-report')
def test_logs():
    e2e.verify_clean(lab)
    e2e.check_logs(lab)


if __name__ == '__main__':
    with e2e.new_lab(options=('--replica-lost-ms', '2000', '--watcher-interval-ms', '500')) as lab:
        lab.do('OP_INSTANCE_CREATE', instance_name='web', pnode='node2', snode='node3', **e2e.TICK)
        e2e.run(test_migration, test_keys, test_signals, test_broken_pipe, test_daemons, test_paused, test_pipe, test_stopped,
                test_failover, test_logs)
